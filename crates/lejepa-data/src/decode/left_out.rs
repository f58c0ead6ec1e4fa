//! What of an image file is not in its pixels: transparency, and all pictures of a JPEG file but the first.

use ::image::{ImageDecoder, ImageFormat, guess_format};

use super::{Encoded, jpeg};

/// What decoding leaves out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct LeftOut {
    pub(crate) transparency: bool,
    /// Pictures behind the end of a JPEG file, such as the second view of an MPO.
    pub(crate) pictures: bool,
    /// A part of the picture, of a file that is cut off and taken nevertheless.
    pub(crate) end: bool,
}

impl LeftOut {
    /// Of a file; nothing of one that cannot be read.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        let Ok(format) = guess_format(bytes) else { return Self::default() };
        if format == ImageFormat::Jpeg {
            return Self { pictures: jpeg::has_more_pictures(bytes), ..Self::default() };
        }
        let transparency = Encoded::open(bytes).is_ok_and(|image| image.decoder.color_type().has_alpha());
        // Every GIF file is decoded as if it had transparent pixels.
        Self { transparency: transparency && format != ImageFormat::Gif, ..Self::default() }
    }
}
