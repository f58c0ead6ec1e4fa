//! What an ONNX file says about itself, and the same file with fewer outputs.
//!
//! ONNX Runtime computes every output of a graph whether somebody asks for it or not. So a session is
//! made from the file without the outputs, nodes and weights that the wanted output does not need.

mod census;
mod checksum;
mod external;
mod pruning;
#[cfg(test)]
pub(crate) mod sample;
mod wire;

pub(crate) use self::census::Census;
pub(crate) use self::checksum::Checksum;
pub(crate) use self::external::{External, ExternalData};
#[cfg(test)]
pub(crate) use self::wire::append_bytes as append;
use self::wire::{Value, fields};

/// A file that ends too early or is no protobuf message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Damaged;

/// Numbers of protobuf fields, from `onnx.proto`.
mod number {
    pub(super) mod model {
        pub(in super::super) const GRAPH: u64 = 7;
        pub(in super::super) const METADATA: u64 = 14;
        pub(in super::super) const FUNCTION: u64 = 25;
    }
    pub(super) mod graph {
        pub(in super::super) const NODE: u64 = 1;
        pub(in super::super) const INITIALIZER: u64 = 5;
        pub(in super::super) const OUTPUT: u64 = 12;
        pub(in super::super) const VALUE_INFO: u64 = 13;
        pub(in super::super) const SPARSE_INITIALIZER: u64 = 15;
    }
    pub(super) mod tensor {
        pub(in super::super) const DIMS: u64 = 1;
        pub(in super::super) const EXTERNAL_DATA: u64 = 13;
        pub(in super::super) const DATA_LOCATION: u64 = 14;
        /// A value of `DATA_LOCATION`.
        pub(in super::super) const EXTERNAL: u64 = 1;
    }
}

/// A dimension of a graph's output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Dimension {
    /// Always the same.
    Fixed(i64),
    /// Known at run time; the name that the file gives it.
    Named(String),
}

impl std::fmt::Display for Dimension {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Fixed(size) => size.fmt(formatter),
            Self::Named(name) => name.fmt(formatter),
        }
    }
}

/// An output of a graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GraphOutput {
    /// Its name.
    pub name: String,
    /// Its shape, where the file says so.
    pub shape: Vec<Dimension>,
}

/// What is in an ONNX file besides its weights.
#[derive(Debug, Clone, Default)]
pub(crate) struct OnnxFile {
    pub(crate) outputs: Vec<GraphOutput>,
    pub(crate) external: External,
    pub(crate) census: Census,
    /// Nothing for files that hold none.
    pub(crate) checksum: Option<Checksum>,
    metadata: Vec<(String, String)>,
}

impl OnnxFile {
    pub(crate) fn read(model: &[u8]) -> Result<Self, Damaged> {
        let (external, checksum) = (External::read(model)?, Checksum::read(model)?);
        let mut file = Self { external, checksum, census: Census::read(model)?, ..Self::default() };
        let mut graphs = 0;
        for field in fields(model) {
            let field = field?;
            match field.number {
                number::model::GRAPH => {
                    graphs += 1;
                    file.outputs = outputs(field.bytes().ok_or(Damaged)?)?;
                }
                number::model::METADATA => {
                    let entry = field.bytes().ok_or(Damaged)?;
                    if let (Some(key), Some(value)) = (text(entry, 1)?, text(entry, 2)?) {
                        file.metadata.push((key.into(), value.into()));
                    }
                }
                _ => {}
            }
        }
        if graphs == 1 { Ok(file) } else { Err(Damaged) }
    }

    /// The entry of this key.
    pub(crate) fn metadata(&self, key: &str) -> Option<&str> {
        self.metadata.iter().find(|(found, _)| found == key).map(|(_, value)| value.as_str())
    }

    /// The file with nothing but what this output needs.
    pub(crate) fn pruned(model: &[u8], output: &str) -> Result<Vec<u8>, Damaged> {
        pruning::prune(model, output)
    }
}

fn outputs(graph: &[u8]) -> Result<Vec<GraphOutput>, Damaged> {
    let mut outputs = Vec::new();
    for field in fields(graph) {
        let field = field?;
        if field.number == number::graph::OUTPUT {
            let info = field.bytes().ok_or(Damaged)?;
            let name = text(info, 1)?.ok_or(Damaged)?.into();
            outputs.push(GraphOutput { name, shape: shape(info)? });
        }
    }
    Ok(outputs)
}

/// `ValueInfoProto.type.tensor_type.shape.dim`.
fn shape(info: &[u8]) -> Result<Vec<Dimension>, Damaged> {
    let mut place = info;
    for number in [2, 1, 2] {
        match message(place, number)? {
            Some(inner) => place = inner,
            None => return Ok(Vec::new()),
        }
    }
    let mut dimensions = Vec::new();
    for field in fields(place) {
        let field = field?;
        let Some(dimension) = field.bytes().filter(|_| field.number == 1) else { continue };
        let mut found = Dimension::Named("?".into());
        for field in fields(dimension) {
            let field = field?;
            match (field.number, field.value) {
                (1, Value::Varint(size)) => found = Dimension::Fixed(size as i64),
                (2, Value::Bytes(_)) => found = Dimension::Named(field.text().unwrap_or("?").into()),
                _ => {}
            }
        }
        dimensions.push(found);
    }
    Ok(dimensions)
}

/// The last field of this number that holds bytes; the last one counts in protobuf.
fn message(outer: &[u8], number: u64) -> Result<Option<&[u8]>, Damaged> {
    let mut found = None;
    for field in fields(outer) {
        let field = field?;
        if field.number == number {
            found = field.bytes().or(found);
        }
    }
    Ok(found)
}

fn text(outer: &[u8], number: u64) -> Result<Option<&str>, Damaged> {
    Ok(message(outer, number)?.and_then(|bytes| std::str::from_utf8(bytes).ok()))
}
