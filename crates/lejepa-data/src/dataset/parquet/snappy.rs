//! Snappy pages, unpacked in parts.
//!
//! ```text
//! length            of the unpacked bytes, seven bits per byte
//! literal | copy    ... a literal brings bytes, a copy repeats bytes that came before
//! ```
//!
//! Compressors work on 64 KB at a time and copy from within them only. Where that holds, a page falls
//! into blocks that are unpacked alone: one image does not cost a page of a thousand.

use std::ops::Range;

use bytes::Bytes;

use super::page::{Problem, split_varint};

/// A packed page and where its blocks begin.
#[derive(Debug)]
pub(super) struct Blocks {
    packed: Bytes,
    /// Ends with the end of the page.
    starts: Vec<Start>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Start {
    packed: usize,
    unpacked: usize,
}

enum Element {
    Literal(Range<usize>),
    Copy { back: usize, length: usize },
}

const BLOCK: usize = 1 << 16;

impl Blocks {
    /// Walks all elements without unpacking them.
    pub(super) fn find(packed: Bytes) -> Result<Self, Problem> {
        let (length, rest) = split_varint(&packed).ok_or("a page ends too early")?;
        let mut at = Start { packed: packed.len() - rest.len(), unpacked: 0 };
        let mut starts = vec![at];
        while at.packed < packed.len() {
            if starts.last().is_some_and(|last| at.unpacked - last.unpacked >= BLOCK) {
                starts.push(at);
            }
            let (element, next) = element_at(&packed, at.packed).ok_or("a page ends too early")?;
            at.packed = next;
            at.unpacked += match element {
                Element::Literal(bytes) => bytes.len(),
                Element::Copy { back, length } => {
                    let source = at.unpacked.checked_sub(back).ok_or("a copy from before the page")?;
                    // Blocks that the copy reaches across become one.
                    while starts.last().is_some_and(|last| last.unpacked > source) {
                        starts.pop();
                    }
                    length
                }
            };
        }
        if at.unpacked != length {
            return Err(format!("a page unpacks to {} bytes, expected {length}", at.unpacked));
        }
        starts.push(at);
        Ok(Self { packed, starts })
    }

    /// Bytes of the unpacked page.
    pub(super) fn len(&self) -> usize {
        self.starts.last().map_or(0, |end| end.unpacked)
    }

    /// Whole blocks around a range of the unpacked page, and where they begin in it.
    pub(super) fn unpack(&self, range: &Range<usize>) -> Result<(usize, Bytes), Problem> {
        let first = self.starts.partition_point(|start| start.unpacked <= range.start).saturating_sub(1);
        let after = self.starts.partition_point(|start| start.unpacked < range.end);
        let (Some(first), Some(after)) = (self.starts.get(first), self.starts.get(after)) else {
            return Err("a page ends too early".into());
        };
        let mut bytes = Vec::with_capacity(after.unpacked.saturating_sub(first.unpacked));
        let mut at = first.packed;
        while at < after.packed {
            let (element, next) = element_at(&self.packed, at).ok_or("a page ends too early")?;
            at = next;
            match element {
                Element::Literal(place) => bytes.extend_from_slice(&self.packed[place]),
                Element::Copy { back, length } => repeat(&mut bytes, back, length)?,
            }
        }
        Ok((first.unpacked, bytes.into()))
    }
}

/// The element at a place, and the place of the next one.
fn element_at(packed: &[u8], at: usize) -> Option<(Element, usize)> {
    let tag = usize::from(*packed.get(at)?);
    let number = |width: usize| {
        let bytes = packed.get(at + 1..at + 1 + width)?;
        Some(bytes.iter().rev().fold(0usize, |number, &byte| number << 8 | usize::from(byte)))
    };
    let (length, width) = (1 + (tag >> 2), [0, 1, 2, 4][tag & 3]);
    if width == 0 {
        // Lengths beyond 60 take one to four bytes of their own.
        let width = length.saturating_sub(60);
        let length = if width == 0 { length } else { 1 + number(width)? };
        let start = at + 1 + width;
        let end = start.checked_add(length).filter(|&end| end <= packed.len())?;
        return Some((Element::Literal(start..end), end));
    }
    let back = number(width)?;
    let (back, length) = match width {
        1 => ((tag >> 5) << 8 | back, 4 + (tag >> 2 & 7)),
        _ => (back, length),
    };
    (back > 0).then_some((Element::Copy { back, length }, at + 1 + width))
}

/// Appends what stands `back` bytes before the end; it may overlap with itself.
fn repeat(bytes: &mut Vec<u8>, back: usize, length: usize) -> Result<(), Problem> {
    let start = bytes.len().checked_sub(back).ok_or("a copy from before its block")?;
    if back >= length {
        bytes.extend_from_within(start..start + length);
    } else {
        for at in start..start + length {
            bytes.push(bytes[at]);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unpack(packed: &[u8], range: Range<usize>) -> Result<Vec<u8>, Problem> {
        let blocks = Blocks::find(Bytes::copy_from_slice(packed))?;
        let (start, bytes) = blocks.unpack(&range)?;
        Ok(bytes[range.start - start..range.end - start].to_vec())
    }

    #[test]
    fn literals_and_copies_are_unpacked() {
        // "abcd", four bytes from four before, "x", six times the last byte, three bytes from eight before.
        let packed = b"\x12\x0cabcd\x01\x04\x00x\x09\x01\x0a\x08\x00";
        assert_eq!(unpack(packed, 0..18).unwrap(), b"abcdabcdxxxxxxxdxx");
        assert_eq!(unpack(packed, 3..6).unwrap(), b"dab");
        assert_eq!(unpack(packed, 18..18).unwrap(), b"");
    }

    #[test]
    fn blocks_are_unpacked_alone_unless_copies_join_them() {
        let literal = |byte: u8| {
            let mut element = vec![61 << 2, 0xff, 0xff];
            element.extend(vec![byte; BLOCK]);
            element
        };
        // Three times 64 KB, then a copy of four bytes: from the last of them, or from the first.
        let length = [0x84, 0x80, 0x0c];
        let alone = [&length[..], &literal(1), &literal(2), &literal(3), &[0x0e, 4, 0]].concat();
        let blocks = Blocks::find(alone.into()).unwrap();
        let starts: Vec<_> = blocks.starts.iter().map(|start| start.unpacked).collect();
        assert_eq!(starts, [0, BLOCK, 2 * BLOCK, 3 * BLOCK + 4]);
        let range = 2 * BLOCK - 1..2 * BLOCK + 1;
        let (start, bytes) = blocks.unpack(&range).unwrap();
        assert_eq!((start, bytes.len(), &bytes[BLOCK - 1..BLOCK + 1]), (BLOCK, 2 * BLOCK + 4, &[2, 3][..]));

        let back = u32::try_from(2 * BLOCK + 1).unwrap().to_le_bytes();
        let joined = [&length[..], &literal(1), &literal(2), &literal(3), &[0x0f], &back].concat();
        let blocks = Blocks::find(joined.into()).unwrap();
        let starts: Vec<_> = blocks.starts.iter().map(|start| start.unpacked).collect();
        assert_eq!(starts, [0, 3 * BLOCK + 4]);
        let (_, bytes) = blocks.unpack(&(3 * BLOCK..3 * BLOCK + 4)).unwrap();
        assert_eq!(bytes[3 * BLOCK..], [1, 2, 2, 2]);
    }

    #[test]
    fn damaged_pages_are_refused() {
        let good = b"\x12\x0cabcd\x01\x04\x00x\x09\x01\x0a\x08\x00";
        for length in 0..good.len() {
            assert!(unpack(&good[..length], 0..1).is_err(), "{length} bytes");
        }
        assert!(unpack(b"\x08\x0cabcd\x01\x05", 0..8).unwrap_err().contains("before the page"));
        assert!(unpack(b"\x08\x0cabcd\x01\x00", 0..8).is_err(), "a copy of what is not yet there");
        assert!(unpack(b"\x05\xfc\xff\xff\xff\xffab", 0..1).is_err(), "a literal of 4 GB");
        assert!(unpack(b"\x09\x0cabcd\x01\x04", 0..1).unwrap_err().contains("expected 9"));
        assert!(unpack(good, 17..19).is_err());
    }
}
