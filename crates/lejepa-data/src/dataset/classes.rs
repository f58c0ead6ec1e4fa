//! The classes of a well-known set: their order gives the labels.

use std::collections::{BTreeSet, HashMap};

/// Class names and the label of each.
#[derive(Debug)]
pub(super) struct Classes {
    names: Vec<String>,
    labels: HashMap<String, usize>,
}

impl Classes {
    /// Classes in alphabetical order, each once.
    pub(super) fn sorted<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        let names: BTreeSet<&str> = names.into_iter().collect();
        Self::in_order(names.into_iter().map(Into::into).collect())
    }

    /// Classes in the order of a file.
    pub(super) fn in_order(names: Vec<String>) -> Self {
        let labels = names.iter().cloned().zip(0..).collect();
        Self { names, labels }
    }

    /// The label of a class.
    pub(super) fn label(&self, name: &str) -> Option<usize> {
        self.labels.get(name).copied()
    }

    pub(super) fn into_names(self) -> Vec<String> {
        self.names
    }
}

/// The label of a class that a file counts from one.
pub(super) fn from_one(class: usize, count: usize) -> Result<usize, String> {
    match class {
        1.. if class <= count => Ok(class - 1),
        _ => Err(format!("class {class} is not 1 to {count}")),
    }
}
