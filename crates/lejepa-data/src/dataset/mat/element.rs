//! The elements that a MATLAB file is made of.
//!
//! ```text
//! u32 kind, u32 length, data, padding to 8 bytes    an element
//! u16 kind, u16 length, 4 bytes of data             a small one, as one u32 in the byte order
//! ```

use super::Parsed;

const INT8: u32 = 1;
pub(super) const UINT8: u32 = 2;
const INT16: u32 = 3;
pub(super) const UINT16: u32 = 4;
const INT32: u32 = 5;
const UINT32: u32 = 6;
const SINGLE: u32 = 7;
const DOUBLE: u32 = 9;
const INT64: u32 = 12;
const UINT64: u32 = 13;
pub(super) const MATRIX: u32 = 14;
pub(super) const COMPRESSED: u32 = 15;
pub(super) const UTF8: u32 = 16;
pub(super) const UTF16: u32 = 17;

/// Which end of a number comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ByteOrder {
    Little,
    Big,
}

impl ByteOrder {
    /// The bits of a number of at most 8 bytes.
    pub(super) fn bits(self, bytes: &[u8]) -> u64 {
        let append = |bits: u64, &byte: &u8| bits << 8 | u64::from(byte);
        match self {
            Self::Little => bytes.iter().rev().fold(0, append),
            Self::Big => bytes.iter().fold(0, append),
        }
    }
}

/// One element: what its bytes are, and the bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Element<'a> {
    pub(super) kind: u32,
    pub(super) data: &'a [u8],
}

impl Element<'_> {
    /// The numbers of an element, whichever way it stores them.
    pub(super) fn numbers(self, order: ByteOrder) -> Parsed<Vec<f64>> {
        let width = match self.kind {
            INT8 | UINT8 => 1,
            INT16 | UINT16 => 2,
            INT32 | UINT32 | SINGLE => 4,
            INT64 | UINT64 | DOUBLE => 8,
            other => return Err(format!("expected numbers, got data of kind {other}")),
        };
        if !self.data.len().is_multiple_of(width) {
            return Err(format!("{} bytes are not numbers of {width} bytes", self.data.len()));
        }
        // Each cast keeps exactly the bytes that the number has.
        let number = |bytes| match (self.kind, order.bits(bytes)) {
            (INT8, bits) => f64::from(bits as i8),
            (INT16, bits) => f64::from(bits as i16),
            (INT32, bits) => f64::from(bits as i32),
            (INT64, bits) => bits as i64 as f64,
            (SINGLE, bits) => f64::from(f32::from_bits(bits as u32)),
            (DOUBLE, bits) => f64::from_bits(bits),
            (_unsigned, bits) => bits as f64,
        };
        Ok(self.data.chunks_exact(width).map(number).collect())
    }
}

/// The elements of a stretch of bytes.
#[derive(Debug)]
pub(super) struct Elements<'a> {
    rest: &'a [u8],
    order: ByteOrder,
}

impl<'a> Elements<'a> {
    pub(super) fn new(bytes: &'a [u8], order: ByteOrder) -> Self {
        Self { rest: bytes, order }
    }

    pub(super) fn order(&self) -> ByteOrder {
        self.order
    }

    /// The next element, or none at the end.
    pub(super) fn next(&mut self) -> Parsed<Option<Element<'a>>> {
        if self.rest.is_empty() { Ok(None) } else { self.required().map(Some) }
    }

    /// The next element.
    pub(super) fn required(&mut self) -> Parsed<Element<'a>> {
        let tag = self.order.bits(self.bytes(4)?) as u32;
        let (small_length, kind) = (tag >> 16, tag & 0xffff);
        if small_length > 0 {
            let data = self.bytes(4)?.get(..small_length as usize);
            let data = data.ok_or_else(|| format!("a small element of {small_length} bytes"))?;
            return Ok(Element { kind, data });
        }
        let length = self.order.bits(self.bytes(4)?) as usize;
        let data = self.bytes(length)?;
        if kind != COMPRESSED {
            // Some writers leave the padding of the last element out.
            let padding = length.next_multiple_of(8) - length;
            self.rest = self.rest.get(padding..).unwrap_or_default();
        }
        Ok(Element { kind, data })
    }

    fn bytes(&mut self, count: usize) -> Parsed<&'a [u8]> {
        let (bytes, rest) = self.rest.split_at_checked(count).ok_or("it ends too early")?;
        self.rest = rest;
        Ok(bytes)
    }
}
