//! A picture and the embedding that it should get, inside every exported encoder.
//!
//! The picture is made up: no training image leaves the house with an encoder. It is larger than a few
//! patches and not square, so that a wrong resize, crop or normalisation shows up as drift too.

use serde::{Deserialize, Serialize};

use crate::{Image, Precision, Result};

/// What an encoder should answer, wherever it runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SelfTest {
    /// Rows of the picture.
    pub height: usize,
    /// Columns of the picture.
    pub width: usize,
    /// Channels of the picture.
    pub channels: usize,
    /// Its values, interleaved, row by row, two hexadecimal digits each.
    pub pixels: String,
    /// What the exporting machine got.
    pub embedding: Vec<f32>,
    /// The largest drift that still passes.
    pub tolerance: f32,
}

/// Pixels of the picture.
const HEIGHT: usize = 36;
const WIDTH: usize = 48;

impl SelfTest {
    /// The picture that new files carry: gradients, edges and a disc.
    pub fn picture(channels: usize) -> Result<Image> {
        let value = |row: usize, column: usize, channel: usize| {
            let (x, y) = (column as i64 - 30, row as i64 - 14);
            let in_disc = x * x + y * y < 100;
            let checked = (row / 6 + column / 6).is_multiple_of(2);
            match (in_disc, channel) {
                (true, _) => 240 - 70 * channel,
                (false, 0) => 5 * column,
                (false, 1) => 7 * row,
                (false, _) => 60 + 90 * usize::from(checked),
            }
        };
        let places = (0..HEIGHT).flat_map(|row| (0..WIDTH).map(move |column| (row, column)));
        let pixels = places
            .flat_map(|(row, column)| (0..channels).map(move |channel| (row, column, channel)))
            .map(|(row, column, channel)| value(row, column, channel).min(255) as u8)
            .collect();
        Image::from_pixels(HEIGHT, WIDTH, channels, pixels)
    }

    /// From what an encoder of this precision made of the picture.
    pub fn new(picture: &Image, embedding: Vec<f32>, precision: Precision) -> Self {
        let tolerance = match precision {
            // Sums in another order.
            Precision::F32 | Precision::F16 => 1e-4,
            // A rounding that falls the other way is passed on through all layers, and instruction sets
            // differ in how they add bytes.
            Precision::Int8 => 0.1,
        };
        let pixels = picture.pixels().iter().map(|value| format!("{value:02x}")).collect();
        let (height, width, channels) = (picture.height(), picture.width(), picture.channels());
        Self { height, width, channels, pixels, embedding, tolerance }
    }

    /// The picture that was stored.
    pub fn stored_picture(&self) -> Result<Image> {
        let digit = |byte: u8| char::from(byte).to_digit(16);
        let (pairs, rest) = self.pixels.as_bytes().as_chunks::<2>();
        let pixels = pairs.iter().map(|&[high, low]| Some((16 * digit(high)? + digit(low)?) as u8));
        let pixels: Option<Vec<u8>> = if rest.is_empty() { pixels.collect() } else { None };
        // What is not hexadecimal is as good as not there.
        Image::from_pixels(self.height, self.width, self.channels, pixels.unwrap_or_default())
    }

    /// How far an embedding is from the stored one, relative to its length; infinite for another length.
    pub fn drift(&self, embedding: &[f32]) -> f32 {
        if embedding.len() != self.embedding.len() {
            return f32::INFINITY;
        }
        let norm =
            |values: &mut dyn Iterator<Item = f32>| values.map(|value| value * value).sum::<f32>().sqrt();
        let difference = norm(&mut embedding.iter().zip(&self.embedding).map(|(got, stored)| got - stored));
        difference / norm(&mut self.embedding.iter().copied()).max(f32::MIN_POSITIVE)
    }

    /// Whether a drift is small enough; NaN is not.
    pub fn passes(&self, drift: f32) -> bool {
        drift <= self.tolerance
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_picture_survives_being_stored() {
        for channels in [1, 3] {
            let picture = SelfTest::picture(channels).unwrap();
            let test = SelfTest::new(&picture, vec![1.], Precision::F32);
            assert_eq!(test.stored_picture().unwrap(), picture);
        }
    }

    #[test]
    fn drift_is_relative_and_never_passes_as_nan() {
        let picture = SelfTest::picture(1).unwrap();
        let test = SelfTest::new(&picture, vec![3., 4.], Precision::F32);
        assert_eq!(test.drift(&[3., 4.]), 0.);
        assert!((test.drift(&[3., 4.5]) - 0.1).abs() < 1e-6);
        assert!(!test.passes(test.drift(&[3., f32::NAN])));
        assert!(!test.passes(test.drift(&[3.])));
    }

    #[test]
    fn a_damaged_picture_is_an_error() {
        let picture = SelfTest::picture(3).unwrap();
        let test = SelfTest::new(&picture, Vec::new(), Precision::F32);
        for pixels in ["", "0", "zz", "éé"] {
            assert!(SelfTest { pixels: pixels.into(), ..test.clone() }.stored_picture().is_err());
        }
        assert!(SelfTest { height: usize::MAX, ..test }.stored_picture().is_err());
    }
}
