//! The ways in which people keep images.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{Cifar, Idx, ImageFolder, Parquet, ReadOptions, Split, WebDataset};
use crate::{Dataset, Result};

/// How a dataset is stored; its name in recipes and on the command line is in lower case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// IDX files, the MNIST family.
    Idx,
    /// CIFAR-10 and CIFAR-100, binary or pickled.
    Cifar,
    /// Parquet files with a column of encoded images.
    Parquet,
    /// Tar files in which files of one name make a sample.
    WebDataset,
    /// Image files in class folders, or side by side.
    Folder,
}

impl Format {
    /// Every format, in the order in which a path is tried.
    pub const ALL: [Self; 5] = [Self::Idx, Self::Cifar, Self::Parquet, Self::WebDataset, Self::Folder];

    /// The format's name in recipes and messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Idx => "idx",
            Self::Cifar => "cifar",
            Self::Parquet => "parquet",
            Self::WebDataset => "webdataset",
            Self::Folder => "folder",
        }
    }

    /// What lies at a path. Anything that no other format claims is a folder of images.
    pub fn recognise(path: &Path) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.is_at(path))
    }

    fn is_at(self, path: &Path) -> bool {
        match self {
            Self::Idx => Idx::is_at(path),
            Self::Cifar => Cifar::is_at(path),
            Self::Parquet => Parquet::is_at(path),
            Self::WebDataset => WebDataset::is_at(path),
            Self::Folder => path.is_dir(),
        }
    }

    pub(super) fn open(self, path: &Path, split: Split, options: &ReadOptions) -> Result<Box<dyn Dataset>> {
        let known: &[&str] = match self {
            Self::Parquet => &["data.images", "data.labels"],
            Self::Idx | Self::Cifar | Self::WebDataset | Self::Folder => &[],
        };
        options.allow_only(self, known)?;
        Ok(match self {
            Self::Idx => Box::new(Idx::open(path, split)?),
            Self::Cifar => Box::new(Cifar::open(path, split)?),
            Self::Parquet => Box::new(Parquet::open(path, split, options)?),
            Self::WebDataset => Box::new(WebDataset::open(path, split)?),
            Self::Folder => Box::new(ImageFolder::open(path, split)?),
        })
    }
}
