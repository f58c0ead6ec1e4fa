//! The grid of an external position embedding, which is a list of patches in a file: 64 may be 8 x 8 or 4 x 16.

use candle_core::{D, DType, Tensor};

use crate::{Error, ImageSize, KnownGrid, Result};

/// What the grid can be.
#[derive(Debug, Clone, Copy)]
pub(super) struct PositionGrid {
    /// That of the encoder that is asked for.
    pub(super) encoder: ImageSize,
    pub(super) known: KnownGrid,
}

/// Longer grids are not thought of.
const LONGEST: usize = 8;
/// By how much another grid's neighbours must be more alike than those of the assumed one.
const MARGIN: f32 = 0.2;

impl PositionGrid {
    /// Whether so many patches are those of a grid that is known.
    pub(super) fn has(&self, patches: usize) -> bool {
        self.candidates().any(|grid| area(grid) == patches)
    }

    /// The grid of some positions. An error where none fits, where two do, or where neighbours in another one are
    /// clearly more alike.
    ///
    /// # Shapes
    /// - `positions`: `(1, patches, dim)`
    pub(super) fn find(&self, positions: &Tensor) -> Result<ImageSize> {
        let patches = positions.dim(1)?;
        let refuse = |problem: String, grid: ImageSize| {
            Err(Error::PositionGrid { shape: positions.dims().to_vec(), problem, example: grid })
        };
        let mut fitting: Vec<ImageSize> = self.candidates().filter(|grid| area(*grid) == patches).collect();
        fitting.dedup();
        let likeliest = likeliest(positions)?;
        // A look at random positions is no better than the usual form.
        let example = |usual: ImageSize| -> Result<ImageSize> {
            let Some(other) = likeliest else { return Ok(usual) };
            let is_clear = likeness(positions, other)? > likeness(positions, usual)? + MARGIN;
            Ok(if is_clear { other } else { usual })
        };
        let grid = match *fitting {
            [] => {
                let asked = match self.known.given {
                    Some(given) => format!("of the given grid {given}"),
                    None => format!("of the grid {} that the image size asks for", self.encoder),
                };
                return refuse(format!("is not {asked}"), example(squarest(patches))?);
            }
            [one, other, ..] => {
                return refuse(format!("may be a grid of {one} or of {other}"), example(other)?);
            }
            [grid] => grid,
        };
        if self.known.given.is_none()
            && let Some(other) = likeliest
            && likeness(positions, other)? > likeness(positions, grid)? + MARGIN
        {
            return refuse(format!("looks like a grid of {other}, not of {grid}"), other);
        }
        Ok(grid)
    }

    /// What is given decides alone.
    fn candidates(&self) -> impl Iterator<Item = ImageSize> {
        let guessed = [Some(self.encoder), self.known.native];
        let grids = if self.known.given.is_some() { [self.known.given, None] } else { guessed };
        grids.into_iter().flatten()
    }
}

fn area(grid: ImageSize) -> usize {
    grid.height * grid.width
}

/// Grids of so many patches that are not too long, the widest first.
fn grids(patches: usize) -> impl Iterator<Item = ImageSize> {
    let grid = move |height: usize| ImageSize { height, width: patches / height };
    let fits = move |grid: &ImageSize| {
        area(*grid) == patches && grid.height.max(grid.width) <= LONGEST * grid.height.min(grid.width)
    };
    (1..=patches).map(grid).filter(fits)
}

/// The grid whose sides differ least.
fn squarest(patches: usize) -> ImageSize {
    let difference = |grid: &ImageSize| grid.height.abs_diff(grid.width);
    grids(patches).min_by_key(difference).unwrap_or(ImageSize { height: 1, width: patches })
}

/// The grid in which a patch and the one below it are most alike; nothing where there is no choice.
fn likeliest(positions: &Tensor) -> Result<Option<ImageSize>> {
    let mut best: Option<(f32, ImageSize)> = None;
    for grid in grids(positions.dim(1)?) {
        let likeness = likeness(positions, grid)?;
        if best.is_none_or(|(most, _)| likeness > most) {
            best = Some((likeness, grid));
        }
    }
    Ok(best.map(|(_, grid)| grid))
}

/// How alike a patch and the one below it are, from -1 to 1: their cosine, without the mean of all.
fn likeness(positions: &Tensor, grid: ImageSize) -> Result<f32> {
    let positions = positions.squeeze(0)?.to_dtype(DType::F32)?; // (patches, dim)
    let pairs = positions.dim(0)?.saturating_sub(grid.width);
    if pairs == 0 {
        return Ok(-1.);
    }
    let centred = positions.broadcast_sub(&positions.mean_keepdim(0)?)?;
    let length = (centred.sqr()?.sum_keepdim(D::Minus1)? + f64::from(f32::MIN_POSITIVE))?.sqrt()?;
    let unit = centred.broadcast_div(&length)?;
    let cosines = (unit.narrow(0, 0, pairs)? * unit.narrow(0, grid.width, pairs)?)?.sum(D::Minus1)?;
    Ok(cosines.mean_all()?.to_scalar()?)
}

#[cfg(test)]
mod tests {
    use candle_core::Device;

    use super::*;

    /// Waves along rows and columns, as trained encoders have them.
    fn waves(grid: ImageSize) -> Tensor {
        let value = |row: usize, column: usize, dim: usize| {
            let frequency = 1.5 / (1 + dim / 4) as f32;
            let angle = if dim % 4 < 2 { row as f32 } else { column as f32 } * frequency;
            if dim.is_multiple_of(2) { angle.sin() } else { angle.cos() }
        };
        let ImageSize { height, width } = grid;
        let places = (0..height).flat_map(|row| (0..width).map(move |column| (row, column)));
        let values: Vec<f32> =
            places.flat_map(|(row, column)| (0..16).map(move |dim| value(row, column, dim))).collect();
        Tensor::from_vec(values, (1, height * width, 16), &Device::Cpu).unwrap()
    }

    fn size(height: usize, width: usize) -> ImageSize {
        ImageSize { height, width }
    }

    fn found(
        positions: &Tensor,
        encoder: ImageSize,
        known: KnownGrid,
    ) -> std::result::Result<ImageSize, String> {
        PositionGrid { encoder, known }.find(positions).map_err(|error| error.to_string())
    }

    #[test]
    fn a_long_grid_is_not_taken_for_a_square_one() {
        for (own, other) in
            [(size(4, 16), size(8, 8)), (size(8, 8), size(4, 16)), (size(14, 14), size(7, 28))]
        {
            let message = found(&waves(own), other, KnownGrid::default()).unwrap_err();
            assert!(message.contains(&format!("looks like a grid of {own}, not of {other}")), "{message}");
            assert!(message.ends_with(&format!("such as --grid {own}")), "{message}");
            assert_eq!(found(&waves(own), own, KnownGrid::default()), Ok(own));
            let given = KnownGrid { given: Some(own), native: None };
            assert_eq!(found(&waves(own), other, given), Ok(own), "what is said counts");
        }
    }

    #[test]
    fn random_positions_are_taken_for_what_was_asked_for() {
        let random = Tensor::randn(0f32, 1., (1, 64, 384), &Device::Cpu).unwrap();
        assert_eq!(found(&random, size(8, 8), KnownGrid::default()), Ok(size(8, 8)));
        assert_eq!(found(&random.zeros_like().unwrap(), size(4, 16), KnownGrid::default()), Ok(size(4, 16)));
    }

    #[test]
    fn two_grids_that_fit_are_asked_about() {
        let native = KnownGrid { given: None, native: Some(size(14, 14)) };
        let message = found(&waves(size(14, 14)), size(7, 28), native).unwrap_err();
        let expected = "the position embedding pos_embed of the shape [1, 196, 16] may be a grid of 7x28 or of \
                        14x14: give the grid of the weights, such as --grid 14x14";
        assert_eq!(message, expected);
        assert_eq!(found(&waves(size(14, 14)), size(14, 14), native), Ok(size(14, 14)));
        assert_eq!(found(&waves(size(14, 14)), size(7, 7), native), Ok(size(14, 14)), "resampled later");
    }

    #[test]
    fn a_given_grid_must_fit() {
        let given = KnownGrid { given: Some(size(5, 13)), native: Some(size(8, 8)) };
        let message = found(&waves(size(8, 8)), size(8, 8), given).unwrap_err();
        assert!(message.contains("[1, 64, 16] is not of the given grid 5x13"), "{message}");
    }
}
