//! From the bytes of an image file to pixels.
//!
//! Sizes and kinds are checked before anything is decoded; images come out upright (EXIF), in 8 bits, grey or
//! colour. What a decoder would make up, clip or drop is an error: see [`sample_format`], [`frames`] and [`jpeg`].

mod frames;
mod guard;
mod jpeg;
#[cfg(feature = "datasets")]
pub(crate) mod left_out;
mod limits;
mod sample_format;
#[cfg(feature = "datasets")]
pub(crate) mod shrunk_jpeg;
mod tiff_jpeg;

use std::io::Cursor;

use ::image::metadata::Orientation;
use ::image::{DynamicImage, ImageDecoder, ImageError, ImageFormat, ImageReader};

use crate::{Error, Image, Result};
use guard::guarded;
pub use limits::DecodeLimits;

/// The version of everything between the bytes of a file and the pixels that an encoder sees: decoding,
/// resizing and preprocessing. Whoever changes a pixel raises it, and what was computed before is not found
/// in any cache again.
pub const DECODING: u32 = 3;

/// An image file whose header was read.
pub(crate) struct Encoded<'a> {
    bytes: &'a [u8],
    format: Option<ImageFormat>,
    decoder: Box<dyn ImageDecoder + 'a>,
    pub(crate) orientation: Orientation,
}

impl<'a> Encoded<'a> {
    /// Reads the header, and refuses images that are too large or hold what 8 bits of grey or colour cannot.
    pub(crate) fn open(bytes: &'a [u8]) -> Result<Self> {
        Self::open_within(bytes, DecodeLimits::default())
    }

    /// The same with limits of the caller's.
    pub(crate) fn open_within(bytes: &'a [u8], limits: DecodeLimits) -> Result<Self> {
        let encoded = guarded(|| Self::read_header(bytes))?;
        let (height, width) = encoded.size();
        // An image that was opened is no larger than `PIXEL_LIMIT`.
        if height * width > limits.pixels {
            return Err(Error::ImageSize { height, width, limit: limits.pixels });
        }
        if encoded.format == Some(ImageFormat::Jpeg) {
            jpeg::Outline::of(bytes).check_scans(limits.scans.min(Image::SCAN_LIMIT))?;
        }
        Ok(encoded)
    }

    fn read_header(bytes: &'a [u8]) -> Result<Self> {
        let reader = ImageReader::new(Cursor::new(bytes))
            .with_guessed_format()
            .map_err(|error| Error::Decode(ImageError::IoError(error)))?;
        let format = reader.format();
        if format == Some(ImageFormat::Tiff) {
            sample_format::check_tiff(bytes)?;
        }
        if format.is_none() {
            sample_format::check_unknown(bytes)?;
        }
        frames::check(bytes, format)?;
        let mut decoder: Box<dyn ImageDecoder + 'a> = Box::new(reader.into_decoder().map_err(Error::Decode)?);
        let (width, height) = decoder.dimensions();
        Image::check_size(height as usize, width as usize)?;
        sample_format::check(decoder.color_type())?;
        let orientation = decoder.orientation().map_err(Error::Decode)?;
        Ok(Self { bytes, format, decoder, orientation })
    }

    /// Height and width of the upright image.
    pub(crate) fn size(&self) -> (usize, usize) {
        let (width, height) = self.decoder.dimensions();
        let (height, width) = (height as usize, width as usize);
        if exchanges_sides(self.orientation) { (width, height) } else { (height, width) }
    }

    /// The upright image.
    pub(crate) fn decode(self) -> Result<Image> {
        if self.format == Some(ImageFormat::Jpeg) {
            jpeg::check(self.bytes)?;
        }
        self.decode_what_is_there()
    }

    /// The upright image, with grey for what is missing of a JPEG file.
    pub(crate) fn decode_what_is_there(self) -> Result<Image> {
        guarded(|| {
            let decoded = DynamicImage::from_decoder(self.decoder).map_err(Error::Decode)?;
            upright(decoded, self.orientation)
        })
    }
}

/// Whether a file is a JPEG without all of its image.
#[cfg(feature = "datasets")]
pub(crate) fn is_cut_jpeg(bytes: &[u8]) -> bool {
    // One with too many scans stays refused.
    bytes.starts_with(&[0xff, 0xd8, 0xff])
        && matches!(jpeg::check(bytes), Err(Error::Truncated { .. } | Error::Damaged { .. }))
}

fn exchanges_sides(orientation: Orientation) -> bool {
    use Orientation::{Rotate90, Rotate90FlipH, Rotate270, Rotate270FlipH};
    matches!(orientation, Rotate90 | Rotate90FlipH | Rotate270 | Rotate270FlipH)
}

fn upright(mut decoded: DynamicImage, orientation: Orientation) -> Result<Image> {
    decoded.apply_orientation(orientation);
    let (height, width) = (decoded.height() as usize, decoded.width() as usize);
    let (channels, pixels) = if decoded.color().has_color() {
        (3, decoded.into_rgb8().into_raw())
    } else {
        (1, decoded.into_luma8().into_raw())
    };
    Image::from_pixels(height, width, channels, pixels)
}

#[cfg(test)]
mod tests;
