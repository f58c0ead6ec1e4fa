//! Python pickles as data: protocols 2 to 5, containers, numbers, text and numpy arrays of bytes.
//!
//! A pickle is a program for a stack machine that may call any function of Python. This one knows the
//! opcodes that build data and the few functions behind numpy arrays, and refuses all else. Objects lie
//! side by side and refer to each other by number: neither nesting nor sharing costs stack or copies,
//! and every opcode makes at most one object.

mod machine;
mod object;

use bytes::Bytes;

use machine::Machine;
pub(super) use object::{Array, Value};
use object::{Object, Objects, Problem};

/// What a pickle file holds.
#[derive(Debug)]
pub(super) struct Pickle {
    objects: Objects,
    root: Value,
}

impl Pickle {
    /// Reads a pickle; strings and arrays are slices of the file.
    pub(super) fn parse(file: &Bytes) -> Result<Self, Problem> {
        let mut machine = Machine::new(file.clone());
        let root = machine.run()?;
        Ok(Self { objects: machine.objects, root })
    }

    /// What the dictionary that is the whole pickle has under a name.
    pub(super) fn entry(&self, name: &str) -> Option<Value> {
        let Some(Object::Dict(pairs)) = self.objects.get(self.root) else { return None };
        let is_named = |key: &Value| self.text(*key).is_some_and(|text| text == name.as_bytes());
        pairs.iter().rev().find(|(key, _)| is_named(key)).map(|&(_, value)| value)
    }

    /// The items of a list or tuple.
    pub(super) fn items(&self, value: Value) -> Option<&[Value]> {
        match self.objects.get(value)? {
            Object::List(items) | Object::Tuple(items) => Some(items),
            _ => None,
        }
    }

    pub(super) fn text(&self, value: Value) -> Option<&[u8]> {
        self.objects.string(value).map(|text| &text[..])
    }

    pub(super) fn array(&self, value: Value) -> Option<&Array> {
        match self.objects.get(value)? {
            Object::Array(array) => array.as_deref(),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(bytes: &[u8]) -> Result<Pickle, Problem> {
        Pickle::parse(&Bytes::copy_from_slice(bytes))
    }

    #[test]
    fn code_is_refused_by_name() {
        for call in
            [&b"\x80\x02cos\nsystem\nX\x02\0\0\0ls\x85R."[..], b"\x80\x04\x8c\x02os\x8c\x06system\x93."]
        {
            assert!(parse(call).unwrap_err().contains("refuses to run code: os.system"));
        }
        // A class instance, a persistent id, and an opcode of the text protocol.
        for opcodes in [&b"\x80\x02cnumpy\nndarray\n)\x81."[..], b"\x80\x02NQ.", b"\x80\x02I1\n."] {
            assert!(parse(opcodes).unwrap_err().contains("opcode"), "{opcodes:?}");
        }
    }

    #[test]
    fn deep_nesting_and_sharing_cost_neither_stack_nor_copies() {
        // ((((...)))) a million deep.
        let mut deep = b"\x80\x02)".to_vec();
        deep.extend(vec![0x85; 1_000_000]);
        deep.push(b'.');
        assert!(parse(&deep).is_ok());
        // A tuple of two references to a tuple of two references ... 2^1000 leaves if it were copied.
        let mut shared = b"\x80\x02)".to_vec();
        shared.extend(b"2\x86".repeat(1000));
        shared.push(b'.');
        assert!(parse(&shared).is_ok());
        // A list that holds itself.
        assert!(parse(b"\x80\x02]q\0h\0a.").is_ok());
        // One text encoded again and again.
        let mut text = b"\x80\x02c_codecs\nencode\nq\0X\x40\0\0\0".to_vec();
        text.extend([b'x'; 64]);
        text.extend(b"q\x010");
        text.extend(b"h\0h\x01\x85R".repeat(1000));
        text.push(b'.');
        assert!(parse(&text).unwrap_err().contains("more bytes than the file"));
    }

    #[test]
    fn damaged_pickles_are_errors() {
        for (bytes, problem) in [
            (&b""[..], "ends too early"),
            (b"hello", "not a pickle"),
            (b"\x80\x09N.", "protocol 9"),
            (b"\x80\x02N", "ends too early"),
            (b"\x80\x02X\xff\xff\xff\x7fabc", "ends too early"),
            (b"\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\xffabc", "ends too early"),
            (b"\x80\x02.", "stack"),
            (b"\x80\x02(0.", "stack"),
            (b"\x80\x02t.", "mark"),
            (b"\x80\x02h\x07.", "memo"),
            (b"\x80\x02NNa.", "list"),
            (b"\x80\x02}(Nu.", "pairs"),
            (b"\x80\x02NNb.", "state"),
            (b"\x80\x02NNR.", "call"),
        ] {
            let message = parse(bytes).unwrap_err();
            assert!(message.contains(problem), "{bytes:?}: {message}");
        }
    }
}
