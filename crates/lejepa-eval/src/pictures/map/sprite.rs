//! Many small images in one file.

use lejepa_data::Image;
use lejepa_picture::{Jpeg, with_longer_side};
use serde::{Deserialize, Serialize};

use crate::Result;

/// Square thumbnails, row by row, in one picture.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sprite {
    /// Pixels of a thumbnail's side.
    pub side: usize,
    /// Thumbnails in a row.
    pub columns: usize,
    /// Rows.
    pub rows: usize,
    /// The picture.
    pub picture: Jpeg,
}

/// Pixels of a thumbnail's side.
const SIDE: usize = 64;
const QUALITY: u8 = 60;
/// Around images that are not square, in light and dark alike.
const MOUNT: u8 = 128;

impl Sprite {
    /// [Thumbnails](Self::thumbnail) in reading order.
    pub(crate) fn of(thumbnails: &[Image]) -> Result<Self> {
        let columns = (thumbnails.len() as f64).sqrt().ceil().max(1.) as usize;
        let rows = thumbnails.len().div_ceil(columns).max(1);
        let stride = columns * SIDE * 3;
        let mut pixels = vec![MOUNT; rows * SIDE * stride];
        for (index, small) in thumbnails.iter().enumerate() {
            let top = index / columns * SIDE + (SIDE - small.height()) / 2;
            let left = index % columns * SIDE + (SIDE - small.width()) / 2;
            for (row, line) in small.pixels().chunks_exact(small.width() * 3).enumerate() {
                let start = (top + row) * stride + left * 3;
                pixels[start..start + line.len()].copy_from_slice(line);
            }
        }
        let picture = Image::from_pixels(rows * SIDE, columns * SIDE, 3, pixels)?;
        Ok(Self { side: SIDE, columns, rows, picture: Jpeg::of(&picture, QUALITY)? })
    }

    /// A whole image in colour with its proportions, the longer side as long as that of a thumbnail.
    pub(crate) fn thumbnail(image: &Image) -> Result<Image> {
        Ok(with_longer_side(image, SIDE)?.with_channels(3))
    }

    /// Column and row of a thumbnail.
    pub fn place(&self, index: usize) -> [usize; 2] {
        [index % self.columns.max(1), index / self.columns.max(1)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_of_any_shape_have_their_place() {
        let image = |height: usize, width: usize| {
            let image = Image::from_pixels(height, width, 1, vec![255; height * width]).unwrap();
            Sprite::thumbnail(&image).unwrap()
        };
        let sprite = Sprite::of(&[image(1, 1), image(300, 20), image(5, 9)]).unwrap();
        assert_eq!((sprite.columns, sprite.rows, sprite.place(2)), (2, 2, [0, 1]));
        let picture = Image::decode(&sprite.picture.bytes().unwrap()).unwrap();
        assert_eq!((picture.height(), picture.width()), (2 * SIDE, 2 * SIDE));
        let at = |row: usize, column: usize| picture.pixels()[(row * 2 * SIDE + column) * 3];
        assert!(at(SIDE / 2, SIDE / 2) > 240 && at(SIDE / 2, SIDE + SIDE / 2) > 240);
        assert!(at(SIDE / 2, SIDE + 5).abs_diff(MOUNT) < 30, "beside the tall image");
        assert!(at(SIDE + 5, SIDE + 5).abs_diff(MOUNT) < 30, "where there is none");
    }
}
