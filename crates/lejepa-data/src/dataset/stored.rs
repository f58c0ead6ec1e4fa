//! A sample as its dataset keeps it, before anything is decoded.

use std::io::Cursor;

use crate::decode::{Encoded, shrunk_jpeg};
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
    /// Height and width of the upright image; of a file only the header is read.
    pub fn size(&self) -> Result<(usize, usize)> {
        match self {
            Self::File(bytes) => Ok(Encoded::open(&mut Cursor::new(bytes))?.size()),
            Self::Pixels(image) => Ok((image.height(), image.width())),
        }
    }

    /// The image at full size, upright.
    pub fn decode(self) -> Result<Image> {
        match self {
            Self::File(bytes) => Image::decode(&bytes),
            Self::Pixels(image) => Ok(image),
        }
    }

    /// The upright image, at full size or up to `shrink` times smaller where that saves time.
    pub(crate) fn decode_shrunk(self, shrink: usize) -> Result<Image> {
        match &self {
            Self::File(bytes) if shrunk_jpeg::saves_time(bytes, shrink) => {
                let orientation = Encoded::open(&mut Cursor::new(bytes))?.orientation;
                shrunk_jpeg::decode(bytes, shrink, orientation)
            }
            _ => self.decode(),
        }
    }
}
