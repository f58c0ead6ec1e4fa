//! A small encoder of another project, for tests: two outputs that are products of the pixels.

use super::wire::{append_bytes, append_varint};
use crate::{ForeignEncoder, Preprocess};

/// Pixels of its images, and values of its embedding.
pub(crate) const PIXELS: usize = 4;
pub(crate) const DIM: usize = 3;

/// Where a matrix of weights is.
pub(crate) enum Weights<'a> {
    Inside(&'a [f32]),
    Outside { location: &'a str, offset: usize },
}

/// The outputs `embedding` and `other`, each with a matrix of `(PIXELS, DIM)`.
pub(crate) fn model(embedding: &Weights<'_>, other: &Weights<'_>) -> Vec<u8> {
    let mut graph = Vec::new();
    let flatten = node("Flatten", &["pixels"], "flat");
    let products = [node("MatMul", &["flat", "w0"], "embedding"), node("MatMul", &["flat", "w1"], "other")];
    [flatten].iter().chain(&products).for_each(|node| append_bytes(&mut graph, 1, node));
    append_bytes(&mut graph, 2, b"sample");
    append_bytes(&mut graph, 5, &tensor("w0", embedding));
    append_bytes(&mut graph, 5, &tensor("w1", other));
    append_bytes(&mut graph, 11, &value_info("pixels", &[1, 2, 2]));
    append_bytes(&mut graph, 12, &value_info("embedding", &[DIM]));
    append_bytes(&mut graph, 12, &value_info("other", &[DIM]));
    wrapped(&graph)
}

/// The file around a graph.
pub(crate) fn wrapped(graph: &[u8]) -> Vec<u8> {
    let (mut model, mut operators) = (Vec::new(), Vec::new());
    number(&mut model, 1, 8);
    append_bytes(&mut operators, 1, b"");
    number(&mut operators, 2, 17);
    append_bytes(&mut model, 8, &operators);
    append_bytes(&mut model, 7, graph);
    model
}

/// How images are prepared for it: grey, 2x2, values as they are.
pub(crate) fn description(output: &str) -> ForeignEncoder {
    let preprocess = Preprocess { mean: vec![0.], std: vec![1.], ..Preprocess::new(2, (2, 2), 1) };
    ForeignEncoder { preprocess, output: Some(output.into()) }
}

fn number(message: &mut Vec<u8>, field: u64, value: u64) {
    append_varint(message, field << 3);
    append_varint(message, value);
}

pub(crate) fn node(kind: &str, inputs: &[&str], output: &str) -> Vec<u8> {
    let mut node = Vec::new();
    inputs.iter().for_each(|input| append_bytes(&mut node, 1, input.as_bytes()));
    append_bytes(&mut node, 2, output.as_bytes());
    append_bytes(&mut node, 4, kind.as_bytes());
    node
}

/// The encoder of [`model`] whose pixels go through other nodes first: from `flat` to `made`.
pub(crate) fn model_with(nodes: &[Vec<u8>], constants: &[Vec<u8>]) -> Vec<u8> {
    let mut graph = Vec::new();
    append_bytes(&mut graph, 1, &node("Flatten", &["pixels"], "flat"));
    nodes.iter().for_each(|node| append_bytes(&mut graph, 1, node));
    append_bytes(&mut graph, 1, &node("MatMul", &["made", "w0"], "embedding"));
    append_bytes(&mut graph, 2, b"sample");
    append_bytes(&mut graph, 5, &tensor("w0", &Weights::Inside(&[1.; PIXELS * DIM])));
    constants.iter().for_each(|constant| append_bytes(&mut graph, 5, constant));
    append_bytes(&mut graph, 11, &value_info("pixels", &[1, 2, 2]));
    append_bytes(&mut graph, 12, &value_info("embedding", &[DIM]));
    wrapped(&graph)
}

/// Integers as a constant; a single one has no shape.
pub(crate) fn integers(name: &str, shape: &[usize], values: &[i64]) -> Vec<u8> {
    const INT64: u64 = 7;
    let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<_>>();
    constant(name, shape, INT64, &bytes)
}

pub(crate) fn truth(name: &str) -> Vec<u8> {
    const BOOL: u64 = 9;
    constant(name, &[], BOOL, &[1])
}

fn constant(name: &str, shape: &[usize], kind: u64, bytes: &[u8]) -> Vec<u8> {
    let mut tensor = Vec::new();
    shape.iter().for_each(|&size| number(&mut tensor, 1, size as u64));
    number(&mut tensor, 2, kind);
    append_bytes(&mut tensor, 8, name.as_bytes());
    append_bytes(&mut tensor, 9, bytes);
    tensor
}

/// From `flat` to `made`, unchanged, in as many rounds as the value `rounds` says.
pub(crate) fn endless_loop(rounds: &str) -> Vec<u8> {
    const GRAPH: u64 = 5;
    let (mut body, mut attribute) = (Vec::new(), Vec::new());
    append_bytes(&mut body, 1, &node("Identity", &["go_on"], "still_go_on"));
    append_bytes(&mut body, 1, &node("Identity", &["before"], "after"));
    append_bytes(&mut body, 2, b"body");
    for (field, name, kind) in [(11, "round", 7), (11, "go_on", 9), (11, "before", 1)] {
        append_bytes(&mut body, field, &bare_value_info(name, kind));
    }
    for (name, kind) in [("still_go_on", 9), ("after", 1)] {
        append_bytes(&mut body, 12, &bare_value_info(name, kind));
    }
    append_bytes(&mut attribute, 1, b"body");
    append_bytes(&mut attribute, 6, &body);
    number(&mut attribute, 20, GRAPH);
    let mut node = node("Loop", &[rounds, "yes", "flat"], "made");
    append_bytes(&mut node, 5, &attribute);
    node
}

/// Pixels of any shape, or a single value of another kind.
fn bare_value_info(name: &str, element: u64) -> Vec<u8> {
    const FLOAT: u64 = 1;
    let (mut tensor, mut kind, mut info) = (Vec::new(), Vec::new(), Vec::new());
    number(&mut tensor, 1, element);
    if element != FLOAT {
        append_bytes(&mut tensor, 2, b"");
    }
    append_bytes(&mut kind, 1, &tensor);
    append_bytes(&mut info, 1, name.as_bytes());
    append_bytes(&mut info, 2, &kind);
    info
}

pub(crate) fn tensor(name: &str, weights: &Weights<'_>) -> Vec<u8> {
    let mut tensor = Vec::new();
    [PIXELS, DIM].iter().for_each(|&size| number(&mut tensor, 1, size as u64));
    number(&mut tensor, 2, 1);
    append_bytes(&mut tensor, 8, name.as_bytes());
    match weights {
        Weights::Inside(values) => append_bytes(&mut tensor, 9, &bytes(values)),
        Weights::Outside { location, offset } => {
            let length = (4 * PIXELS * DIM).to_string();
            for (key, value) in
                [("location", *location), ("offset", &offset.to_string()), ("length", &length)]
            {
                let mut entry = Vec::new();
                append_bytes(&mut entry, 1, key.as_bytes());
                append_bytes(&mut entry, 2, value.as_bytes());
                append_bytes(&mut tensor, 13, &entry);
            }
            number(&mut tensor, 14, 1);
        }
    }
    tensor
}

/// `(batch, ...)`.
fn value_info(name: &str, sizes: &[usize]) -> Vec<u8> {
    let (mut shape, mut dimension) = (Vec::new(), Vec::new());
    append_bytes(&mut dimension, 2, b"batch");
    append_bytes(&mut shape, 1, &dimension);
    for &size in sizes {
        let mut dimension = Vec::new();
        number(&mut dimension, 1, size as u64);
        append_bytes(&mut shape, 1, &dimension);
    }
    let (mut tensor, mut kind, mut info) = (Vec::new(), Vec::new(), Vec::new());
    number(&mut tensor, 1, 1);
    append_bytes(&mut tensor, 2, &shape);
    append_bytes(&mut kind, 1, &tensor);
    append_bytes(&mut info, 1, name.as_bytes());
    append_bytes(&mut info, 2, &kind);
    info
}

pub(crate) fn bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}
