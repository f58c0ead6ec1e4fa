//! A list of image files with labels: what image folders and the layouts of well-known sets come to.

use std::path::{Path, PathBuf};

use rayon::prelude::*;

use super::{Dataset, Split};
use crate::{Error, Result, Stored, encoded_file};

/// Image files, read when they are asked for.
#[derive(Debug)]
pub(super) struct ImageFiles {
    root: PathBuf,
    files: Vec<ImageFile>,
    class_names: Vec<String>,
    notes: Vec<String>,
}

/// One image of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ImageFile {
    /// Below the root of the dataset.
    pub path: PathBuf,
    /// An index into the class names.
    pub label: Option<usize>,
}

impl ImageFiles {
    /// The files of a split that are there. Listed files that are absent are left out and counted in
    /// the notes; if all are absent it is an error.
    pub(super) fn new(
        root: &Path,
        split: Split,
        listed: Vec<ImageFile>,
        class_names: Vec<String>,
    ) -> Result<Self> {
        let count = listed.len();
        let mut files = Vec::with_capacity(count);
        let mut first_absent = None;
        // Looked for by all cores: on a network each look takes its time.
        let is_there: Vec<bool> = listed.par_iter().map(|file| root.join(&file.path).is_file()).collect();
        for (file, is_there) in listed.into_iter().zip(is_there) {
            if let Some(label) = file.label.filter(|&label| label >= class_names.len()) {
                return Err(Error::Label {
                    name: file.path.display().to_string(),
                    label,
                    classes: class_names.len(),
                });
            }
            if is_there {
                files.push(file);
            } else {
                first_absent.get_or_insert(file.path);
            }
        }
        if files.is_empty() {
            return Err(Error::NoImages { path: root.join(first_absent.unwrap_or_default()) });
        }
        let mut notes = Vec::new();
        if let Some(path) = first_absent {
            notes.push(format!(
                "{} of {count} listed {} images are not there, such as {}",
                count - files.len(),
                split.name(),
                path.display()
            ));
        }
        Ok(Self { root: root.into(), files, class_names, notes })
    }

    /// Files that were just found, with what there is to tell of them.
    pub(super) fn found(
        root: &Path,
        files: Vec<ImageFile>,
        class_names: Vec<String>,
        notes: Vec<String>,
    ) -> Self {
        Self { root: root.into(), files, class_names, notes }
    }
}

impl Dataset for ImageFiles {
    fn len(&self) -> usize {
        self.files.len()
    }

    fn stored(&self, index: usize) -> Result<Stored> {
        let path = self.root.join(&self.files[index].path);
        encoded_file::read(&path).map(Stored::File)
    }

    fn name(&self, index: usize) -> String {
        self.root.join(&self.files[index].path).display().to_string()
    }

    fn label(&self, index: usize) -> Option<usize> {
        self.files[index].label
    }

    fn class_names(&self) -> &[String] {
        &self.class_names
    }

    fn files(&self) -> Vec<PathBuf> {
        self.files.iter().map(|file| self.root.join(&file.path)).collect()
    }

    fn notes(&self) -> &[String] {
        &self.notes
    }
}
