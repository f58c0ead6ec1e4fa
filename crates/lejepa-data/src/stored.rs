//! A sample as its dataset keeps it, before anything is decoded.

use crate::{Image, Result};

/// An image file in memory, or pixels that need no decoding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stored {
    /// The bytes of a jpeg, png, webp, bmp, tiff or gif file.
    File(Vec<u8>),
    /// Decoded pixels.
    Pixels(Image),
}

impl Stored {
    /// The image at full size, upright.
    pub fn decode(self) -> Result<Image> {
        match self {
            Self::File(bytes) => Image::decode(&bytes),
            Self::Pixels(image) => Ok(image),
        }
    }
}
