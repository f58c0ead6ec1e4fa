//! Weights that an ONNX file keeps in files beside it: `TensorProto.external_data`.

use super::number::{graph, model, tensor};
use super::wire::{Value, fields, varints};
use super::{Damaged, text};

/// How deep graphs may lie inside of nodes.
const DEEPEST: usize = 32;

/// A file that holds weights, as the graph names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ExternalData {
    /// Relative to the folder of the ONNX file.
    pub(crate) location: String,
    /// Bytes that it must have at least, as far as the graph says.
    pub(crate) length: u64,
    /// Bytes that are used at most, wherever they lie.
    pub(crate) used: u64,
}

/// Where a file keeps weights outside of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct External {
    /// Files of the graph's own initialisers, by their names.
    pub(crate) files: Vec<ExternalData>,
    /// Whether constants of nodes or graphs inside of nodes lie outside too.
    pub(crate) inside_nodes: bool,
}

impl External {
    pub(super) fn read(whole: &[u8]) -> Result<Self, Damaged> {
        let mut external = Self::default();
        for field in fields(whole) {
            let field = field?;
            match (field.number, field.bytes()) {
                (model::GRAPH, Some(bytes)) => external.read_graph(bytes)?,
                (model::FUNCTION, Some(bytes)) => {
                    external.inside_nodes |= any_message(bytes, &[7], &|node| node_is_external(node, 0))?;
                }
                _ => {}
            }
        }
        external.files.sort_by(|left, right| left.location.cmp(&right.location));
        Ok(external)
    }

    fn read_graph(&mut self, bytes: &[u8]) -> Result<(), Damaged> {
        for field in fields(bytes) {
            let field = field?;
            let Some(bytes) = field.bytes() else { continue };
            match field.number {
                graph::INITIALIZER if tensor_is_external(bytes)? => self.add(bytes)?,
                graph::NODE => self.inside_nodes |= node_is_external(bytes, 0)?,
                graph::SPARSE_INITIALIZER => {
                    self.inside_nodes |= any_message(bytes, &[1, 2], &tensor_is_external)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn add(&mut self, tensor: &[u8]) -> Result<(), Damaged> {
        let (mut location, mut offset, mut length) = (None, 0, None);
        for field in fields(tensor) {
            let field = field?;
            let Some(entry) = field.bytes().filter(|_| field.number == tensor::EXTERNAL_DATA) else {
                continue;
            };
            let number = |text: &str| text.parse::<u64>().map_err(|_| Damaged);
            match (text(entry, 1)?, text(entry, 2)?) {
                (Some("location"), Some(value)) => location = Some(value),
                (Some("offset"), Some(value)) => offset = number(value)?,
                (Some("length"), Some(value)) => length = Some(number(value)?),
                _ => {}
            }
        }
        let location = location.ok_or(Damaged)?;
        let end = offset.checked_add(length.unwrap_or(0)).ok_or(Damaged)?;
        let used = match length {
            Some(length) => length,
            None => largest(tensor)?,
        };
        match self.files.iter_mut().find(|file| file.location == location) {
            Some(file) => (file.length, file.used) = (file.length.max(end), file.used.saturating_add(used)),
            None => self.files.push(ExternalData { location: location.into(), length: end, used }),
        }
        Ok(())
    }
}

/// Bytes of a tensor of this shape, whatever its values are.
fn largest(message: &[u8]) -> Result<u64, Damaged> {
    /// Of two f64.
    const LARGEST_VALUE: u64 = 16;
    let mut bytes = LARGEST_VALUE;
    for field in fields(message) {
        let field = field?;
        match (field.number, field.value) {
            (tensor::DIMS, Value::Varint(size)) => bytes = bytes.saturating_mul(size),
            (tensor::DIMS, Value::Bytes(sizes)) => {
                for size in varints(sizes) {
                    bytes = bytes.saturating_mul(size?);
                }
            }
            _ => {}
        }
    }
    Ok(bytes)
}

fn tensor_is_external(bytes: &[u8]) -> Result<bool, Damaged> {
    let mut external = false;
    for field in fields(bytes) {
        let field = field?;
        if let (tensor::DATA_LOCATION, Value::Varint(place)) = (field.number, field.value) {
            external = place == tensor::EXTERNAL;
        }
    }
    Ok(external)
}

/// Whether a constant of a node, or something in a graph inside of it, lies outside of the file.
fn node_is_external(node: &[u8], depth: usize) -> Result<bool, Damaged> {
    any_message(node, &[5], &|attribute| {
        Ok(any_message(attribute, &[5, 10], &tensor_is_external)?
            || any_message(attribute, &[6, 11], &|inner| graph_is_external(inner, depth + 1))?)
    })
}

fn graph_is_external(bytes: &[u8], depth: usize) -> Result<bool, Damaged> {
    if depth > DEEPEST {
        return Err(Damaged);
    }
    Ok(any_message(bytes, &[graph::INITIALIZER], &tensor_is_external)?
        || any_message(bytes, &[graph::NODE], &|node| node_is_external(node, depth))?)
}

/// Whether something is true of any message in fields of these numbers.
fn any_message(
    outer: &[u8],
    numbers: &[u64],
    is_true: &dyn Fn(&[u8]) -> Result<bool, Damaged>,
) -> Result<bool, Damaged> {
    for field in fields(outer) {
        let field = field?;
        if numbers.contains(&field.number)
            && let Some(bytes) = field.bytes()
            && is_true(bytes)?
        {
            return Ok(true);
        }
    }
    Ok(false)
}
