//! The ways in which people keep images.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::cifar::Cifar;
use super::cifar_sheets::CifarSheets;
use super::galaxy10::Galaxy10;
use super::npy::Npy;
use super::npz::Npz;
use super::parquet::Parquet;
use super::stl10::Stl10;
use super::webdataset::WebDataset;
use super::{Hdf5, Idx, ImageFolder, ReadOptions, Split, aircraft, cars, dtd, flowers102, food101, pets};
use crate::{Dataset, Result};

/// How a dataset is stored; its name in recipes and on the command line is in lower case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// IDX files, the MNIST family.
    Idx,
    /// CIFAR-10 and CIFAR-100, binary or pickled; CIFAR-10 also as sheets in PNG.
    Cifar,
    /// STL-10's binary files.
    Stl10,
    /// Describable textures in their official layout.
    Dtd,
    /// Oxford flowers in their official layout.
    Flowers102,
    /// Food-101 in its official layout.
    Food101,
    /// Oxford-IIIT pets in their official layout.
    Pets,
    /// Stanford cars, as torchvision keeps them or in one file.
    Cars,
    /// FGVC aircraft, classified by variant.
    Aircraft,
    /// Galaxy10, in HDF5 files with `images` and `ans`.
    Galaxy10,
    /// Datasets of an HDF5 file.
    Hdf5,
    /// Arrays of numpy in one archive, such as MedMNIST.
    Npz,
    /// Arrays of numpy in files of their own.
    Npy,
    /// Parquet files with a column of encoded images.
    Parquet,
    /// Tar files in which files of one name make a sample.
    WebDataset,
    /// Image files in class folders, or side by side.
    Folder,
}

impl Format {
    /// Every format, in the order in which a path is tried.
    pub const ALL: [Self; 16] = [
        Self::Idx,
        Self::Cifar,
        Self::Stl10,
        Self::Dtd,
        Self::Flowers102,
        Self::Food101,
        Self::Pets,
        Self::Cars,
        Self::Aircraft,
        Self::Galaxy10,
        Self::Hdf5,
        Self::Npz,
        Self::Npy,
        Self::Parquet,
        Self::WebDataset,
        Self::Folder,
    ];

    /// The format's name in recipes and messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Idx => "idx",
            Self::Cifar => "cifar",
            Self::Stl10 => "stl10",
            Self::Dtd => "dtd",
            Self::Flowers102 => "flowers102",
            Self::Food101 => "food101",
            Self::Pets => "pets",
            Self::Cars => "cars",
            Self::Aircraft => "aircraft",
            Self::Galaxy10 => "galaxy10",
            Self::Hdf5 => "hdf5",
            Self::Npz => "npz",
            Self::Npy => "npy",
            Self::Parquet => "parquet",
            Self::WebDataset => "webdataset",
            Self::Folder => "folder",
        }
    }

    /// What lies at a path. Anything that no other format claims is a folder of images.
    pub fn recognise(path: &Path) -> Option<Self> {
        Self::recognise_with(path, &ReadOptions::default())
    }

    /// The same within the limits of these options: some formats are told by what is packed in them.
    pub(super) fn recognise_with(path: &Path, options: &ReadOptions) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.is_at(path, options))
    }

    fn is_at(self, path: &Path, options: &ReadOptions) -> bool {
        match self {
            Self::Idx => Idx::is_at(path),
            Self::Cifar => Cifar::is_at(path) || CifarSheets::is_at(path),
            Self::Stl10 => Stl10::is_at(path),
            Self::Dtd => dtd::is_at(path),
            Self::Flowers102 => flowers102::is_at(path),
            Self::Food101 => food101::is_at(path),
            Self::Pets => pets::is_at(path),
            Self::Cars => cars::is_at(path),
            Self::Aircraft => aircraft::is_at(path),
            Self::Galaxy10 => Galaxy10::is_at(path, options),
            Self::Hdf5 => Hdf5::is_at(path),
            Self::Npz => Npz::is_at(path),
            Self::Npy => Npy::is_at(path),
            Self::Parquet => Parquet::is_at(path),
            Self::WebDataset => WebDataset::is_at(path),
            Self::Folder => path.is_dir(),
        }
    }

    /// The options that the format reads.
    fn options(self) -> &'static [&'static str] {
        match self {
            Self::Dtd => &["data.options.fold"],
            Self::Galaxy10 | Self::Hdf5 | Self::Npz | Self::Parquet => {
                &["data.options.images", "data.options.labels"]
            }
            _ => &[],
        }
    }

    /// Whether labels may be any numbers, so that classes are those that occur.
    pub(super) fn numbers_classes(self) -> bool {
        match self {
            Self::Idx | Self::Hdf5 | Self::Npz | Self::Npy | Self::Parquet | Self::WebDataset => true,
            Self::Cifar
            | Self::Stl10
            | Self::Dtd
            | Self::Flowers102
            | Self::Food101
            | Self::Pets
            | Self::Cars
            | Self::Aircraft
            | Self::Galaxy10
            | Self::Folder => false,
        }
    }

    pub(super) fn open(self, path: &Path, split: Split, options: &ReadOptions) -> Result<Box<dyn Dataset>> {
        options.refuse_unknown(self.options(), self.name())?;
        Ok(match self {
            Self::Idx => Box::new(Idx::open(path, split, options)?),
            Self::Cifar if CifarSheets::is_at(path) => Box::new(CifarSheets::open(path, split)?),
            Self::Cifar => Box::new(Cifar::open(path, split)?),
            Self::Stl10 => Box::new(Stl10::open(path, split)?),
            Self::Dtd => Box::new(dtd::open(path, split, options)?),
            Self::Flowers102 => Box::new(flowers102::open(path, split)?),
            Self::Food101 => Box::new(food101::open(path, split)?),
            Self::Pets => Box::new(pets::open(path, split)?),
            Self::Cars => Box::new(cars::open(path, split)?),
            Self::Aircraft => Box::new(aircraft::open(path, split)?),
            Self::Galaxy10 => Box::new(Galaxy10::open(path, split, options)?),
            Self::Hdf5 => Box::new(Hdf5::open(path, split, options)?),
            Self::Npz => Box::new(Npz::open(path, split, options)?),
            Self::Npy => Box::new(Npy::open(path, split)?),
            Self::Parquet => Box::new(Parquet::open(path, split, options)?),
            Self::WebDataset => Box::new(WebDataset::open(path, split)?),
            Self::Folder => Box::new(ImageFolder::open(path, split)?),
        })
    }
}
