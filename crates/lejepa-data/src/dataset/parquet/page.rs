//! Where the values of a page are: levels mark nulls, then come values or references to a dictionary.

use std::ops::Range;

use ::parquet::basic::Type;
use bytes::Bytes;

use super::content::Content;

/// Why a page cannot be read.
pub(super) type Problem = String;

/// A value's place in the content of its page. Pages hold less than 2 GB.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Place {
    start: u32,
    length: u32,
}

impl Place {
    pub(super) fn range(self) -> Range<usize> {
        self.start as usize..self.start as usize + self.length as usize
    }
}

/// Which rows have a value. Levels below the highest are nulls, of the value or of what it is part of.
pub(super) fn present_rows(levels: &[u8], highest: i16, rows: usize) -> Result<Vec<bool>, Problem> {
    let highest = u32::try_from(highest).unwrap_or_default();
    let levels = decode_hybrid(levels, u32::BITS - highest.leading_zeros(), rows)?;
    Ok(levels.into_iter().map(|level| level == highest).collect())
}

/// Finds values that stand one after another; byte arrays stand after their lengths.
pub(super) fn find_values(
    content: &Content,
    first: usize,
    count: usize,
    kind: Type,
) -> Result<Vec<Place>, Problem> {
    let mut places = Vec::new();
    let mut at = first;
    // The part of the content that was unpacked last.
    let (mut around, mut bytes) = content.around(&(first..first))?;
    for _ in 0..count {
        let length = match kind {
            Type::INT32 => 4,
            Type::INT64 => 8,
            Type::BYTE_ARRAY => {
                let range = at..at.saturating_add(4);
                if range.end > around + bytes.len() {
                    (around, bytes) = content.around(&range)?;
                }
                let length = range.start.checked_sub(around).and_then(|at| bytes.get(at..)?.first_chunk());
                at = range.end;
                u32::from_le_bytes(*length.ok_or("a page ends too early")?)
            }
            other => return Err(format!("values of type {other} are not supported")),
        };
        let start = u32::try_from(at).map_err(|_| "a page is too large")?;
        at = at.saturating_add(length as usize);
        if at > content.len() {
            return Err("a page ends too early".into());
        }
        places.push(Place { start, length });
    }
    Ok(places)
}

/// Looks references to a dictionary up: their width in bits, then the numbers.
pub(super) fn look_up(
    bytes: &Bytes,
    count: usize,
    dictionary: &[Option<Place>],
) -> Result<Vec<Place>, Problem> {
    if count == 0 {
        return Ok(Vec::new());
    }
    let (&width, references) = bytes.split_first().ok_or("a page ends too early")?;
    let references = decode_hybrid(references, width.into(), count)?;
    let places =
        references.into_iter().map(|reference| dictionary.get(reference as usize).copied().flatten());
    places.collect::<Option<_>>().ok_or("a reference beyond the dictionary".into())
}

/// Numbers of `width` bits: runs of one value mixed with groups of eight values in `width` bytes.
fn decode_hybrid(mut bytes: &[u8], width: u32, count: usize) -> Result<Vec<u32>, Problem> {
    if width > u32::BITS {
        return Err(format!("numbers of {width} bits"));
    }
    let mut numbers = Vec::new();
    while numbers.len() < count {
        let (header, rest) = split_varint(bytes).ok_or("a page ends too early")?;
        let missing = count - numbers.len();
        let length =
            if header & 1 == 0 { width.div_ceil(8) as usize } else { (header >> 1) * width as usize };
        // The last group may lack its padding.
        let (packed, rest) = rest.split_at(length.min(rest.len()));
        bytes = rest;
        if header & 1 == 0 {
            let value = number_at(packed, 0, width).ok_or("a page ends too early")?;
            numbers.extend(std::iter::repeat_n(value, missing.min(header >> 1)));
            continue;
        }
        for index in 0..missing.min((header >> 1) * 8) {
            let value = number_at(packed, index * width as usize, width).ok_or("a page ends too early")?;
            numbers.push(value);
        }
    }
    Ok(numbers)
}

/// Seven bits per byte, the lowest first.
pub(super) fn split_varint(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let mut value = 0u32;
    for (index, &byte) in bytes.iter().enumerate().take(5) {
        value |= u32::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            return Some((value as usize, &bytes[index + 1..]));
        }
    }
    None
}

/// The number of `width` bits that starts at a bit; the lowest bits come first.
fn number_at(bytes: &[u8], bit: usize, width: u32) -> Option<u32> {
    let end = (bit + width as usize).div_ceil(8);
    let touched = bytes.get(bit / 8..end)?;
    let wide = touched.iter().rev().fold(0u64, |wide, &byte| wide << 8 | u64::from(byte));
    u32::try_from(wide >> (bit % 8) & ((1 << width) - 1)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_and_groups_are_decoded() {
        // Five times 3; then 0 to 7 in three bits each, as in the description of the format.
        let bytes = [0x0a, 0x03, 0x03, 0b1000_1000, 0b1100_0110, 0b1111_1010];
        let expected = [3, 3, 3, 3, 3, 0, 1, 2, 3, 4, 5, 6, 7];
        assert_eq!(decode_hybrid(&bytes, 3, 13).unwrap(), expected);
        assert_eq!(decode_hybrid(&bytes, 3, 7).unwrap(), expected[..7], "padding is left out");
        assert_eq!(decode_hybrid(&[0x06], 0, 3).unwrap(), [0; 3], "zero bits");
        let wide = [0x03, 0xff, 0xff, 0xff, 0xff, 0xef, 0xbe, 0xad, 0xde];
        assert_eq!(decode_hybrid(&wide, 32, 2).unwrap(), [u32::MAX, 0xdead_beef]);
    }

    #[test]
    fn damaged_numbers_are_refused() {
        for bytes in [&[][..], &[0x80], &[0xff; 9], &[0x03, 0], &[0; 50]] {
            assert!(decode_hybrid(bytes, 3, 8).is_err(), "{bytes:?}");
        }
        assert!(decode_hybrid(&[2, 0], 33, 1).is_err());
    }

    #[test]
    fn lengths_are_not_believed() {
        let content = Content::Mapped(Bytes::from_static(b"\x02\0\0\0ab\xff\xff\xff\xff"));
        let places = find_values(&content, 0, 1, Type::BYTE_ARRAY).unwrap();
        assert_eq!(places[0].range(), 4..6);
        for (count, kind) in [(2, Type::BYTE_ARRAY), (3, Type::BYTE_ARRAY), (usize::MAX, Type::INT64)] {
            assert!(find_values(&content, 0, count, kind).is_err());
        }
        assert!(find_values(&content, 11, 1, Type::INT32).is_err());
        assert!(look_up(&Bytes::from_static(&[1, 2, 1]), 1, &[Some(places[0])]).is_err());
    }
}
