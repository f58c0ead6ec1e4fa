//! The ways in which people keep images.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{Galaxy10, Hdf5, Idx, ImageFolder, Npy, Npz, ReadOptions, Split};
use crate::{Dataset, Result};

/// How a dataset is stored; its name in recipes and on the command line is in lower case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// IDX files, the MNIST family.
    Idx,
    /// Galaxy10, in HDF5 files with `images` and `ans`.
    Galaxy10,
    /// Datasets of an HDF5 file.
    Hdf5,
    /// Arrays of numpy in one archive, such as MedMNIST.
    Npz,
    /// Arrays of numpy in files of their own.
    Npy,
    /// Image files in class folders, or side by side.
    Folder,
}

impl Format {
    /// Every format, in the order in which a path is tried.
    pub const ALL: [Self; 6] = [Self::Idx, Self::Galaxy10, Self::Hdf5, Self::Npz, Self::Npy, Self::Folder];

    /// The format's name in recipes and messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Idx => "idx",
            Self::Galaxy10 => "galaxy10",
            Self::Hdf5 => "hdf5",
            Self::Npz => "npz",
            Self::Npy => "npy",
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
            Self::Galaxy10 => Galaxy10::is_at(path),
            Self::Hdf5 => Hdf5::is_at(path),
            Self::Npz => Npz::is_at(path),
            Self::Npy => Npy::is_at(path),
            Self::Folder => path.is_dir(),
        }
    }

    pub(super) fn open(self, path: &Path, split: Split, options: &ReadOptions) -> Result<Box<dyn Dataset>> {
        let known: &[&str] = match self {
            Self::Galaxy10 | Self::Hdf5 | Self::Npz => &["data.images", "data.labels"],
            Self::Idx | Self::Npy | Self::Folder => &[],
        };
        options.allow_only(known, self)?;
        Ok(match self {
            Self::Idx => Box::new(Idx::open(path, split)?),
            Self::Galaxy10 => Box::new(Galaxy10::open(path, split, options)?),
            Self::Hdf5 => Box::new(Hdf5::open(path, split, options)?),
            Self::Npz => Box::new(Npz::open(path, split, options)?),
            Self::Npy => Box::new(Npy::open(path, split)?),
            Self::Folder => Box::new(ImageFolder::open(path, split)?),
        })
    }
}
