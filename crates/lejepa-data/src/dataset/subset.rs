//! Some images of a dataset.

use super::{Dataset, Fingerprinter, Stored};
use crate::Result;

/// Some images of a dataset, in the order given.
pub(super) struct Subset {
    dataset: Box<dyn Dataset>,
    indices: Vec<usize>,
    notes: Vec<String>,
}

impl Subset {
    /// `note` is what a user should know about the others.
    pub(super) fn new(dataset: Box<dyn Dataset>, indices: Vec<usize>, note: String) -> Self {
        let mut notes = dataset.notes().to_vec();
        notes.push(note);
        Self { dataset, indices, notes }
    }
}

impl Dataset for Subset {
    fn len(&self) -> usize {
        self.indices.len()
    }

    fn stored(&self, index: usize) -> Result<Stored> {
        self.dataset.stored(self.indices[index])
    }

    fn name(&self, index: usize) -> String {
        self.dataset.name(self.indices[index])
    }

    fn label(&self, index: usize) -> Option<usize> {
        self.dataset.label(self.indices[index])
    }

    fn class_names(&self) -> &[String] {
        self.dataset.class_names()
    }

    fn files(&self) -> Vec<std::path::PathBuf> {
        self.dataset.files()
    }

    /// Of the whole and of which images of it these are.
    fn fingerprint(&self, fingerprinter: &mut Fingerprinter<'_>) -> Result<String> {
        let whole = self.dataset.fingerprint(fingerprinter)?;
        let indices: Vec<u8> = self.indices.iter().flat_map(|&index| (index as u64).to_le_bytes()).collect();
        Ok(Fingerprinter::combined([whole.as_bytes(), &indices]))
    }

    fn notes(&self) -> &[String] {
        &self.notes
    }
}
