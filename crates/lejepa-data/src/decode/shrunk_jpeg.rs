//! JPEG files decoded at 1/2, 1/4 or 1/8 of their size: the inverse transform of each 8x8 block is computed
//! for fewer pixels, which also is the right low-pass filter.

use ::image::error::{DecodingError, ImageFormatHint};
use ::image::metadata::Orientation;
use ::image::{DynamicImage, GrayImage, ImageError, ImageFormat, RgbImage};
use jpeg_decoder::{Decoder, PixelFormat};

use super::guard::guarded;
use super::{jpeg, upright};
use crate::{Error, Image, Result};

/// At half size it is no faster than other code at full size; from a quarter on it is, and twice as fast
/// for 24 megapixels.
const LEAST_SHRINK: usize = 4;

/// Whether a file is a JPEG that is decoded faster at a smaller size.
pub(crate) fn saves_time(bytes: &[u8], shrink: usize) -> bool {
    shrink >= LEAST_SHRINK && bytes.starts_with(&[0xff, 0xd8, 0xff])
}

/// Decodes a JPEG at no less than `1 / shrink` of its size.
pub(crate) fn decode(bytes: &[u8], shrink: usize, orientation: Orientation) -> Result<Image> {
    jpeg::check(bytes)?;
    guarded(|| decode_whole(bytes, shrink, orientation))
}

fn decode_whole(bytes: &[u8], shrink: usize, orientation: Orientation) -> Result<Image> {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A smooth picture of 200 x 120 pixels as a JPEG file.
    fn smooth_jpeg(grey: bool) -> Vec<u8> {
        let picture = RgbImage::from_fn(200, 120, |x, y| ::image::Rgb([x as u8, (2 * y) as u8, 90]));
        let picture = DynamicImage::from(picture);
        let picture = if grey { DynamicImage::from(picture.into_luma8()) } else { picture };
        let mut bytes = std::io::Cursor::new(Vec::new());
        picture.write_to(&mut bytes, ImageFormat::Jpeg).unwrap();
        bytes.into_inner()
    }

    #[test]
    fn a_shrunk_picture_shows_the_same() {
        for grey in [false, true] {
            let bytes = smooth_jpeg(grey);
            for (shrink, size) in [(4, (30, 50)), (5, (30, 50)), (8, (15, 25)), (100, (15, 25))] {
                assert!(saves_time(&bytes, shrink));
                let shrunk = decode(&bytes, shrink, Orientation::NoTransforms).unwrap();
                assert_eq!((shrunk.height(), shrunk.width()), size, "shrink {shrink}");
                let whole = Image::decode(&bytes).unwrap();
                assert_eq!(shrunk.channels(), whole.channels());
                let (step, channels) = (whole.height() / size.0, whole.channels());
                for (row, column) in [(2, 3), (size.0 - 2, size.1 - 3), (size.0 / 2, 1)] {
                    let middle = (row * step + step / 2) * whole.width() + column * step + step / 2;
                    for channel in 0..channels {
                        let expected = whole.pixels()[middle * channels + channel];
                        let got = shrunk.pixels()[(row * size.1 + column) * channels + channel];
                        assert!(got.abs_diff(expected) <= 6, "{got} instead of {expected}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_shrunk_picture_is_upright() {
        let turned = decode(&smooth_jpeg(false), 4, Orientation::Rotate90).unwrap();
        assert_eq!((turned.height(), turned.width()), (50, 30));
    }

    #[test]
    fn damaged_files_are_errors() {
        let bytes = smooth_jpeg(false);
        for length in [4, 50, 300] {
            assert!(decode(&bytes[..length], 8, Orientation::NoTransforms).is_err(), "{length} bytes");
        }
        assert!(!saves_time(b"no jpeg", 8) && !saves_time(&bytes, 2));
    }
}
