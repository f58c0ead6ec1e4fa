//! A dataset with something more to say.

use super::{Dataset, Fingerprinter, Stored};
use crate::{Image, Result};

/// The same dataset with another note.
pub(super) struct Noted {
    dataset: Box<dyn Dataset>,
    notes: Vec<String>,
}

impl Noted {
    pub(super) fn new(dataset: Box<dyn Dataset>, note: String) -> Self {
        let mut notes = dataset.notes().to_vec();
        notes.push(note);
        Self { dataset, notes }
    }
}

impl Dataset for Noted {
    fn len(&self) -> usize {
        self.dataset.len()
    }

    fn stored(&self, index: usize) -> Result<Stored> {
        self.dataset.stored(index)
    }

    fn name(&self, index: usize) -> String {
        self.dataset.name(index)
    }

    fn label(&self, index: usize) -> Option<usize> {
        self.dataset.label(index)
    }

    fn class_names(&self) -> &[String] {
        self.dataset.class_names()
    }

    fn files(&self) -> Vec<std::path::PathBuf> {
        self.dataset.files()
    }

    fn fingerprint(&self, fingerprinter: &mut Fingerprinter<'_>) -> Result<String> {
        self.dataset.fingerprint(fingerprinter)
    }

    fn notes(&self) -> &[String] {
        &self.notes
    }

    fn image(&self, index: usize) -> Result<Image> {
        self.dataset.image(index)
    }
}
