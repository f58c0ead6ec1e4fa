//! From the bytes of an image file to pixels.
//!
//! Sizes are checked before anything is decoded; images come out upright (EXIF), in 8 bits, grey or
//! colour.

#[cfg(feature = "datasets")]
pub(crate) mod shrunk_jpeg;

use std::io::{BufRead, Seek};

use ::image::metadata::Orientation;
use ::image::{DynamicImage, ImageDecoder, ImageError, ImageReader};

use crate::{Error, Image, Result};

/// The version of everything between the bytes of a file and the pixels that an encoder sees: decoding,
/// resizing and preprocessing. Whoever changes a pixel raises it, and what was computed before is not found
/// in any cache again.
pub const DECODING: u32 = 2;

/// A file or bytes in memory; behind a pointer, so that all decoders are compiled once.
pub(crate) trait Bytes: BufRead + Seek {}

impl<R: BufRead + Seek> Bytes for R {}

/// An image file whose header was read.
pub(crate) struct Encoded<'a> {
    decoder: Box<dyn ImageDecoder + 'a>,
    pub(crate) orientation: Orientation,
}

impl<'a> Encoded<'a> {
    /// Reads the header, and refuses images that are too large.
    pub(crate) fn open(bytes: &'a mut dyn Bytes) -> Result<Self> {
        let reader = ImageReader::new(bytes)
            .with_guessed_format()
            .map_err(|error| Error::Decode(ImageError::IoError(error)))?;
        let mut decoder: Box<dyn ImageDecoder + 'a> = Box::new(reader.into_decoder().map_err(Error::Decode)?);
        let (width, height) = decoder.dimensions();
        Image::check_size(height as usize, width as usize)?;
        let orientation = decoder.orientation().map_err(Error::Decode)?;
        Ok(Self { decoder, orientation })
    }

    /// Height and width of the upright image.
    pub(crate) fn size(&self) -> (usize, usize) {
        let (width, height) = self.decoder.dimensions();
        let (height, width) = (height as usize, width as usize);
        if exchanges_sides(self.orientation) { (width, height) } else { (height, width) }
    }

    /// The upright image.
    pub(crate) fn decode(self) -> Result<Image> {
        let decoded = DynamicImage::from_decoder(self.decoder).map_err(Error::Decode)?;
        upright(decoded, self.orientation)
    }
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
