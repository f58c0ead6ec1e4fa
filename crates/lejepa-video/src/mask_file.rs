//! Masks as PNG files: indexed with the palette of DAVIS, or grey.
//!
//! The number of a pixel's colour is its object, 0 is background. In an indexed file 255 is void, a pixel that
//! is not judged; in a grey one it is object 1, since masks of one object are black and white.

use std::io::{BufReader, Cursor};
use std::path::Path;

use lejepa_data::write_atomically;
use ndarray::Array2;
use png::{BitDepth, ColorType, Transformations};

use super::palette::{VOID, palette};
use super::{Frame, LabelMap};
use crate::{Error, Result};

const WHITE: u8 = 255;

impl LabelMap {
    /// Reads a mask.
    pub fn read(path: &Path) -> Result<Self> {
        let failed = |source: std::io::Error| match source.kind() {
            std::io::ErrorKind::NotFound => lejepa_data::Error::NotFound { path: path.into() },
            _ => lejepa_data::Error::Io { action: "read", path: path.into(), source },
        };
        let file = lejepa_data::regular_file::open(path).map_err(failed)?;
        let invalid = |problem| Error::Mask { problem, path: path.into() };
        decode(BufReader::new(file)).map_err(invalid)
    }

    /// Writes an indexed PNG.
    pub fn write(&self, path: &Path) -> Result<()> {
        let bytes = self.to_png(path)?;
        Ok(write_atomically(path, |file| file.write_all(&bytes))?)
    }

    /// The bytes of an indexed PNG, which is to be at `path`.
    pub(super) fn to_png(&self, path: &Path) -> Result<Vec<u8>> {
        encode(self).map_err(|problem| Error::Mask { problem, path: path.into() })
    }
}

fn decode(file: impl std::io::BufRead + std::io::Seek) -> std::result::Result<LabelMap, String> {
    let broken = |error: png::DecodingError| error.to_string();
    let limits = png::Limits { bytes: 4 * Frame::PIXEL_LIMIT };
    let mut decoder = png::Decoder::new_with_limits(file, limits);
    decoder.set_transformations(Transformations::IDENTITY);
    let mut reader = decoder.read_info().map_err(broken)?;
    let info = reader.info();
    let (height, width) = (info.height as usize, info.width as usize);
    Frame::check_size(height, width).map_err(|error| error.to_string())?;
    let void = match info.color_type {
        ColorType::Indexed => Some(VOID),
        ColorType::Grayscale => None,
        other => return Err(format!("must be indexed or grey, got {other:?}")),
    };
    let bits = match info.bit_depth {
        BitDepth::Sixteen => return Err("must have at most 8 bits, got 16".into()),
        depth => depth as usize,
    };
    let mut packed = vec![0; reader.output_buffer_size().ok_or("too large")?];
    let line = reader.next_frame(&mut packed).map_err(broken)?.line_size;
    let labels = Array2::from_shape_fn((height, width), |(row, column)| {
        // Pixels of fewer bits share bytes, the first one in the highest bits.
        let byte = packed[row * line + column * bits / 8];
        let shift = 8 - bits - column * bits % 8;
        let value = (byte >> shift) & (u8::MAX >> (8 - bits));
        if void.is_none() && value == WHITE { 1 } else { value }
    });
    Ok(LabelMap { labels, void })
}

fn encode(map: &LabelMap) -> std::result::Result<Vec<u8>, String> {
    let broken = |error: png::EncodingError| error.to_string();
    let (height, width) = map.labels.dim();
    let mut bytes = Cursor::new(Vec::new());
    let mut encoder = png::Encoder::new(&mut bytes, width as u32, height as u32);
    encoder.set_color(ColorType::Indexed);
    encoder.set_depth(BitDepth::Eight);
    encoder.set_palette(palette());
    let mut writer = encoder.write_header().map_err(broken)?;
    let pixels: Vec<u8> = map.labels.iter().copied().collect();
    writer.write_image_data(&pixels).map_err(broken)?;
    writer.finish().map_err(broken)?;
    Ok(bytes.into_inner())
}

#[cfg(test)]
mod tests {
    use ndarray::array;

    use super::*;

    #[test]
    fn a_written_mask_is_read_back_and_has_the_colours_of_davis() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("masks/00000.png");
        let map = LabelMap { labels: array![[0, 1, 2], [21, 200, 255]], void: Some(255) };
        map.write(&path).unwrap();
        assert_eq!(LabelMap::read(&path).unwrap(), map);
        let seen = image::open(&path).unwrap().into_rgb8();
        assert_eq!(seen.get_pixel(1, 0).0, [128, 0, 0]);
        assert_eq!(seen.get_pixel(0, 1).0, [128, 64, 128]);
    }

    #[test]
    fn white_in_a_grey_mask_is_the_first_object() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("grey.png");
        lejepa_data::Image::from_pixels(1, 2, 1, vec![0, 255]).unwrap().write_png(&path).unwrap();
        let map = LabelMap::read(&path).unwrap();
        assert_eq!((map.objects(), map.void), (vec![1], None));
    }

    #[test]
    fn pixels_of_fewer_bits_are_taken_apart() {
        for (depth, row, expected) in [
            (BitDepth::One, [0b0110_0000, 0], [0, 1, 1, 0, 0]),
            (BitDepth::Two, [0b0111_0010, 0b0100_0000], [1, 3, 0, 2, 1]),
        ] {
            let mut bytes = Vec::new();
            let mut encoder = png::Encoder::new(&mut bytes, 5, 1);
            encoder.set_color(ColorType::Indexed);
            encoder.set_depth(depth);
            encoder.set_palette(vec![9; 12]);
            let mut writer = encoder.write_header().unwrap();
            writer.write_image_data(&row[..(5 * depth as usize).div_ceil(8)]).unwrap();
            writer.finish().unwrap();
            let map = decode(Cursor::new(bytes)).unwrap();
            assert_eq!(map.labels.into_iter().collect::<Vec<u8>>(), expected);
        }
    }

    #[test]
    fn colour_and_broken_files_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("colour.png");
        lejepa_data::Image::from_pixels(1, 1, 3, vec![0; 3]).unwrap().write_png(&path).unwrap();
        let message = LabelMap::read(&path).unwrap_err().to_string();
        assert!(message.contains("must be indexed or grey") && message.contains("colour.png"), "{message}");
        std::fs::write(&path, b"\x89PNG\r\n\x1a\n no").unwrap();
        assert!(LabelMap::read(&path).is_err());
        assert!(LabelMap::read(&folder.path().join("nowhere.png")).is_err());
    }
}
