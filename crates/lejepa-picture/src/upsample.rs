//! A map with a value per patch, drawn at the size of an image.
//!
//! Patch `p` of `n` covers pixels from `p h / n` to `(p + 1) h / n`, its value stands in the middle of it.
//! Smooth maps go through the values (cubic, Keys' a = -1/2, as Pillow's bicubic), are continued by their
//! edge and never leave the range of the map.

use ndarray::{Array2, ArrayView2, s};

/// How values between patches are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Upsampling {
    /// Every patch is a rectangle.
    Nearest,
    /// Bilinear.
    Bilinear,
    /// Bicubic.
    Smooth,
}

/// A few values of the map along one axis with their weights.
type Taps = Vec<(usize, f32)>;

impl Upsampling {
    /// The map at another size.
    ///
    /// # Shapes
    /// - `map`: `(rows, columns)`, at least one of each
    /// - result: `(height, width)`
    pub fn enlarge(self, map: ArrayView2<'_, f32>, (height, width): (usize, usize)) -> Array2<f32> {
        let (rows, columns) = map.dim();
        let (down, across) = (self.taps(rows, height), self.taps(columns, width));
        let mut tall = Array2::zeros((height, columns));
        for (mut line, taps) in tall.rows_mut().into_iter().zip(&down) {
            taps.iter().for_each(|&(row, weight)| line.scaled_add(weight, &map.slice(s![row, ..])));
        }
        let (low, high) = map.iter().fold((f32::INFINITY, f32::NEG_INFINITY), |(low, high), &value| {
            (low.min(value), high.max(value))
        });
        Array2::from_shape_fn((height, width), |(row, column)| {
            let value: f32 = across[column].iter().map(|&(from, weight)| tall[(row, from)] * weight).sum();
            value.max(low).min(high)
        })
    }

    /// Which patches an image's pixels belong to, as [`Upsampling::enlarge`] with 1 where the mask is set:
    /// nearest gives 0 or 1, smooth everything between.
    ///
    /// # Shapes
    /// - `mask`: `(rows, columns)`, at least one of each
    /// - result: `(height, width)`
    pub fn enlarge_mask(self, mask: ArrayView2<'_, bool>, size: (usize, usize)) -> Array2<f32> {
        self.enlarge(mask.mapv(|is_set| f32::from(u8::from(is_set))).view(), size)
    }

    /// For every pixel along an axis the patches it is made of.
    fn taps(self, patches: usize, pixels: usize) -> Vec<Taps> {
        let last = patches.saturating_sub(1);
        let pixel = |pixel: usize| -> Taps {
            // In patches, of which the first has its middle at 0.
            let place = (pixel as f64 + 0.5) * patches as f64 / pixels as f64 - 0.5;
            match self {
                Self::Nearest => vec![(((place + 0.5) as usize).min(last), 1.)],
                Self::Bilinear => {
                    let (before, share) = (place.floor(), place - place.floor());
                    [(before, 1. - share), (before + 1., share)]
                        .map(|(from, weight)| (from.clamp(0., last as f64) as usize, weight as f32))
                        .into()
                }
                Self::Smooth => (-1..=2)
                    .map(|step| place.floor() + f64::from(step))
                    .map(|from| (from.clamp(0., last as f64) as usize, keys(place - from) as f32))
                    .collect(),
            }
        };
        (0..pixels).map(pixel).collect()
    }
}

/// Keys' cubic with a = -1/2; four values at distance 1 sum to 1.
fn keys(distance: f64) -> f64 {
    let x = distance.abs();
    if x < 1. {
        (1.5 * x - 2.5) * x * x + 1.
    } else if x < 2. {
        ((-0.5 * x + 2.5) * x - 4.) * x + 2.
    } else {
        0.
    }
}

#[cfg(test)]
mod tests {
    use ndarray::array;

    use super::*;

    /// Sums of four products in f32.
    const ROUNDING: f32 = 1e-6;

    #[test]
    fn nearest_makes_rectangles_also_where_patches_do_not_divide_the_image() {
        let map = array![[1., 2.], [3., 4.]];
        let enlarged = Upsampling::Nearest.enlarge(map.view(), (2, 4));
        assert_eq!(enlarged, array![[1., 1., 2., 2.], [3., 3., 4., 4.]]);
        let enlarged = Upsampling::Nearest.enlarge(map.view(), (1, 5));
        assert_eq!(enlarged, array![[3., 3., 4., 4., 4.]]);
    }

    #[test]
    fn smooth_goes_through_the_values_and_stays_between_them() {
        let map = array![[0., 1., 0.2], [0.6, 0.3, 0.9]];
        let enlarged = Upsampling::Smooth.enlarge(map.view(), (2 * 5, 3 * 7));
        for ((row, column), value) in map.indexed_iter() {
            let middle: f32 = enlarged[(row * 5 + 2, column * 7 + 3)];
            assert!((middle - value).abs() < ROUNDING, "{middle} {value}");
        }
        assert!(enlarged.iter().all(|value| (0. ..=1.).contains(value)));
        assert!(
            enlarged
                .rows()
                .into_iter()
                .all(|row| { row.windows(2).into_iter().all(|pair| (pair[0] - pair[1]).abs() < 0.25) })
        );
    }

    /// `torch.nn.functional.interpolate(map, size=(1, 6), mode="bilinear", align_corners=False)`
    #[test]
    fn bilinear_is_that_of_torch() {
        let enlarged = Upsampling::Bilinear.enlarge(array![[0., 1., 3.]].view(), (1, 6));
        let expected = array![[0., 0.25, 0.75, 1.5, 2.5, 3.]];
        assert!((&enlarged - &expected).iter().all(|difference| difference.abs() < ROUNDING), "{enlarged}");
    }

    #[test]
    fn a_single_patch_fills_the_image_and_a_small_image_takes_what_it_can() {
        for upsampling in [Upsampling::Nearest, Upsampling::Bilinear, Upsampling::Smooth] {
            assert_eq!(upsampling.enlarge(array![[0.3]].view(), (2, 3)), Array2::from_elem((2, 3), 0.3));
            let small = upsampling.enlarge(Array2::from_elem((16, 16), 0.5).view(), (1, 1));
            assert!((small[(0, 0)] - 0.5).abs() < ROUNDING);
        }
    }

    #[test]
    fn masks_become_coverage() {
        let mask = array![[true, false]];
        assert_eq!(Upsampling::Nearest.enlarge_mask(mask.view(), (1, 4)), array![[1., 1., 0., 0.]]);
    }
}
