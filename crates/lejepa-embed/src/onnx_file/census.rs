//! How many nodes a graph has once its functions are written out, and whether any of them is a loop.
//!
//! Which function a node means is up to ONNX Runtime, whose rules (versions, overloads, names of domains) are not
//! repeated here: of several functions that it may be the largest counts, and a loop in any of them is one of the
//! file, whether it is used or not.

use std::collections::HashMap;

use super::number::{graph, model};
use super::wire::fields;
use super::{Damaged, message};

/// How deep graphs may lie inside of nodes, and functions inside of functions, together.
const DEEPEST: usize = 32;
/// Operators that run a graph any number of times.
const LOOPS: [&[u8]; 3] = [b"Loop", b"Scan", b"SequenceMap"];
/// The one that runs a graph at most once. Others that hold one are taken for loops, such as searches.
const BRANCH: &[u8] = b"If";
/// Another name of the domain without name.
const USUAL_DOMAIN: &[u8] = b"ai.onnx";

/// What there is to compute.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Census {
    /// Those of a function count wherever it is used: a few lines can stand for any number of nodes.
    pub(crate) nodes: u64,
    /// The first operator that runs a graph any number of times.
    pub(crate) looping: Option<String>,
    /// How deep graphs and functions lie inside of it.
    depth: usize,
}

/// Domain and name, as they stand in the file: text is not always UTF-8.
type Name<'a> = (&'a [u8], &'a [u8]);

/// Functions of a file, with what was counted in all of a name.
struct Functions<'a> {
    bodies: HashMap<Name<'a>, Vec<&'a [u8]>>,
    counted: HashMap<Name<'a>, Census>,
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
                    functions.bodies.entry(name(bytes, 10, 1)?).or_default().push(bytes);
                }
                _ => {}
            }
        }
        let mut census = Self::default();
        for graph in graphs {
            census.add(functions.nodes(graph, graph::NODE, 0)?);
        }
        let names: Vec<Name<'_>> = functions.bodies.keys().copied().collect();
        for name in names {
            let Self { looping, .. } = functions.all_of(name, 0)?;
            census.looping = census.looping.take().or(looping);
        }
        Ok(census)
    }

    fn add(&mut self, other: Self) {
        self.nodes = self.nodes.saturating_add(other.nodes);
        self.looping = self.looping.take().or(other.looping);
        self.depth = self.depth.max(other.depth);
    }

    /// Of two that it may be, the worse one.
    fn either(self, other: Self) -> Self {
        Self {
            nodes: self.nodes.max(other.nodes),
            looping: self.looping.or(other.looping),
            depth: self.depth.max(other.depth),
        }
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
        let name = name(node, 7, 4)?;
        let mut census = Census { nodes: 1, ..Census::default() };
        let mut holds_graph = false;
        for field in fields(node) {
            let field = field?;
            let Some(attribute) = field.bytes().filter(|_| field.number == 5) else { continue };
            for field in fields(attribute) {
                let field = field?;
                if let (6 | 11, Some(inner)) = (field.number, field.bytes()) {
                    holds_graph = true;
                    census.add(self.nodes(inner, graph::NODE, depth + 1)?.deeper());
                }
            }
        }
        let (_, operator) = name;
        if LOOPS.contains(&operator) || holds_graph && operator != BRANCH {
            census.looping = Some(String::from_utf8_lossy(operator).into_owned());
        }
        if self.bodies.contains_key(&name) {
            census.add(self.all_of(name, depth + 1)?.deeper());
        }
        Ok(census)
    }

    /// The functions of a name, whichever of them is meant.
    fn all_of(&mut self, name: Name<'a>, depth: usize) -> Result<Census, Damaged> {
        let counted = match self.counted.get(&name) {
            Some(counted) => counted.clone(),
            // A function that calls itself ends here as one that is too deep.
            None => {
                let bodies = self.bodies.get(&name).cloned().unwrap_or_default();
                let counted = bodies.into_iter().try_fold(Census::default(), |census, body| {
                    Ok::<_, Damaged>(census.either(self.nodes(body, 7, depth)?))
                })?;
                self.counted.insert(name, counted.clone());
                counted
            }
        };
        // What was counted where it is less deep may be too deep here.
        if depth + counted.depth > DEEPEST { Err(Damaged) } else { Ok(counted) }
    }
}

impl Census {
    /// The same as something that lies inside.
    fn deeper(self) -> Self {
        Self { depth: self.depth + 1, ..self }
    }
}

/// Domain and name in fields of these numbers.
fn name(outer: &[u8], domain: u64, name: u64) -> Result<Name<'_>, Damaged> {
    let domain = message(outer, domain)?.unwrap_or_default();
    let domain = if domain == USUAL_DOMAIN { &[][..] } else { domain };
    Ok((domain, message(outer, name)?.unwrap_or_default()))
}
