//! Images behind one interface, recognised from the path.

mod folder;
mod idx;

pub use folder::ImageFolder;
pub use idx::Idx;

use std::path::Path;

use crate::{Error, Image, Result};

/// A set of images, labelled or not.
pub trait Dataset: Send + Sync {
    /// Number of images.
    fn len(&self) -> usize;

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Decodes an image.
    fn image(&self, index: usize) -> Result<Image>;

    /// The class of an image: an index into [`Dataset::class_names`].
    fn label(&self, index: usize) -> Option<usize>;

    /// Names of the classes; empty for unlabelled data.
    fn class_names(&self) -> &[String];

    /// A short hash that changes when the data does.
    fn fingerprint(&self) -> &str;
}

/// Which part of a dataset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Split {
    /// What is learnt from.
    Train,
    /// What is scored on.
    Test,
}

impl Split {
    /// The split's name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Train => "training",
            Self::Test => "test",
        }
    }
}

/// Opens a split of whatever lies at a path: a folder with IDX files (the MNIST family), or a folder
/// of images.
pub fn open(path: &Path, split: Split) -> Result<Box<dyn Dataset>> {
    if !path.exists() {
        return Err(Error::NotFound { path: path.into() });
    }
    if !path.is_dir() {
        return Err(Error::Setting {
            field: "data.path",
            expected: "a folder with images or IDX files".into(),
            got: format!("the file {}", path.display()),
        });
    }
    if Idx::is_at(path) {
        return Ok(Box::new(Idx::open(path, split)?));
    }
    Ok(Box::new(ImageFolder::open(path, split)?))
}
