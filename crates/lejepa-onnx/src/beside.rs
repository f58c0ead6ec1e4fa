//! Weights in a file beside the ONNX file, where they are too large for it: `TensorProto.external_data`.

use std::io::Write;

use crate::proto::{GraphProto, StringStringEntryProto, TensorProto, tensor_proto::DataLocation};
use crate::{Error, Result};

/// Smaller constants stay inside: shapes and the like, which runtimes look at before they have the weights.
const SMALLEST: usize = 1024;
/// Where weights begin is a multiple of it, as vector instructions like it.
const ALIGNMENT: u64 = 64;

/// Moves the weights of a graph to another file, and gives back its BLAKE3 hash.
pub(crate) fn write(graph: &mut GraphProto, weights: &mut dyn Write) -> Result<String> {
    let (mut hasher, mut offset) = (blake3::Hasher::new(), 0);
    let mut put = |bytes: &[u8]| {
        hasher.update(bytes);
        weights.write_all(bytes).map_err(Error::Weights)
    };
    for tensor in &mut graph.initializer {
        let Some(bytes) = tensor.raw_data.take_if(|bytes| bytes.len() >= SMALLEST) else { continue };
        put(&vec![0; (u64::next_multiple_of(offset, ALIGNMENT) - offset) as usize])?;
        offset = offset.next_multiple_of(ALIGNMENT);
        put(&bytes)?;
        let length = bytes.len() as u64;
        tensor.external_data = vec![entry("offset", offset.to_string()), entry("length", length.to_string())];
        tensor.data_location = Some(DataLocation::External as i32);
        offset += length;
    }
    Ok(hasher.finalize().to_hex().to_string())
}

/// Names the file of weights, relative to the folder of the ONNX file.
pub(crate) fn set_location(graph: &mut GraphProto, location: &str) {
    let is_outside = |tensor: &&mut TensorProto| tensor.data_location == Some(DataLocation::External as i32);
    for tensor in graph.initializer.iter_mut().filter(is_outside) {
        tensor.external_data.insert(0, entry("location", location.into()));
    }
}

fn entry(key: &str, value: String) -> StringStringEntryProto {
    StringStringEntryProto { key: Some(key.into()), value: Some(value) }
}
