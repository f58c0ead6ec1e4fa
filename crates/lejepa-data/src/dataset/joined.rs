//! Several datasets one after the other, for pretraining: labels play no part.

use std::path::PathBuf;

use super::{Dataset, Fingerprinter};
use crate::{Result, Stored};

/// Datasets one after the other.
pub(super) struct Joined {
    /// Each with the index of its first image.
    parts: Vec<(usize, Box<dyn Dataset>)>,
    images: usize,
    notes: Vec<String>,
}

impl Joined {
    /// Joins datasets in their order.
    pub(super) fn new(datasets: Vec<Box<dyn Dataset>>) -> Self {
        let mut joined = Self { parts: Vec::new(), images: 0, notes: Vec::new() };
        for dataset in datasets {
            joined.notes.extend_from_slice(dataset.notes());
            let length = dataset.len();
            joined.parts.push((joined.images, dataset));
            joined.images += length;
        }
        joined
    }

    /// The dataset that an image comes from, and its index there.
    fn find(&self, index: usize) -> (&dyn Dataset, usize) {
        let part = self.parts.partition_point(|(first, _)| *first <= index).saturating_sub(1);
        let (first, dataset) = &self.parts[part];
        (&**dataset, index - first)
    }
}

impl Dataset for Joined {
    fn len(&self) -> usize {
        self.images
    }

    fn stored(&self, index: usize) -> Result<Stored> {
        let (dataset, index) = self.find(index);
        dataset.stored(index)
    }

    fn name(&self, index: usize) -> String {
        let (dataset, index) = self.find(index);
        dataset.name(index)
    }

    fn label(&self, _index: usize) -> Option<usize> {
        None
    }

    fn class_names(&self) -> &[String] {
        &[]
    }

    fn files(&self) -> Vec<PathBuf> {
        self.parts.iter().flat_map(|(_, dataset)| dataset.files()).collect()
    }

    fn fingerprint(&self, fingerprinter: &mut Fingerprinter<'_>) -> Result<String> {
        let parts = self.parts.iter().map(|(_, dataset)| dataset.fingerprint(fingerprinter));
        Ok(Fingerprinter::combined(parts.collect::<Result<Vec<_>>>()?))
    }

    fn notes(&self) -> &[String] {
        &self.notes
    }
}
