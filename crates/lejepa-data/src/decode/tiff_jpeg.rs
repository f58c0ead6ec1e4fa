//! TIFF files whose strips or tiles are JPEG files: the decoder believes every one of these about its size, whatever
//! the picture's is, and reads it as often as it is named.

use std::io::Cursor;

use tiff::decoder::Decoder;
use tiff::tags::Tag;

use super::jpeg::Outline;
use crate::{Error, Image, Result};

/// TIFF's number of this kind of compression.
const JPEG: u16 = 7;

/// Refuses JPEG files that are larger than their place in the picture, have too many scans, or overlap. What is
/// damaged otherwise is left to the decoder, which says more.
pub(super) fn check(file: &mut Decoder<Cursor<&[u8]>>, bytes: &[u8]) -> Result<()> {
    let mut numbers = |tag| file.find_tag_unsigned_vec::<u64>(tag).ok().flatten().unwrap_or_default();
    if numbers(Tag::Compression) != [u64::from(JPEG)] {
        return Ok(());
    }
    let places = [(Tag::StripOffsets, Tag::StripByteCounts), (Tag::TileOffsets, Tag::TileByteCounts)];
    let parts: Vec<(u64, u64)> = places
        .into_iter()
        .flat_map(|(offsets, lengths)| numbers(offsets).into_iter().zip(numbers(lengths)))
        .collect();
    let all = parts.iter().fold(0u64, |all, (_, length)| all.saturating_add(*length));
    if all > bytes.len() as u64 {
        return Err(Error::Damaged { problem: "its strips or tiles overlap" });
    }
    let tables = file.find_tag(Tag::JPEGTables).ok().flatten().and_then(|tables| tables.into_u8_vec().ok());
    // As the decoder puts them together: the tables without their end, the part without its start.
    let tables = tables.unwrap_or_default();
    let tables = tables.get(..tables.len().saturating_sub(2)).unwrap_or_default();
    let (width, height) = file.chunk_dimensions();
    for (offset, length) in parts {
        let Some(part) = part(bytes, offset, length) else { continue };
        let outline = match tables {
            [] => Outline::of(part),
            _ => Outline::of(&[tables, part.get(2..).unwrap_or_default()].concat()),
        };
        outline.check_scans(Image::SCAN_LIMIT)?;
        if outline.sides.is_none_or(|sides| sides.0 > height as usize || sides.1 > width as usize) {
            return Err(Error::Damaged {
                problem: "a strip or tile of it is larger than its place in the picture",
            });
        }
    }
    Ok(())
}

fn part(bytes: &[u8], offset: u64, length: u64) -> Option<&[u8]> {
    let start = usize::try_from(offset).ok()?;
    bytes.get(start..start.checked_add(usize::try_from(length).ok()?)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Grey, of 8 rows and 16 columns, with strips of so many rows, each of them this file.
    fn picture(jpeg: &[u8], strips: u32, length: u32) -> Vec<u8> {
        let short = |tag: u16, value: u32| (tag, 3u16, 1u32, value);
        // Offsets and lengths of several strips lie behind the entries.
        let lists = 8 + 2 + 9 * 12 + 4;
        let data = lists + 8 * strips;
        let several =
            |tag: u16, value: u32, list: u32| (tag, 4u16, strips, if strips == 1 { value } else { list });
        let entries = [
            short(256, 16),
            short(257, 8),
            short(258, 8),
            short(259, JPEG.into()),
            short(262, 1),
            several(273, data, lists),
            short(277, 1),
            short(278, 8 / strips),
            several(279, length, lists + 4 * strips),
        ];
        let mut file = b"II*\0\x08\0\0\0\x09\0".to_vec();
        for (tag, kind, count, value) in entries {
            file.extend([tag.to_le_bytes(), kind.to_le_bytes()].concat());
            file.extend([count.to_le_bytes(), value.to_le_bytes()].concat());
        }
        file.extend([0; 4]);
        for value in [data, length] {
            (0..strips).for_each(|_| file.extend(value.to_le_bytes()));
        }
        [&file[..], jpeg].concat()
    }

    fn jpeg(height: usize, width: usize) -> Vec<u8> {
        Image::from_pixels(height, width, 1, vec![90; height * width]).unwrap().to_jpeg(90).unwrap()
    }

    fn problem(picture: &[u8]) -> String {
        Image::decode(picture).unwrap_err().to_string()
    }

    #[test]
    fn a_strip_is_no_larger_than_its_place() {
        let fitting = jpeg(8, 16);
        let read = Image::decode(&picture(&fitting, 1, fitting.len() as u32)).unwrap();
        assert_eq!((read.height(), read.width(), read.pixels()[0].abs_diff(90) <= 2), (8, 16, true));
        for (height, width) in [(9, 16), (8, 17)] {
            let large = jpeg(height, width);
            let message = problem(&picture(&large, 1, large.len() as u32));
            assert!(message.contains("larger than its place in the picture"), "{message}");
        }
    }

    #[test]
    fn strips_do_not_overlap() {
        let half = jpeg(4, 16);
        let message = problem(&picture(&half, 2, half.len() as u32));
        assert_eq!(message, "the image is damaged: its strips or tiles overlap");
    }
}
