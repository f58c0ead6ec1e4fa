//! What of an image file is not in its pixels: transparency, and all frames of an animation but the first.

use std::io::Cursor;

use ::image::codecs::gif::GifDecoder;
use ::image::codecs::png::PngDecoder;
use ::image::codecs::webp::WebPDecoder;
use ::image::{AnimationDecoder, ImageDecoder, ImageFormat, guess_format};

use super::Encoded;

/// What decoding leaves out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct LeftOut {
    pub(crate) transparency: bool,
    pub(crate) frames: bool,
    /// A part of the picture, of a file that is cut off and taken nevertheless.
    pub(crate) end: bool,
}

impl LeftOut {
    /// Of a file; nothing of one that cannot be read.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        let Ok(format) = guess_format(bytes) else { return Self::default() };
        if format == ImageFormat::Jpeg {
            return Self::default();
        }
        let transparency = Encoded::open(bytes).is_ok_and(|image| image.decoder.color_type().has_alpha());
        let file = Cursor::new(bytes);
        let frames = match format {
            ImageFormat::Gif => {
                GifDecoder::new(file).is_ok_and(|file| file.into_frames().take(2).count() > 1)
            }
            ImageFormat::Png => PngDecoder::new(file).is_ok_and(|file| file.is_apng().unwrap_or(false)),
            ImageFormat::WebP => WebPDecoder::new(file).is_ok_and(|file| file.has_animation()),
            _ => false,
        };
        // Every GIF file is decoded as if it had transparent pixels.
        Self { transparency: transparency && format != ImageFormat::Gif, frames, end: false }
    }
}
