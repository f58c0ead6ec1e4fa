//! The data of a scan, bit by bit.

use super::{Flaw, Walked};

/// Bits of a scan up to the next marker.
#[derive(Debug)]
pub(super) struct Bits<'a> {
    bytes: &'a [u8],
    /// The next ones at the top; those below `count` are not valid yet.
    buffer: u64,
    count: u32,
    /// Whether a marker or the end of the file is next.
    ended: bool,
}

const EVERY_BYTE: u64 = 0x0101_0101_0101_0101;

impl<'a> Bits<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, buffer: 0, count: 0, ended: false }
    }

    /// Takes at least 32 bits into the buffer, as far as there are so many.
    fn fill(&mut self) {
        if let Some(&next) = self.bytes.first_chunk::<8>() {
            let next = u64::from_be_bytes(next);
            // Whether none of the eight bytes is `ff`, the only one that needs a closer look.
            let inverse = !next;
            if inverse.wrapping_sub(EVERY_BYTE) & next & (EVERY_BYTE << 7) == 0 {
                self.buffer |= next >> self.count;
                let taken = (63 - self.count) / 8;
                self.bytes = &self.bytes[taken as usize..];
                self.count += 8 * taken;
                return;
            }
        }
        while self.count <= 56 && !self.ended {
            match self.next_byte() {
                Some(byte) => {
                    self.buffer |= u64::from(byte) << (56 - self.count);
                    self.count += 8;
                }
                None => self.ended = true,
            }
        }
    }

    /// The next byte of the data; none before a marker and at the end of the file.
    fn next_byte(&mut self) -> Option<u8> {
        let (byte, length) = match *self.bytes {
            [0xff, 0x00, ..] => (0xff, 2),
            [0xff, ..] | [] => return None,
            [byte, ..] => (byte, 1),
        };
        self.bytes = &self.bytes[length..];
        Some(byte)
    }

    /// The next 16 bits, with zeros behind the end.
    pub(super) fn peek(&mut self) -> u32 {
        if self.count < 32 {
            self.fill();
            if self.ended {
                // What came in from behind the end is none.
                self.buffer &= u64::MAX.checked_shl(64 - self.count).unwrap_or(0);
            }
        }
        (self.buffer >> 48) as u32
    }

    /// Passes over at most 32 bits.
    pub(super) fn skip(&mut self, count: u32) -> Walked<()> {
        if self.count < count {
            self.fill();
            if self.count < count {
                return Err(self.end());
            }
        }
        self.buffer <<= count;
        self.count -= count;
        Ok(())
    }

    /// The next at most 16 bits as a number.
    pub(super) fn take(&mut self, count: u32) -> Walked<u32> {
        let next = self.peek();
        self.skip(count)?;
        Ok(next >> (16 - count))
    }

    /// Why there are no more bits.
    fn end(&self) -> Flaw {
        let nothing_follows = self.bytes.iter().all(|&byte| byte == 0xff);
        if nothing_follows { Flaw::Cut } else { Flaw::Damaged("its data ends before the image does") }
    }

    /// What follows the data, after at most so many bytes that nobody asked for.
    pub(super) fn finish(mut self, padding: usize) -> Walked<&'a [u8]> {
        let mut unread = self.count as usize / 8;
        while unread <= padding {
            if self.next_byte().is_none() {
                return Ok(self.bytes);
            }
            unread += 1;
        }
        Err(Flaw::Damaged("it has more data than its size asks for"))
    }
}

/// What follows the data of a scan that is not walked through.
pub(super) fn behind_data(mut rest: &[u8]) -> Option<&[u8]> {
    loop {
        let start = rest.iter().position(|&byte| byte == 0xff)?;
        rest = match rest.get(start + 1)? {
            0 | 0xd0..=0xd7 => &rest[start + 2..],
            0xff => &rest[start + 1..],
            _ => return Some(&rest[start..]),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stuffed_bytes_are_data_and_markers_are_the_end() {
        let bytes = [0x12, 0xff, 0x00, 0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde, 0xf0, 0x11, 0xff, 0xd9];
        let mut bits = Bits::new(&bytes);
        let numbers: Vec<u32> = (0..10).map(|_| bits.take(8).unwrap()).collect();
        assert_eq!(numbers, [0x12, 0xff, 0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde, 0xf0, 0x11]);
        assert!(matches!(bits.skip(1), Err(Flaw::Damaged(_))));
        assert_eq!(bits.finish(0).unwrap(), [0xff, 0xd9]);
        assert_eq!(Bits::new(&bytes[..3]).take(16).unwrap(), 0x12ff);
        assert_eq!(Bits::new(&bytes[..1]).skip(9), Err(Flaw::Cut));
        assert_eq!(Bits::new(&bytes[..1]).peek(), 0x1200);
        assert!(Bits::new(&bytes).finish(2).is_err(), "ten bytes are no padding");
    }
}
