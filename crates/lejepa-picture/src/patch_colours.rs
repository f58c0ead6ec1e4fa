//! Patch features as colours: red, green and blue are the first three principal components.
//!
//! ```text
//! colour = (component - min) / (max - min)     over all patches that the components are made of
//! ```
//!
//! The largest entry of every component is positive, so that colours are the same in every run. A component
//! along which patches do not vary, as with a single patch, is grey.

use lejepa_data::Image;
use ndarray::{Array2, Array3, ArrayView2, ArrayView4, Axis, s};

use super::Upsampling;
use crate::{Directions, Error, Result};

/// Which patches components are made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ComponentsOf {
    /// Those of an image, for each image anew, as in the paper.
    Image,
    /// Those of all images: the same colour is the same feature everywhere.
    All,
    /// Those of the foreground of all images, as DINOv2 shows them; the background is black.
    ///
    /// The first component of all patches divides them at its mean; the foreground is the side that has a
    /// smaller share of its patches at the edges of the images.
    Foreground,
}

/// The colours of an image's patches, between 0 and 1: `(rows, columns, 3)`.
#[derive(Debug, Clone, PartialEq)]
pub struct PatchColours(pub Array3<f32>);

/// A component whose variance is a smaller share of the mean square of the features is rounding of f32.
const ROUNDING: f64 = 1e-10;

/// Colours of the patches of every image.
///
/// # Shapes
/// - `tokens`: `(images, rows, columns, dim)`
pub fn patch_colours(tokens: ArrayView4<'_, f32>, components: ComponentsOf) -> Result<Vec<PatchColours>> {
    if tokens.iter().any(|value| !value.is_finite()) {
        return Err(Error::PatchesNotFinite);
    }
    match components {
        ComponentsOf::Image => {
            let images = tokens.axis_chunks_iter(Axis(0), 1);
            Ok(images.map(|image| coloured(image, None)).collect::<Result<Vec<_>>>()?.concat())
        }
        ComponentsOf::All => coloured(tokens, None),
        ComponentsOf::Foreground => coloured(tokens, Some(foreground(tokens)?)),
    }
}

/// Colours by the components of those patches that are `shown`, or of all.
fn coloured(tokens: ArrayView4<'_, f32>, shown: Option<Array3<bool>>) -> Result<Vec<PatchColours>> {
    let (images, rows, columns, dim) = tokens.dim();
    let flat = tokens.to_shape((images * rows * columns, dim)).map_err(Error::Shape)?;
    let is_shown = |patch: usize| {
        let (image, place) = (patch / (rows * columns), patch % (rows * columns));
        shown.as_ref().is_none_or(|shown| shown[(image, place / columns, place % columns)])
    };
    let kept: Vec<usize> = (0..flat.nrows()).filter(|&patch| is_shown(patch)).collect();
    let channels = channels(flat.select(Axis(0), &kept).view())?; // (kept, 3)
    let mut colours = Array2::zeros((flat.nrows(), 3));
    for (&patch, colour) in kept.iter().zip(channels.rows()) {
        colours.row_mut(patch).assign(&colour);
    }
    let colours = colours.into_shape_with_order((images, rows, columns, 3)).map_err(Error::Shape)?;
    Ok(colours.outer_iter().map(|image| PatchColours(image.to_owned())).collect())
}

/// Three values between 0 and 1 for every sample.
fn channels(features: ArrayView2<'_, f32>) -> Result<Array2<f32>> {
    let directions = Directions::of(features, 3)?.signed();
    let coordinates = directions.project(features);
    let samples = features.nrows().max(1) as f64;
    let mean_square = features.iter().map(|value| f64::from(*value).powi(2)).sum::<f64>() / samples;
    let mut channels = Array2::from_elem((features.nrows(), 3), 0.5);
    for (mut channel, component) in channels.columns_mut().into_iter().zip(coordinates.columns()) {
        let variance = component.iter().map(|value| value * value).sum::<f64>() / samples;
        if variance > ROUNDING * mean_square {
            let (low, high) = component.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |ends, &value| {
                (ends.0.min(value), ends.1.max(value))
            });
            channel.zip_mut_with(&component, |channel, value| {
                *channel = ((value - low) / (high - low)) as f32;
            });
        }
    }
    Ok(channels)
}

/// Which patches belong to what the images show: `(images, rows, columns)`.
fn foreground(tokens: ArrayView4<'_, f32>) -> Result<Array3<bool>> {
    let (images, rows, columns, dim) = tokens.dim();
    let flat = tokens.to_shape((images * rows * columns, dim)).map_err(Error::Shape)?;
    let directions = Directions::of(flat.view(), 1)?.signed();
    if directions.count() == 0 {
        return Ok(Array3::from_elem((images, rows, columns), true));
    }
    let first = directions.project(flat.view()).slice_move(s![.., 0]);
    let positive = first.mapv(|value| value > 0.).into_shape_with_order((images, rows, columns));
    let positive = positive.map_err(Error::Shape)?;
    let share_at_edges = |side: bool| {
        let (mut all, mut at_edge) = (0., 0.);
        for ((_, row, column), _) in positive.indexed_iter().filter(|(_, is)| **is == side) {
            let is_edge = row == 0 || column == 0 || row + 1 == rows || column + 1 == columns;
            all += 1.;
            at_edge += f64::from(u8::from(is_edge));
        }
        at_edge / f64::max(all, 1.)
    };
    let side = share_at_edges(true) <= share_at_edges(false);
    Ok(positive.mapv(|is| is == side))
}

impl PatchColours {
    /// A picture of this height and width.
    pub fn draw(&self, (height, width): (usize, usize), upsampling: Upsampling) -> Result<Image> {
        let planes =
            [0, 1, 2].map(|channel| upsampling.enlarge(self.0.slice(s![.., .., channel]), (height, width)));
        let byte = |value: f32| (value * 255.).round() as u8;
        let pixels = (0..height * width).flat_map(|pixel| {
            let place = (pixel / width, pixel % width);
            [byte(planes[0][place]), byte(planes[1][place]), byte(planes[2][place])]
        });
        Ok(Image::from_pixels(height, width, 3, pixels.collect())?)
    }
}

#[cfg(test)]
mod tests {
    use ndarray::Array4;

    use super::*;

    /// Patches of a square in the middle differ from those around it, and vary by themselves.
    fn tokens(images: usize) -> Array4<f32> {
        Array4::from_shape_fn((images, 6, 6, 5), |(image, row, column, dim)| {
            let inside = (2..4).contains(&row) && (2..4).contains(&column);
            let base = if inside { 10. } else { -1. };
            let own = ((image * 36 + row * 6 + column + 1) * (dim + 2)) as f32;
            base * (dim as f32 - 1.5) + (own * 0.7).sin()
        })
    }

    #[test]
    fn colours_fill_the_range_and_are_the_same_every_time() {
        let colours = patch_colours(tokens(2).view(), ComponentsOf::Image).unwrap();
        assert_eq!(colours.len(), 2);
        for PatchColours(colours) in &colours {
            for channel in colours.axis_iter(Axis(2)) {
                let ends = channel.iter().fold((1f32, 0f32), |ends, &it| (ends.0.min(it), ends.1.max(it)));
                assert_eq!(ends, (0., 1.));
            }
        }
        assert_eq!(colours, patch_colours(tokens(2).view(), ComponentsOf::Image).unwrap());
        let alone = patch_colours(tokens(1).view(), ComponentsOf::Image).unwrap();
        assert_eq!(colours[0], alone[0]);
    }

    #[test]
    fn features_of_the_other_sign_have_the_complementary_order_but_the_same_components() {
        // The direction is the same, so every colour is mirrored.
        let (one, other) = (tokens(1), -tokens(1));
        let colours =
            |tokens: &Array4<f32>| patch_colours(tokens.view(), ComponentsOf::All).unwrap().remove(0).0;
        for (one, other) in colours(&one).iter().zip(&colours(&other)) {
            assert!((one + other - 1.).abs() < 1e-5, "{one} {other}");
        }
    }

    #[test]
    fn all_images_share_components_and_the_background_of_the_foreground_is_black() {
        let all = patch_colours(tokens(3).view(), ComponentsOf::All).unwrap();
        let highest = all.iter().map(|image| image.0.iter().copied().fold(0., f32::max));
        assert!(highest.fold(0., f32::max) > 0.999);
        for PatchColours(colours) in patch_colours(tokens(3).view(), ComponentsOf::Foreground).unwrap() {
            for row in 0..6 {
                for column in 0..6 {
                    let inside = (2..4).contains(&row) && (2..4).contains(&column);
                    let is_black = colours.slice(s![row, column, ..]).iter().all(|&value| value == 0.);
                    // A patch inside may be black too, if it is at the end of all components.
                    assert!(inside || is_black, "{row} {column}");
                }
            }
            assert!(colours.iter().any(|&value| value > 0.));
        }
    }

    #[test]
    fn a_single_patch_and_patches_that_do_not_vary_are_grey() {
        for (rows, columns) in [(1, 1), (3, 4)] {
            let tokens = Array4::from_elem((2, rows, columns, 7), 0.3);
            for components in [ComponentsOf::Image, ComponentsOf::All, ComponentsOf::Foreground] {
                for PatchColours(colours) in patch_colours(tokens.view(), components).unwrap() {
                    assert_eq!(colours, Array3::from_elem((rows, columns, 3), 0.5), "{components:?}");
                }
            }
        }
        // What is left of equal features after sums in another order.
        let noisy =
            Array4::from_shape_fn((1, 3, 3, 4), |(_, row, column, _)| 1. + (row * column) as f32 * 1e-7);
        let colours = patch_colours(noisy.view(), ComponentsOf::Image).unwrap().remove(0).0;
        assert!(colours.iter().all(|&value| value == 0.5));
    }

    #[test]
    fn features_that_are_no_numbers_are_refused() {
        let tokens = Array4::from_elem((1, 2, 2, 3), f32::NAN);
        assert!(matches!(patch_colours(tokens.view(), ComponentsOf::Image), Err(Error::PatchesNotFinite)));
    }

    #[test]
    fn pictures_have_the_size_asked_for() {
        let colours = patch_colours(tokens(1).view(), ComponentsOf::Image).unwrap().remove(0);
        let picture = colours.draw((12, 18), Upsampling::Nearest).unwrap();
        assert_eq!((picture.height(), picture.width(), picture.channels()), (12, 18, 3));
        let expected = (colours.0[(5, 5, 0)] * 255.).round() as u8;
        assert_eq!(picture.pixels()[(12 * 18 - 1) * 3], expected);
    }
}
