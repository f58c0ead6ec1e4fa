//! Walks over the fields of a protobuf message without copying or trusting it.
//!
//! A field is a key (`number * 8 + kind`, a varint) and a value; what is inside a value of bytes, text or
//! another message, is up to the reader.

use crate::onnx_file::Damaged;

/// One field of a message.
#[derive(Debug, Clone, Copy)]
pub(super) struct Field<'a> {
    pub(super) number: u64,
    pub(super) value: Value<'a>,
    /// Key and value as they stand in the file.
    pub(super) whole: &'a [u8],
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Value<'a> {
    Varint(u64),
    Bytes(&'a [u8]),
    /// Numbers of fixed width, which nobody here looks into.
    Fixed,
}

impl<'a> Field<'a> {
    /// The value, if it is bytes.
    pub(super) fn bytes(&self) -> Option<&'a [u8]> {
        match self.value {
            Value::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// The value, if it is text.
    pub(super) fn text(&self) -> Option<&'a str> {
        self.bytes().and_then(|bytes| std::str::from_utf8(bytes).ok())
    }
}

/// The fields of a message, one after the other; ends after the first damage.
pub(super) fn fields(message: &[u8]) -> impl Iterator<Item = Result<Field<'_>, Damaged>> {
    let mut rest = message;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let field = next_field(&mut rest).ok_or(Damaged);
        if field.is_err() {
            rest = &[];
        }
        Some(field)
    })
}

/// Numbers that stand one behind the other in a field of bytes; ends after the first damage.
pub(super) fn varints(packed: &[u8]) -> impl Iterator<Item = Result<u64, Damaged>> {
    let mut rest = packed;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let number = varint(&mut rest).ok_or(Damaged);
        if number.is_err() {
            rest = &[];
        }
        Some(number)
    })
}

fn next_field<'a>(rest: &mut &'a [u8]) -> Option<Field<'a>> {
    let start = *rest;
    let key = varint(rest)?;
    let value = match key & 7 {
        0 => Value::Varint(varint(rest)?),
        1 => fixed(rest, 8)?,
        2 => {
            let length = usize::try_from(varint(rest)?).ok()?;
            Value::Bytes(take(rest, length)?)
        }
        5 => fixed(rest, 4)?,
        _ => return None,
    };
    let number = key >> 3;
    let whole = start.get(..start.len() - rest.len())?;
    (number > 0).then_some(Field { number, value, whole })
}

fn fixed<'a>(rest: &mut &'a [u8], length: usize) -> Option<Value<'a>> {
    take(rest, length).map(|_| Value::Fixed)
}

fn take<'a>(rest: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, left) = rest.split_at_checked(length)?;
    *rest = left;
    Some(taken)
}

fn varint(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = *take(rest, 1)?.first()?;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

/// Appends a field of bytes.
pub(crate) fn append_bytes(message: &mut Vec<u8>, number: u64, bytes: &[u8]) {
    append_varint(message, number << 3 | 2);
    append_varint(message, bytes.len() as u64);
    message.extend_from_slice(bytes);
}

pub(super) fn append_varint(message: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        message.push(value as u8 | 0x80);
        value >>= 7;
    }
    message.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_appended_is_found_again() {
        let mut message = Vec::new();
        append_bytes(&mut message, 3, b"text");
        append_bytes(&mut message, 700, &[7; 300]);
        let found: Vec<_> = fields(&message).map(|field| field.unwrap()).collect();
        assert_eq!((found[0].number, found[0].text()), (3, Some("text")));
        assert_eq!((found[1].number, found[1].bytes()), (700, Some(&[7; 300][..])));
        assert_eq!([found[0].whole, found[1].whole].concat(), message);
        assert_eq!(varints(&[3, 0x80, 0x02]).collect::<Vec<_>>(), [Ok(3), Ok(256)]);
        assert_eq!(varints(&[0x80]).collect::<Vec<_>>(), [Err(Damaged)]);
    }

    #[test]
    fn every_cut_and_every_byte_is_survived() {
        let mut message = Vec::new();
        append_bytes(&mut message, 1, b"abc");
        message.extend([0x10, 0xff, 0x01, 0x1d, 1, 2, 3, 4, 0x21, 1, 2, 3, 4, 5, 6, 7, 8]);
        assert!(fields(&message).all(|field| field.is_ok()));
        for length in 0..message.len() {
            fields(&message[..length]).for_each(drop);
        }
        for place in 0..message.len() {
            for byte in 0..=255 {
                let mut changed = message.clone();
                changed[place] = byte;
                fields(&changed).for_each(drop);
            }
        }
        assert!(fields(&[0xff; 20]).any(|field| field.is_err()));
    }
}
