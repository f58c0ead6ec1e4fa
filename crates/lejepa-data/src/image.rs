//! An image in memory: 8-bit pixels, row by row, channels interleaved.

use std::io::{BufRead, Cursor, Seek};
use std::path::Path;

use ::image::{DynamicImage, ImageDecoder, ImageError, ImageReader};
use fast_image_resize as resize;

use crate::{Error, Result};

/// An 8-bit image, grey (1 channel) or colour (3 channels).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    height: usize,
    width: usize,
    channels: usize,
    pixels: Vec<u8>,
}

/// A rectangle of whole pixels inside an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CropBox {
    /// First row.
    pub top: usize,
    /// First column.
    pub left: usize,
    /// Rows.
    pub height: usize,
    /// Columns.
    pub width: usize,
}

/// A rectangle of an image in fractions of pixels.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FractionalBox {
    pub(crate) top: f64,
    pub(crate) left: f64,
    pub(crate) height: f64,
    pub(crate) width: f64,
}

impl Image {
    /// Larger images are refused before they are decoded.
    pub const PIXEL_LIMIT: usize = 1 << 27;

    /// From `height * width * channels` interleaved values.
    pub fn from_pixels(height: usize, width: usize, channels: usize, pixels: Vec<u8>) -> Result<Self> {
        check_size(height, width)?;
        if channels != 1 && channels != 3 {
            return Err(Error::Setting {
                field: "channels",
                expected: "1 (grey) or 3 (colour)".into(),
                got: channels.to_string(),
            });
        }
        let expected = height * width * channels;
        if pixels.len() != expected {
            return Err(Error::BufferLength { what: "image", expected, got: pixels.len() });
        }
        Ok(Self { height, width, channels, pixels })
    }

    /// Reads and decodes a file.
    pub fn open(path: &Path) -> Result<Self> {
        let file = std::fs::File::open(path).map_err(|source| match source.kind() {
            std::io::ErrorKind::NotFound => Error::NotFound { path: path.into() },
            _ => Error::Io { action: "read", path: path.into(), source },
        })?;
        decode(std::io::BufReader::new(file)).map_err(|failure| match failure {
            DecodeFailure::Image(source) => Error::Decode { path: path.into(), source },
            DecodeFailure::Size(error) => error,
        })
    }

    /// Decodes an image file that is in memory.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        decode(Cursor::new(bytes)).map_err(|failure| match failure {
            DecodeFailure::Image(source) => Error::DecodeBytes(source),
            DecodeFailure::Size(error) => error,
        })
    }

    /// Rows.
    pub fn height(&self) -> usize {
        self.height
    }

    /// Columns.
    pub fn width(&self) -> usize {
        self.width
    }

    /// 1 for grey, 3 for colour.
    pub fn channels(&self) -> usize {
        self.channels
    }

    /// Interleaved values, row by row.
    pub fn pixels(&self) -> &[u8] {
        &self.pixels
    }

    pub(crate) fn pixels_mut(&mut self) -> &mut [u8] {
        &mut self.pixels
    }

    /// The same image in grey or colour.
    pub fn with_channels(self, channels: usize) -> Self {
        let pixels = match (self.channels, channels) {
            (1, 3) => self.pixels.iter().flat_map(|&grey| [grey; 3]).collect(),
            (3, 1) => self.pixels.chunks_exact(3).map(luma).collect(),
            _ => return self,
        };
        Self { channels, pixels, ..self }
    }

    /// Cuts a rectangle out and resizes it, antialiased; pixels outside the rectangle play no part.
    pub fn resized_crop(&self, crop: CropBox, height: usize, width: usize) -> Result<Self> {
        let source = self.view()?;
        let [top, left, rows, columns] = [crop.top, crop.left, crop.height, crop.width].map(|n| n as u32);
        let cropped = resize::images::CroppedImage::new(&source, left, top, columns, rows)
            .map_err(|error| Error::Resize(error.to_string()))?;
        let options = resize::ResizeOptions::new()
            .resize_alg(resize::ResizeAlg::Convolution(resize::FilterType::Bilinear));
        self.resize_from(&cropped, height, width, &options)
    }

    /// Resizes a fractional rectangle (bicubic, antialiased) as if the whole image were resized and
    /// then cropped: pixels around the rectangle take part in the filter.
    pub(crate) fn resized_part(&self, part: FractionalBox, height: usize, width: usize) -> Result<Self> {
        let options = resize::ResizeOptions::new()
            .resize_alg(resize::ResizeAlg::Convolution(resize::FilterType::CatmullRom));
        // Columns first, as Pillow does: values are cut to 8 bits in between.
        let columns = options.crop(part.left, 0., part.width, self.height as f64);
        let narrowed = self.resize_from(&self.view()?, self.height, width, &columns)?;
        let rows = options.crop(0., part.top, width as f64, part.height);
        narrowed.resize_from(&narrowed.view()?, height, width, &rows)
    }

    /// Mirrors left and right.
    pub fn flip_horizontally(&mut self) {
        let channels = self.channels;
        for row in self.pixels.chunks_exact_mut(self.width * channels) {
            for column in 0..row.len() / channels / 2 {
                let mirror = row.len() / channels - 1 - column;
                for channel in 0..channels {
                    row.swap(column * channels + channel, mirror * channels + channel);
                }
            }
        }
    }

    fn view(&self) -> Result<resize::images::ImageRef<'_>> {
        let (width, height) = (self.width as u32, self.height as u32);
        resize::images::ImageRef::new(width, height, &self.pixels, self.pixel_type())
            .map_err(|error| Error::Resize(error.to_string()))
    }

    fn resize_from(
        &self,
        source: &impl resize::IntoImageView,
        height: usize,
        width: usize,
        options: &resize::ResizeOptions,
    ) -> Result<Self> {
        check_size(height, width)?;
        let mut target = resize::images::Image::new(width as u32, height as u32, self.pixel_type());
        resize::Resizer::new()
            .resize(source, &mut target, options)
            .map_err(|error| Error::Resize(error.to_string()))?;
        Ok(Self { height, width, channels: self.channels, pixels: target.into_vec() })
    }

    fn pixel_type(&self) -> resize::PixelType {
        if self.channels == 1 { resize::PixelType::U8 } else { resize::PixelType::U8x3 }
    }
}

/// ITU-R 601 luma as Pillow rounds it.
pub(crate) fn luma(rgb: &[u8]) -> u8 {
    let [red, green, blue] = [rgb[0], rgb[1], rgb[2]].map(u32::from);
    ((red * 19595 + green * 38470 + blue * 7471 + 0x8000) >> 16) as u8
}

fn check_size(height: usize, width: usize) -> Result<()> {
    let fits = height.checked_mul(width).is_some_and(|pixels| (1..=Image::PIXEL_LIMIT).contains(&pixels));
    if fits { Ok(()) } else { Err(Error::ImageSize { height, width, limit: Image::PIXEL_LIMIT }) }
}

enum DecodeFailure {
    Image(ImageError),
    Size(Error),
}

impl From<ImageError> for DecodeFailure {
    fn from(error: ImageError) -> Self {
        Self::Image(error)
    }
}

fn decode(reader: impl BufRead + Seek) -> std::result::Result<Image, DecodeFailure> {
    let reader = ImageReader::new(reader).with_guessed_format().map_err(ImageError::IoError)?;
    let mut decoder = reader.into_decoder()?;
    let (width, height) = decoder.dimensions();
    check_size(height as usize, width as usize).map_err(DecodeFailure::Size)?;
    let orientation = decoder.orientation()?;
    let mut decoded = DynamicImage::from_decoder(decoder)?;
    decoded.apply_orientation(orientation);
    let (height, width) = (decoded.height() as usize, decoded.width() as usize);
    let (channels, pixels) = if decoded.color().has_color() {
        (3, decoded.into_rgb8().into_raw())
    } else {
        (1, decoded.into_luma8().into_raw())
    };
    Image::from_pixels(height, width, channels, pixels).map_err(DecodeFailure::Size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_no_image_is_an_error_that_names_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("broken.png");
        std::fs::write(&path, b"\x89PNG\r\n\x1a\n then nothing").unwrap();
        assert!(Image::open(&path).unwrap_err().to_string().contains("broken.png"));
        assert!(Image::decode(b"").is_err());
    }

    #[test]
    fn an_enormous_image_is_refused_before_it_is_decoded() {
        // A PNG header that promises 100,000 x 100,000 pixels.
        let mut header = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
        header.extend(100_000u32.to_be_bytes());
        header.extend(100_000u32.to_be_bytes());
        header.extend([8, 2, 0, 0, 0]);
        header.extend([0x6e, 0x7b, 0x4d, 0x16]);
        assert!(Image::decode(&header).is_err());
    }

    #[test]
    fn grey_and_colour_convert_both_ways() {
        let grey = Image::from_pixels(1, 2, 1, vec![7, 200]).unwrap();
        let colour = grey.clone().with_channels(3);
        assert_eq!(colour.pixels(), [7, 7, 7, 200, 200, 200]);
        assert_eq!(colour.with_channels(1), grey);
    }

    #[test]
    fn a_flip_mirrors_whole_pixels() {
        let mut image = Image::from_pixels(1, 3, 3, vec![1, 2, 3, 4, 5, 6, 7, 8, 9]).unwrap();
        image.flip_horizontally();
        assert_eq!(image.pixels(), [7, 8, 9, 4, 5, 6, 1, 2, 3]);
    }
}
