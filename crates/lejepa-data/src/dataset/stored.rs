//! A sample as its dataset keeps it, before anything is decoded.

use crate::decode::left_out::LeftOut;
use crate::decode::{Encoded, shrunk_jpeg};
use crate::{Image, ImageHash, Result};

/// An image file in memory, or pixels that need no decoding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stored {
    /// The bytes of a jpeg, png, webp, bmp, tiff or gif file.
    File(Vec<u8>),
    /// The bytes of a JPEG file that is cut off or damaged, from somebody who takes it nevertheless.
    CutFile(Vec<u8>),
    /// Decoded pixels.
    Pixels(Image),
}

impl Stored {
    /// Height and width of the upright image; of a file only the header is read.
    pub fn size(&self) -> Result<(usize, usize)> {
        match self {
            Self::File(bytes) | Self::CutFile(bytes) => Ok(Encoded::open(bytes)?.size()),
            Self::Pixels(image) => Ok((image.height(), image.width())),
        }
    }

    /// A hash of what is stored: of the bytes of a file, or of the pixels and their shape.
    pub fn content(&self) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new();
        match self {
            Self::File(bytes) | Self::CutFile(bytes) => hasher.update(b"file").update(bytes),
            Self::Pixels(image) => {
                let shape = [image.height(), image.width(), image.channels()];
                let shape: Vec<u8> = shape.iter().flat_map(|&size| (size as u64).to_le_bytes()).collect();
                hasher.update(b"pixels").update(&shape).update(image.pixels())
            }
        };
        *hasher.finalize().as_bytes()
    }

    /// The same in short.
    pub fn hash(&self) -> ImageHash {
        ImageHash::of(&self.content())
    }

    /// What [`Stored::decode`] leaves out.
    pub(crate) fn left_out(&self) -> LeftOut {
        match self {
            Self::File(bytes) => LeftOut::of(bytes),
            Self::CutFile(_) => LeftOut { end: true, ..LeftOut::default() },
            Self::Pixels(_) => LeftOut::default(),
        }
    }

    /// The image at full size, upright.
    pub fn decode(self) -> Result<Image> {
        match self {
            Self::File(bytes) => Image::decode(&bytes),
            Self::CutFile(bytes) => Image::decode_cut(&bytes),
            Self::Pixels(image) => Ok(image),
        }
    }

    /// The upright image, at full size or up to `shrink` times smaller where that saves time.
    pub(crate) fn decode_shrunk(self, shrink: usize) -> Result<Image> {
        match &self {
            Self::File(bytes) if shrunk_jpeg::saves_time(bytes, shrink) => {
                let orientation = Encoded::open(bytes)?.orientation;
                shrunk_jpeg::decode(bytes, shrink, orientation)
            }
            _ => self.decode(),
        }
    }
}
