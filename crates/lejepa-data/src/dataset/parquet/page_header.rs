//! The header before each page: a Thrift structure in the compact encoding.

/// What a header says about its page.
#[derive(Debug, PartialEq)]
pub(super) struct PageHeader {
    pub(super) kind: PageKind,
    /// Bytes of the header itself.
    pub(super) length: usize,
    /// Bytes of the page in the file.
    pub(super) stored: usize,
    /// Bytes of the page when decompressed.
    pub(super) unpacked: usize,
    /// Number of values, nulls included.
    pub(super) values: usize,
    /// How values are written, by the format's numbers.
    pub(super) encoding: usize,
    /// Where the levels are, which mark nulls.
    pub(super) levels: Levels,
    /// CRC-32 of the page in the file, if its writer has made one.
    pub(super) checksum: Option<u32>,
}

/// Levels come before the values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Levels {
    /// Compressed with the values, in an encoding and after their length.
    Within { encoding: usize },
    /// Before the compressed values, those for nesting first. Version 2 of the format.
    Before { nesting: usize, nulls: usize, are_values_compressed: bool },
}

#[derive(Debug, PartialEq)]
pub(super) enum PageKind {
    Data,
    Dictionary,
}

/// Structures within structures; a header's statistics are the third.
const DEEPEST: usize = 4;

impl PageHeader {
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let mut reader = Compact { bytes, position: 0 };
        let (mut kind, mut stored, mut unpacked, mut values, mut encoding) = (None, None, None, None, None);
        let mut checksum = None;
        let (mut nulls_encoding, mut nulls, mut nesting, mut are_values_compressed) =
            (None, None, None, true);
        // The current field of each open structure.
        let mut fields = vec![0i64];
        while let Some(field) = fields.last_mut() {
            let byte = reader.byte()?;
            if byte == 0 {
                fields.pop();
                continue;
            }
            *field = match byte >> 4 {
                0 => reader.number()?,
                step => field.checked_add(step.into())?,
            };
            match byte & 0x0f {
                // True and false.
                value @ 1..=2 if fields[..] == [8, 7] => are_values_compressed = value == 1,
                1 | 2 => {}
                3 => reader.skip(1)?,
                4..=6 => {
                    let number = reader.number()?;
                    if fields[..] == [4] {
                        // Written as if it had a sign.
                        checksum = i32::try_from(number).ok().map(i32::cast_unsigned);
                    }
                    let number = usize::try_from(number).ok();
                    // 5 is a data page, 7 a dictionary, 8 a data page of version 2.
                    match fields[..] {
                        [1] => kind = number,
                        [2] => unpacked = number,
                        [3] => stored = number,
                        [5 | 7 | 8, 1] => values = number,
                        [5 | 7, 2] | [8, 4] => encoding = number,
                        [5, 3] => nulls_encoding = number,
                        [8, 5] => nulls = number,
                        [8, 6] => nesting = number,
                        _ => {}
                    }
                }
                7 => reader.skip(8)?,
                8 => {
                    let length = reader.unsigned()?;
                    reader.skip(usize::try_from(length).ok()?)?;
                }
                12 if fields.len() < DEEPEST => fields.push(0),
                _ => return None,
            }
        }
        let (kind, levels) = match kind? {
            0 => (PageKind::Data, Levels::Within { encoding: nulls_encoding? }),
            3 => (PageKind::Data, Levels::Before { nesting: nesting?, nulls: nulls?, are_values_compressed }),
            2 => (PageKind::Dictionary, Levels::Within { encoding: 0 }),
            _ => return None,
        };
        let (length, stored, unpacked) = (reader.position, stored?, unpacked?);
        let (values, encoding) = (values?, encoding?);
        Some(Self { kind, length, stored, unpacked, values, encoding, levels, checksum })
    }
}

struct Compact<'a> {
    bytes: &'a [u8],
    position: usize,
}

impl Compact<'_> {
    fn byte(&mut self) -> Option<u8> {
        let byte = self.bytes.get(self.position).copied()?;
        self.position += 1;
        Some(byte)
    }

    fn skip(&mut self, length: usize) -> Option<()> {
        self.position = self.position.checked_add(length).filter(|&end| end <= self.bytes.len())?;
        Some(())
    }

    /// Seven bits per byte, the lowest first.
    fn unsigned(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    /// The sign in the lowest bit.
    fn number(&mut self) -> Option<i64> {
        let value = self.unsigned()?;
        Some((value >> 1) as i64 ^ -((value & 1) as i64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Type 0, 300 bytes unpacked, 200 stored, and a data page header with 7 values, encodings 8, 3 and 3
    /// and statistics that hold two bytes of text.
    const HEADER: &[u8] =
        b"\x15\0\x15\xd8\x04\x15\x90\x03\x2c\x15\x0e\x15\x10\x15\x06\x15\x06\x1c\x18\x02ab\0\0\0";

    #[test]
    fn fields_are_found_at_their_depth() {
        let expected = PageHeader {
            kind: PageKind::Data,
            length: HEADER.len(),
            stored: 200,
            unpacked: 300,
            values: 7,
            encoding: 8,
            levels: Levels::Within { encoding: 3 },
            checksum: None,
        };
        assert_eq!(PageHeader::parse(&[HEADER, b"the page"].concat()).unwrap(), expected);
    }

    #[test]
    fn damaged_headers_are_refused() {
        for length in 0..HEADER.len() {
            assert_eq!(PageHeader::parse(&HEADER[..length]), None);
        }
        assert_eq!(PageHeader::parse(&[0x1c; 100]), None, "nested without end");
        assert_eq!(PageHeader::parse(b"\x15\0\x15\x01\x15\x90\x03\0"), None, "a negative length");
        assert_eq!(PageHeader::parse(b"\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), None);
    }
}
