//! Takes out of a graph what one of its outputs does not need.

use std::collections::HashSet;

use super::number::{graph, model};
use super::wire::{append_bytes, fields};
use super::{Damaged, text};

/// What a node reads and makes.
struct Node<'a> {
    inputs: Vec<&'a str>,
    outputs: Vec<&'a str>,
}

/// The model with the graph of one output.
pub(super) fn prune(whole: &[u8], output: &str) -> Result<Vec<u8>, Damaged> {
    let mut pruned = Vec::with_capacity(whole.len());
    for field in fields(whole) {
        let field = field?;
        match field.bytes() {
            Some(bytes) if field.number == model::GRAPH => {
                append_bytes(&mut pruned, model::GRAPH, &prune_graph(bytes, output)?);
            }
            _ => pruned.extend_from_slice(field.whole),
        }
    }
    Ok(pruned)
}

fn prune_graph(whole: &[u8], output: &str) -> Result<Vec<u8>, Damaged> {
    let needed = needed_values(whole, output)?;
    let is_needed = |name: Option<&str>| match &needed {
        Some(needed) => name.is_none_or(|name| needed.contains(name)),
        None => true,
    };
    let mut pruned = Vec::with_capacity(whole.len());
    for field in fields(whole) {
        let field = field?;
        let bytes = field.bytes().unwrap_or_default();
        let kept = match field.number {
            graph::OUTPUT => text(bytes, 1)? == Some(output),
            graph::NODE => node(bytes)?.outputs.into_iter().any(|name| is_needed(Some(name))),
            graph::INITIALIZER => is_needed(text(bytes, 8)?),
            graph::VALUE_INFO => is_needed(text(bytes, 1)?),
            _ => true,
        };
        if kept {
            pruned.extend_from_slice(field.whole);
        }
    }
    Ok(pruned)
}

/// Names of all values on the way to an output. `None` if that cannot be seen from outside: graphs
/// inside of nodes use values of the graph around them by name.
fn needed_values<'a>(whole: &'a [u8], output: &'a str) -> Result<Option<HashSet<&'a str>>, Damaged> {
    let mut nodes = Vec::new();
    for field in fields(whole) {
        let field = field?;
        if let Some(bytes) = field.bytes().filter(|_| field.number == graph::NODE) {
            if has_inner_graph(bytes)? {
                return Ok(None);
            }
            nodes.push(node(bytes)?);
        }
    }
    let mut needed = HashSet::from([output]);
    // Nodes stand behind those whose values they use.
    for node in nodes.into_iter().rev() {
        if node.outputs.iter().any(|name| needed.contains(name)) {
            needed.extend(node.inputs);
        }
    }
    Ok(Some(needed))
}

fn node(bytes: &[u8]) -> Result<Node<'_>, Damaged> {
    let mut node = Node { inputs: Vec::new(), outputs: Vec::new() };
    for field in fields(bytes) {
        let field = field?;
        match (field.number, field.text()) {
            (1, Some(name)) => node.inputs.push(name),
            // An output that is left out has an empty name.
            (2, Some(name)) if !name.is_empty() => node.outputs.push(name),
            _ => {}
        }
    }
    Ok(node)
}

fn has_inner_graph(node: &[u8]) -> Result<bool, Damaged> {
    for field in fields(node) {
        let field = field?;
        let Some(attribute) = field.bytes().filter(|_| field.number == 5) else { continue };
        for field in fields(attribute) {
            if matches!(field?.number, 6 | 11) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}
