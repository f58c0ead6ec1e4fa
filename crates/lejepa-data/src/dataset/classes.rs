//! The classes of a well-known set: their order gives the labels.

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;

use super::{Split, split_file};

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
        let names: Vec<String> = names.into_iter().map(Into::into).collect();
        let labels = names.iter().cloned().zip(0..).collect();
        Self { names, labels }
    }

    /// Classes in the order of a file with one per line.
    pub(super) fn read(path: PathBuf, split: Split) -> crate::Result<Self> {
        let mut labels = HashMap::new();
        let names = split_file::read(path, split, |name| {
            let label = labels.len();
            match labels.insert(name.to_string(), label) {
                None => Ok(name.to_string()),
                Some(_) => Err(format!("class `{name}` for the second time")),
            }
        })?;
        Ok(Self { names, labels })
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
