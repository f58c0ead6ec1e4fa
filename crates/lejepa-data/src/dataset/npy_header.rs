//! The header of a `.npy` file: what numpy says about the bytes that follow.
//!
//! ```text
//! \x93NUMPY major minor      versions 1 to 3
//! u16 | u32                  little-endian length of the text; u32 from version 2 on
//! {'descr': '|u1', 'fortran_order': False, 'shape': (5, 28, 28), }
//! ```

/// The first bytes of a `.npy` file.
pub(super) const MAGIC: &[u8] = b"\x93NUMPY";

/// No header of an array of numbers is longer.
pub(super) const LONGEST: usize = 1 << 16;

/// Type, shape and place of the values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NpyHeader {
    /// As numpy writes it: byte order, kind, size.
    descr: String,
    pub(super) fortran_order: bool,
    pub(super) shape: Vec<usize>,
    /// Where the values begin.
    pub(super) start: usize,
}

/// An integer type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Integer {
    pub(super) size: usize,
    signed: bool,
    big_endian: bool,
}

/// A type of floating-point numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Float {
    pub(super) size: usize,
    pub(super) big_endian: bool,
}

impl NpyHeader {
    /// Reads the beginning of a file; the error says what is wrong with it.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, String> {
        if bytes.get(..MAGIC.len()) != Some(MAGIC) {
            return Err("it does not begin with \\x93NUMPY".into());
        }
        let (text_start, length) = match bytes.get(MAGIC.len()..) {
            Some(&[1, _, a, b, ..]) => (10, usize::from(u16::from_le_bytes([a, b]))),
            Some(&[2 | 3, _, a, b, c, d, ..]) => (12, u32::from_le_bytes([a, b, c, d]) as usize),
            Some(&[1..=3, ..]) | Some(&[]) => return Err("its header ends too early".into()),
            Some(&[version, ..]) => return Err(format!("expected version 1, 2 or 3, got {version}")),
            None => return Err("its header ends too early".into()),
        };
        if length > LONGEST - text_start {
            return Err(format!("a header of {length} bytes"));
        }
        let start = text_start + length;
        let text = bytes.get(text_start..start).ok_or("its header ends too early")?;
        let text = std::str::from_utf8(text).map_err(|_error| "its header is no text")?;
        let (descr, fortran_order, shape) = Cursor(text).dictionary()?;
        Ok(Self { descr, fortran_order, shape, start })
    }

    /// Bytes of header and integers together; values of other types are never read.
    pub(super) fn file_length(&self) -> Result<usize, String> {
        let size = self.integer().map_or(0, |kind| kind.size);
        let values = self.shape.iter().try_fold(size, |length, &axis| length.checked_mul(axis));
        let length = values.and_then(|values| values.checked_add(self.start));
        length.ok_or_else(|| format!("sizes overflow: {:?}", self.shape))
    }

    /// The type of the values, if it is one of integers.
    pub(super) fn integer(&self) -> Option<Integer> {
        let (order, kind, size) = self.type_parts()?;
        let signed = match kind {
            'i' => true,
            'u' => false,
            _ => return None,
        };
        matches!(size, 1 | 2 | 4 | 8).then_some(Integer { size, signed, big_endian: order == '>' })
    }

    /// The type of the values, if it is one of floating-point numbers of 16, 32 or 64 bits.
    pub(super) fn float(&self) -> Option<Float> {
        let (order, kind, size) = self.type_parts()?;
        (kind == 'f' && matches!(size, 2 | 4 | 8)).then_some(Float { size, big_endian: order == '>' })
    }

    /// The type of the values in words.
    pub(super) fn type_name(&self) -> String {
        match self.type_parts() {
            Some((_, kind @ ('i' | 'u' | 'f' | 'c'), size)) if size <= 32 => {
                let word = match kind {
                    'i' => "int",
                    'u' => "uint",
                    'f' => "float",
                    _ => "complex",
                };
                format!("{word}{}", size * 8)
            }
            Some((_, 'b', _)) => "bool".into(),
            Some((_, 'S' | 'U', _)) => "strings".into(),
            _ if self.descr.trim_start_matches('|').starts_with('O') => "Python objects".into(),
            _ => format!("of type {}", self.descr),
        }
    }

    fn type_parts(&self) -> Option<(char, char, usize)> {
        let mut characters = self.descr.chars();
        let order = characters.next().filter(|order| "<>|=".contains(*order))?;
        let kind = characters.next()?;
        Some((order, kind, characters.as_str().parse().ok()?))
    }
}

impl Integer {
    /// Whether the values are unsigned bytes.
    pub(super) fn is_byte(self) -> bool {
        self.size == 1 && !self.signed
    }

    /// The value of `size` bytes.
    pub(super) fn value(self, bytes: &[u8]) -> i128 {
        let shift_in = |value: u64, &byte: &u8| value << 8 | u64::from(byte);
        let value = if self.big_endian {
            bytes.iter().fold(0, shift_in)
        } else {
            bytes.iter().rev().fold(0, shift_in)
        };
        let value = i128::from(value);
        let sign = 1i128 << (8 * self.size - 1);
        if self.signed && value >= sign { value - 2 * sign } else { value }
    }
}

/// What is left of the header's text, which is the literal of a Python dictionary with three keys.
struct Cursor<'a>(&'a str);

impl<'a> Cursor<'a> {
    fn dictionary(mut self) -> Result<(String, bool, Vec<usize>), String> {
        let (mut descr, mut fortran_order, mut shape) = (None, None, None);
        self.expect("{")?;
        while !self.accept("}") {
            let key = self.quoted()?;
            self.expect(":")?;
            match key {
                "descr" if descr.is_none() => descr = Some(self.descr()?),
                "fortran_order" if fortran_order.is_none() => fortran_order = Some(self.truth()?),
                "shape" if shape.is_none() => shape = Some(self.shape()?),
                _ => return Err(format!("an unexpected key in its header: {key}")),
            }
            if !self.accept(",") {
                self.expect("}")?;
                break;
            }
        }
        if !self.0.trim().is_empty() {
            return Err("its header goes on after the dictionary".into());
        }
        match (descr, fortran_order, shape) {
            (Some(descr), Some(fortran_order), Some(shape)) => Ok((descr, fortran_order, shape)),
            _ => Err("its header lacks descr, fortran_order or shape".into()),
        }
    }

    fn accept(&mut self, token: &str) -> bool {
        let rest = self.0.trim_start().strip_prefix(token);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }

    fn expect(&mut self, token: &str) -> Result<(), String> {
        if self.accept(token) { Ok(()) } else { Err(format!("expected {token} in its header")) }
    }

    fn quoted(&mut self) -> Result<&'a str, String> {
        let quote = if self.accept("'") { '\'' } else { '"' };
        if quote == '"' {
            self.expect("\"")?;
        }
        let (text, rest) = self.0.split_once(quote).ok_or("an open string in its header")?;
        self.0 = rest;
        Ok(text)
    }

    fn descr(&mut self) -> Result<String, String> {
        if self.accept("[") || self.accept("(") {
            return Err("it holds records, expected an array of numbers".into());
        }
        self.quoted().map(Into::into)
    }

    fn truth(&mut self) -> Result<bool, String> {
        if self.accept("True") {
            return Ok(true);
        }
        self.expect("False").map(|()| false)
    }

    fn shape(&mut self) -> Result<Vec<usize>, String> {
        let mut sizes = Vec::new();
        self.expect("(")?;
        while !self.accept(")") {
            let text = self.0.trim_start();
            let end = text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len());
            let (digits, rest) = text.split_at(end);
            sizes.push(digits.parse().map_err(|_error| "its shape has no valid sizes")?);
            self.0 = rest;
            if !self.accept(",") {
                self.expect(")")?;
                break;
            }
        }
        Ok(sizes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(version: u8, text: &str) -> Vec<u8> {
        let mut bytes = [MAGIC, &[version, 0]].concat();
        match version {
            1 => bytes.extend((text.len() as u16).to_le_bytes()),
            _ => bytes.extend((text.len() as u32).to_le_bytes()),
        }
        bytes.extend(text.as_bytes());
        bytes
    }

    fn problem(text: &str) -> String {
        NpyHeader::parse(&file(1, text)).unwrap_err()
    }

    #[test]
    fn all_versions_say_the_same() {
        let text = "{'descr': '|u1', 'fortran_order': False, 'shape': (5, 4, 3), }   \n";
        for version in 1..=3 {
            let header = NpyHeader::parse(&file(version, text)).unwrap();
            assert_eq!((header.shape, header.fortran_order), (vec![5, 4, 3], false));
            assert_eq!(header.start, file(version, text).len());
        }
        let other_order = "{\"shape\": (5,), \"fortran_order\": True, \"descr\": \">i2\"}";
        let header = NpyHeader::parse(&file(1, other_order)).unwrap();
        assert_eq!((header.shape, header.fortran_order), (vec![5], true));
    }

    #[test]
    fn integers_of_either_order_have_their_value() {
        let value = |descr: &str, bytes: &[u8]| {
            let text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ()}}");
            NpyHeader::parse(&file(1, &text)).unwrap().integer().unwrap().value(bytes)
        };
        assert_eq!(value("|u1", &[200]), 200);
        assert_eq!(value("|i1", &[200]), -56);
        assert_eq!(value("<i4", &[1, 2, 0, 0]), 513);
        assert_eq!(value(">i4", &[0, 0, 2, 1]), 513);
        assert_eq!(value("<i8", &[0xff; 8]), -1);
        assert_eq!(value(">u8", &[0xff; 8]), u64::MAX.into());
    }

    #[test]
    fn types_that_are_no_integers_are_named() {
        for (descr, name) in [
            ("<f4", "float32"),
            ("|b1", "bool"),
            ("<U7", "strings"),
            ("|O", "Python objects"),
            ("<M8[ns]", "of type <M8[ns]"),
            ("", "of type "),
            ("<u3", "uint24"),
            ("<f99999999999999999999", "of type <f99999999999999999999"),
        ] {
            let text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': (5,)}}");
            let header = NpyHeader::parse(&file(1, &text)).unwrap();
            assert_eq!((header.integer(), header.type_name().as_str()), (None, name));
        }
        let records = "{'descr': [('a', '<i4')], 'fortran_order': False, 'shape': (5,)}";
        assert!(problem(records).contains("records"));
    }

    #[test]
    fn anything_else_is_an_error() {
        for (text, cause) in [
            ("", "expected {"),
            ("{", "in its header"),
            ("{}", "lacks"),
            ("{'descr': '|u1', 'shape': (5,)}", "lacks"),
            ("{'descr': '|u1', 'descr': '|u1'}", "unexpected key"),
            ("{'other': '|u1'}", "unexpected key"),
            ("{'descr': '|u1}", "open string"),
            ("{'fortran_order': 1}", "expected False"),
            ("{'shape': (-5,)}", "valid sizes"),
            ("{'shape': (99999999999999999999,)}", "valid sizes"),
            ("{'shape': (5 4)}", "expected )"),
            ("{'descr': '|u1', 'fortran_order': False, 'shape': (5,)} x", "goes on"),
        ] {
            assert!(problem(text).contains(cause), "{text}: {}", problem(text));
        }
        let whole = file(1, "{'descr': '|u1', 'fortran_order': False, 'shape': (5,)}");
        for length in 0..whole.len() {
            assert!(NpyHeader::parse(&whole[..length]).is_err(), "{length}");
        }
        assert!(NpyHeader::parse(&file(4, "{}")).unwrap_err().contains("version"));
        let enormous = [MAGIC, &[2, 0, 0xff, 0xff, 0xff, 0xff]].concat();
        assert!(NpyHeader::parse(&enormous).unwrap_err().contains("header of"));
    }
}
