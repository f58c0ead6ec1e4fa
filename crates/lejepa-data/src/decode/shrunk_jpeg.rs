//! JPEG files decoded at 1/2, 1/4 or 1/8 of their size: the inverse transform of each 8x8 block is computed
//! for fewer pixels, which also is the right low-pass filter.

use ::image::error::{DecodingError, ImageFormatHint};
use ::image::metadata::Orientation;
use ::image::{DynamicImage, GrayImage, ImageError, ImageFormat, RgbImage};
use jpeg_decoder::{Decoder, PixelFormat};

use super::upright;
use crate::{Error, Image, Result};

/// Decoding at half size is no faster than at full size, with other and faster code.
const LEAST_SHRINK: usize = 4;

/// Whether a file is a JPEG that is decoded faster at a smaller size.
pub(crate) fn saves_time(bytes: &[u8], shrink: usize) -> bool {
    shrink >= LEAST_SHRINK && bytes.starts_with(&[0xff, 0xd8, 0xff])
}

/// Decodes a JPEG at no less than `1 / shrink` of its size.
pub(crate) fn decode(bytes: &[u8], shrink: usize, orientation: Orientation) -> Result<Image> {
    let mut decoder = Decoder::new(bytes);
    decoder.set_max_decoding_buffer_size(Image::PIXEL_LIMIT * 4);
    decoder.read_info().map_err(failed)?;
    let Some(info) = decoder.info() else { return Image::decode(bytes) };
    let least = |side: u16| u16::try_from(usize::from(side).div_ceil(shrink)).unwrap_or(side);
    let (width, height) = decoder.scale(least(info.width), least(info.height)).map_err(failed)?;
    let (width, height) = (u32::from(width), u32::from(height));
    let pixels = decoder.decode().map_err(failed)?;
    let decoded = match info.pixel_format {
        PixelFormat::L8 => GrayImage::from_raw(width, height, pixels).map(DynamicImage::from),
        PixelFormat::RGB24 => RgbImage::from_raw(width, height, pixels).map(DynamicImage::from),
        // Rare: printers' colours and 16 bits take the other way.
        PixelFormat::CMYK32 | PixelFormat::L16 => None,
    };
    decoded.map_or_else(|| Image::decode(bytes), |decoded| upright(decoded, orientation))
}

fn failed(error: jpeg_decoder::Error) -> Error {
    let format = ImageFormatHint::Exact(ImageFormat::Jpeg);
    Error::Decode(ImageError::Decoding(DecodingError::new(format, error)))
}
