//! How many nodes a graph has once its functions are written out, and whether any of them is a loop.

use std::collections::HashMap;

use super::number::{graph, model};
use super::wire::fields;
use super::{Damaged, text};

/// How deep graphs may lie inside of nodes, and functions inside of functions.
const DEEPEST: usize = 32;
/// Operators that run a graph any number of times.
const LOOPS: [&str; 3] = ["Loop", "Scan", "SequenceMap"];

/// What there is to compute.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Census {
    /// Those of a function count wherever it is used: a few lines can stand for any number of nodes.
    pub(crate) nodes: u64,
    /// The first operator that runs a graph any number of times.
    pub(crate) looping: Option<String>,
}

/// Functions of a file by domain and name, with the sum of their nodes where that is known.
struct Functions<'a> {
    bodies: HashMap<(&'a str, &'a str), &'a [u8]>,
    counted: HashMap<(&'a str, &'a str), Census>,
}

impl Census {
    pub(super) fn read(whole: &[u8]) -> Result<Self, Damaged> {
        let (mut functions, mut graphs) =
            (Functions { bodies: HashMap::new(), counted: HashMap::new() }, Vec::new());
        for field in fields(whole) {
            let field = field?;
            match (field.number, field.bytes()) {
                (model::GRAPH, Some(bytes)) => graphs.push(bytes),
                (model::FUNCTION, Some(bytes)) => {
                    let key = (text(bytes, 10)?.unwrap_or_default(), text(bytes, 1)?.unwrap_or_default());
                    functions.bodies.insert(key, bytes);
                }
                _ => {}
            }
        }
        let mut census = Self::default();
        for graph in graphs {
            census.add(functions.nodes(graph, graph::NODE, 0)?);
        }
        Ok(census)
    }

    fn add(&mut self, other: Self) {
        self.nodes = self.nodes.saturating_add(other.nodes);
        self.looping = self.looping.take().or(other.looping);
    }
}

impl<'a> Functions<'a> {
    /// The nodes in fields of this number.
    fn nodes(&mut self, outer: &'a [u8], number: u64, depth: usize) -> Result<Census, Damaged> {
        if depth > DEEPEST {
            return Err(Damaged);
        }
        let mut census = Census::default();
        for field in fields(outer) {
            let field = field?;
            if let Some(bytes) = field.bytes().filter(|_| field.number == number) {
                census.add(self.node(bytes, depth)?);
            }
        }
        Ok(census)
    }

    fn node(&mut self, node: &'a [u8], depth: usize) -> Result<Census, Damaged> {
        let operator = text(node, 4)?.unwrap_or_default();
        let domain = text(node, 7)?.unwrap_or_default();
        let looping = LOOPS.contains(&operator).then(|| operator.to_string());
        let mut census = Census { nodes: 1, looping };
        for field in fields(node) {
            let field = field?;
            let Some(attribute) = field.bytes().filter(|_| field.number == 5) else { continue };
            for field in fields(attribute) {
                let field = field?;
                if let (6 | 11, Some(inner)) = (field.number, field.bytes()) {
                    census.add(self.nodes(inner, graph::NODE, depth + 1)?);
                }
            }
        }
        if let Some(&body) = self.bodies.get(&(domain, operator)) {
            let counted = match self.counted.get(&(domain, operator)) {
                Some(counted) => counted.clone(),
                // A function that calls itself ends here as one that is too deep.
                None => self.nodes(body, 7, depth + 1)?,
            };
            self.counted.insert((domain, operator), counted.clone());
            census.add(counted);
        }
        Ok(census)
    }
}
