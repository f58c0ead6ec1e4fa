//! An image in memory: 8-bit pixels, row by row, channels interleaved.

use std::path::Path;

use ::image::codecs::jpeg::JpegEncoder;
use ::image::codecs::png::PngEncoder;
use ::image::{ExtendedColorType, ImageEncoder};

use crate::decode::{DecodeLimits, Encoded};
#[cfg(feature = "datasets")]
use crate::resize::Resizer;
use crate::{Error, Result, encoded_file, write_atomically};

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

impl Image {
    /// Larger images are refused before they are decoded.
    pub const PIXEL_LIMIT: usize = 1 << 27;
    /// Longer image files are refused before they are read: one of all pixels in 8 bits has less.
    pub const FILE_LIMIT: u64 = 1 << 30;
    /// JPEG files of more scans are refused before they are decoded. It is also the decoder's own limit, far above
    /// the ten or twenty that progressive files have.
    pub const SCAN_LIMIT: usize = 100;

    pub(crate) fn check_size(height: usize, width: usize) -> Result<()> {
        let fits = height.checked_mul(width).is_some_and(|pixels| (1..=Self::PIXEL_LIMIT).contains(&pixels));
        if fits { Ok(()) } else { Err(Error::ImageSize { height, width, limit: Self::PIXEL_LIMIT }) }
    }

    /// From `height * width * channels` interleaved values.
    pub fn from_pixels(height: usize, width: usize, channels: usize, pixels: Vec<u8>) -> Result<Self> {
        Self::check_size(height, width)?;
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

    pub(crate) fn black(height: usize, width: usize, channels: usize) -> Result<Self> {
        Self::check_size(height, width)?;
        Self::from_pixels(height, width, channels, vec![0; height * width * channels])
    }

    /// Reads and decodes a file.
    pub fn open(path: &Path) -> Result<Self> {
        let bytes = encoded_file::read(path).map_err(|error| match error {
            Error::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound => {
                Error::NotFound { path: path.into() }
            }
            Error::FileSize { .. } => Error::sample(path.display().to_string(), error),
            _ => error,
        })?;
        Encoded::open(&bytes)
            .and_then(Encoded::decode)
            .map_err(|error| Error::sample(path.display().to_string(), error))
    }

    /// Decodes an image file that is in memory.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        Encoded::open(bytes)?.decode()
    }

    /// The same with grey for what is missing of a JPEG file that is cut off or damaged.
    #[cfg(feature = "datasets")]
    pub(crate) fn decode_cut(bytes: &[u8]) -> Result<Self> {
        Encoded::open(bytes)?.decode_what_is_there()
    }

    /// The same for files from strangers: more than the limits, or than so many pixels, is refused before it is
    /// decoded.
    pub fn decode_within(bytes: &[u8], limits: impl Into<DecodeLimits>) -> Result<Self> {
        Encoded::open_within(bytes, limits.into())?.decode()
    }

    /// Height and width that the header of such a file tells; nothing is decoded.
    pub fn size_within(bytes: &[u8], limits: impl Into<DecodeLimits>) -> Result<(usize, usize)> {
        Ok(Encoded::open_within(bytes, limits.into())?.size())
    }

    /// The bytes of a PNG file that says in a text chunk what made it, see [`Claim`](crate::Claim).
    pub fn to_marked_png(&self, mark: &str) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let failed = |error: png::EncodingError| Error::PngEncode(error);
        let mut encoder = png::Encoder::new(&mut bytes, self.width as u32, self.height as u32);
        encoder.set_color(if self.channels == 1 { png::ColorType::Grayscale } else { png::ColorType::Rgb });
        encoder.set_depth(png::BitDepth::Eight);
        encoder.add_text_chunk("Software".into(), mark.into()).map_err(failed)?;
        let mut writer = encoder.write_header().map_err(failed)?;
        writer.write_image_data(&self.pixels).map_err(failed)?;
        writer.finish().map_err(failed)?;
        Ok(bytes)
    }

    /// Writes a PNG file.
    pub fn write_png(&self, path: &Path) -> Result<()> {
        write_atomically(path, |file| {
            PngEncoder::new(file)
                .write_image(&self.pixels, self.width as u32, self.height as u32, self.colour())
                .map_err(std::io::Error::other)
        })
    }

    /// The bytes of a JPEG file; `quality` is between 1 and 100.
    pub fn to_jpeg(&self, quality: u8) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        JpegEncoder::new_with_quality(&mut bytes, quality)
            .write_image(&self.pixels, self.width as u32, self.height as u32, self.colour())
            .map_err(Error::Encode)?;
        Ok(bytes)
    }

    fn colour(&self) -> ExtendedColorType {
        if self.channels == 1 { ExtendedColorType::L8 } else { ExtendedColorType::Rgb8 }
    }

    /// The same image in another size, antialiased.
    #[cfg(feature = "datasets")]
    pub fn resized(&self, height: usize, width: usize) -> Result<Self> {
        Self::check_size(height, width)?;
        let mut pixels = Vec::new();
        Resizer::default().crop(self, self.whole(), (height, width), &mut pixels)?;
        Self::from_pixels(height, width, self.channels, pixels)
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

    pub(crate) fn whole(&self) -> CropBox {
        CropBox { top: 0, left: 0, height: self.height, width: self.width }
    }
}

/// ITU-R 601 luma as Pillow rounds it.
fn luma(rgb: &[u8]) -> u8 {
    let [red, green, blue] = [rgb[0], rgb[1], rgb[2]].map(u32::from);
    ((red * 19595 + green * 38470 + blue * 7471 + 0x8000) >> 16) as u8
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
    fn a_limit_of_pixels_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("image.png");
        Image::from_pixels(4, 5, 1, vec![7; 20]).unwrap().write_png(&path).unwrap();
        let bytes = std::fs::read(path).unwrap();
        assert!(Image::decode_within(&bytes, 20).is_ok());
        assert_eq!(Image::size_within(&bytes, 20).unwrap(), (4, 5));
        assert!(Image::size_within(&bytes, 19).is_err());
        let message = Image::decode_within(&bytes, 19).unwrap_err().to_string();
        assert_eq!(message, "image must have 1 to 19 pixels, got 4x5");
    }

    #[test]
    fn a_written_png_is_read_back_unchanged() {
        let folder = tempfile::tempdir().unwrap();
        for (channels, pixels) in [(1, vec![1, 2, 250, 4, 5, 6]), (3, (0..18).collect())] {
            let image = Image::from_pixels(2, 3, channels, pixels).unwrap();
            let path = folder.path().join("image.png");
            image.write_png(&path).unwrap();
            assert_eq!(Image::open(&path).unwrap(), image);
        }
    }

    #[test]
    fn a_jpeg_is_read_back_nearly_unchanged() {
        for channels in [1, 3] {
            let image = Image::from_pixels(8, 16, channels, vec![90; 8 * 16 * channels]).unwrap();
            let read = Image::decode(&image.to_jpeg(90).unwrap()).unwrap();
            assert_eq!((read.height(), read.width(), read.channels()), (8, 16, channels));
            assert!(read.pixels().iter().all(|value| value.abs_diff(90) <= 2));
        }
        // More than the format's 16 bits can say.
        let long = Image::from_pixels(1, 70_000, 1, vec![0; 70_000]).unwrap();
        assert!(long.to_jpeg(90).is_err());
    }

    #[test]
    #[cfg(feature = "datasets")]
    fn an_image_is_resized_as_a_whole() {
        let image = Image::from_pixels(2, 4, 1, vec![0, 0, 200, 200, 0, 0, 200, 200]).unwrap();
        // Those of Pillow's `resize((2, 1), BILINEAR)`.
        assert_eq!(image.resized(1, 2).unwrap().pixels(), [29, 171]);
        assert!(image.resized(0, 2).is_err());
    }

    #[test]
    fn grey_and_colour_convert_both_ways() {
        let grey = Image::from_pixels(1, 2, 1, vec![7, 200]).unwrap();
        let colour = grey.clone().with_channels(3);
        assert_eq!(colour.pixels(), [7, 7, 7, 200, 200, 200]);
        assert_eq!(colour.with_channels(1), grey);
    }
}
