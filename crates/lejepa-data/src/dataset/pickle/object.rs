//! What a pickle builds.

use bytes::Bytes;

/// Why a pickle cannot be read.
pub(super) type Problem = String;

/// A small value, or the number of an object.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::dataset) enum Value {
    Int(i64),
    Bool(bool),
    Object(usize),
    Function(Function),
    /// None, and numbers that no image needs.
    Other,
}

#[derive(Debug)]
pub(super) enum Object {
    Text(Bytes),
    Bytes(Bytes),
    List(Vec<Value>),
    Tuple(Vec<Value>),
    Dict(Vec<(Value, Value)>),
    /// The type of an array's items, such as `u1`.
    ItemType(Bytes),
    /// Empty until its state is set.
    Array(Option<Box<Array>>),
}

/// Every object of a pickle, by number.
#[derive(Debug, Default)]
pub(super) struct Objects(Vec<Object>);

impl Objects {
    /// Far more than the 50,000 file names of a CIFAR set; keeps a hostile file's memory small.
    pub(super) const LIMIT: usize = 1 << 22;

    pub(super) fn add(&mut self, object: Object) -> Result<Value, Problem> {
        if self.0.len() >= Self::LIMIT {
            return Err(format!("it has more than {} objects", Self::LIMIT));
        }
        self.0.push(object);
        Ok(Value::Object(self.0.len() - 1))
    }

    pub(super) fn get(&self, value: Value) -> Option<&Object> {
        match value {
            Value::Object(number) => self.0.get(number),
            _ => None,
        }
    }

    pub(super) fn get_mut(&mut self, value: Value) -> Option<&mut Object> {
        match value {
            Value::Object(number) => self.0.get_mut(number),
            _ => None,
        }
    }

    /// Text, or bytes where Python 2 made no difference.
    pub(super) fn string(&self, value: Value) -> Option<&Bytes> {
        match self.get(value)? {
            Object::Text(string) | Object::Bytes(string) => Some(string),
            _ => None,
        }
    }
}

/// A numpy array of unsigned bytes, row by row.
#[derive(Debug)]
pub(in crate::dataset) struct Array {
    pub(in crate::dataset) shape: Vec<usize>,
    pub(in crate::dataset) values: Bytes,
}

/// The functions that a pickle may call.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::dataset) enum Function {
    Reconstruct,
    FromBuffer,
    NdArray,
    ItemType,
    Encode,
    ByteArray,
}

impl Function {
    /// Numpy moved its `core` to `_core`, and Python 3 renamed the built-ins.
    pub(super) fn find(module: &[u8], name: &[u8]) -> Result<Self, Problem> {
        match (module, name) {
            (b"numpy.core.multiarray" | b"numpy._core.multiarray", b"_reconstruct") => Ok(Self::Reconstruct),
            (b"numpy.core.numeric" | b"numpy._core.numeric", b"_frombuffer") => Ok(Self::FromBuffer),
            (b"numpy", b"ndarray") => Ok(Self::NdArray),
            (b"numpy", b"dtype") => Ok(Self::ItemType),
            (b"_codecs", b"encode") => Ok(Self::Encode),
            (b"__builtin__" | b"builtins", b"bytearray") => Ok(Self::ByteArray),
            _ => Err(format!("refuses to run code: {}.{}", shown(module), shown(name))),
        }
    }
}

/// A name from a file, of a length fit for a message.
pub(super) fn shown(name: &[u8]) -> String {
    String::from_utf8_lossy(name).chars().take(60).collect()
}
