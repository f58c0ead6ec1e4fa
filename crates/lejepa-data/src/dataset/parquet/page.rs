//! The values of a page: definition levels, which mark nulls, then values or references to a dictionary.

use ::parquet::basic::{Encoding, Type};
use ::parquet::column::page::Page;
use ::parquet::schema::types::ColumnDescriptor;
use bytes::Bytes;

/// Why a page cannot be read.
pub(super) type Problem = String;

/// One per row; none for a null.
pub(super) type Values = Vec<Option<Bytes>>;

pub(super) fn is_dictionary_encoded(page: &Page) -> bool {
    matches!(page.encoding(), Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY)
}

/// The values of a dictionary page.
pub(super) fn decode_dictionary(page: &Page, kind: Type) -> Result<Vec<Bytes>, Problem> {
    if !page.is_dictionary_page() {
        return Err("a page stands in the place of the dictionary".into());
    }
    decode_plain(page.buffer(), page.num_values() as usize, kind)
}

/// The rows of a data page. Values are slices of the page or the dictionary.
pub(super) fn decode(
    page: &Page,
    rows: usize,
    column: &ColumnDescriptor,
    dictionary: &[Bytes],
) -> Result<Values, Problem> {
    let (levels, values) = split_levels(page, column.max_def_level() > 0)?;
    let present = match levels {
        None => vec![true; rows],
        Some(levels) => {
            let full = u32::try_from(column.max_def_level()).unwrap_or_default();
            let levels = decode_hybrid(&levels, u32::BITS - full.leading_zeros(), rows)?;
            levels.into_iter().map(|level| level == full).collect()
        }
    };
    let count = present.iter().filter(|&&is_present| is_present).count();
    let values = match page.encoding() {
        Encoding::PLAIN => decode_plain(&values, count, column.physical_type())?,
        _ if is_dictionary_encoded(page) => look_up(&values, count, dictionary)?,
        other => return Err(format!("encoding {other} is not supported")),
    };
    let mut values = values.into_iter();
    Ok(present.into_iter().map(|is_present| is_present.then(|| values.next()).flatten()).collect())
}

/// Definition levels, if the column may have nulls, and the rest of the page.
fn split_levels(page: &Page, has_levels: bool) -> Result<(Option<Bytes>, Bytes), Problem> {
    let mut rest = page.buffer().clone();
    let mut take = |length: usize| {
        if length > rest.len() { Err("a page ends too early") } else { Ok(rest.split_to(length)) }
    };
    let levels = match page {
        Page::DataPage { .. } if !has_levels => None,
        Page::DataPage { def_level_encoding: Encoding::RLE, .. } => {
            let length = u32_at(&take(4)?, 0).ok_or("a page ends too early")?;
            Some(take(length as usize)?)
        }
        Page::DataPage { def_level_encoding, .. } => {
            return Err(format!("levels in encoding {def_level_encoding} are not supported"));
        }
        Page::DataPageV2 { rep_levels_byte_len, def_levels_byte_len, .. } => {
            take(*rep_levels_byte_len as usize)?;
            let levels = take(*def_levels_byte_len as usize)?;
            has_levels.then_some(levels)
        }
        Page::DictionaryPage { .. } => return Err("a dictionary stands in the place of a page".into()),
    };
    Ok((levels, rest))
}

/// Values one after another; byte arrays after their lengths.
fn decode_plain(bytes: &Bytes, count: usize, kind: Type) -> Result<Vec<Bytes>, Problem> {
    let mut values = Vec::new();
    let mut at = 0;
    for _ in 0..count {
        let length = match kind {
            Type::INT32 => 4,
            Type::INT64 => 8,
            Type::BYTE_ARRAY => {
                let length = u32_at(bytes, at).ok_or("a page ends too early")?;
                at += 4;
                length as usize
            }
            other => return Err(format!("values of type {other} are not supported")),
        };
        if length > bytes.len() - at {
            return Err("a page ends too early".into());
        }
        values.push(bytes.slice(at..at + length));
        at += length;
    }
    Ok(values)
}

fn look_up(bytes: &Bytes, count: usize, dictionary: &[Bytes]) -> Result<Vec<Bytes>, Problem> {
    let Some((&width, references)) = bytes.split_first() else {
        return if count == 0 { Ok(Vec::new()) } else { Err("a page ends too early".into()) };
    };
    let references = decode_hybrid(references, width.into(), count)?;
    let value = |reference| dictionary.get(reference as usize).cloned();
    let values = references.into_iter().map(value).collect::<Option<Vec<Bytes>>>();
    values.ok_or("a reference beyond the dictionary".into())
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
fn split_varint(bytes: &[u8]) -> Option<(usize, &[u8])> {
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

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
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
        let plain = Bytes::from_static(b"\x02\0\0\0ab\xff\xff\xff\xff");
        assert_eq!(decode_plain(&plain, 1, Type::BYTE_ARRAY).unwrap(), [&b"ab"[..]]);
        for (count, kind) in [(2, Type::BYTE_ARRAY), (3, Type::BYTE_ARRAY), (u32::MAX as usize, Type::INT64)]
        {
            assert!(decode_plain(&plain, count, kind).is_err());
        }
        assert!(look_up(&Bytes::from_static(&[1, 2, 1]), 1, &[Bytes::new()]).is_err());
    }
}
