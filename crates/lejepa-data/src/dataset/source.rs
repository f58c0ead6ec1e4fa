//! Where data lies and how it is read: what a recipe says about one dataset.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Format, Split};
use crate::{Dataset, Error, Result};

/// One dataset of a recipe.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SourceConfig {
    /// A folder or file, seen from the working directory.
    pub path: PathBuf,
    /// How it is stored; recognised from the path if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<Format>,
    /// What only some formats need.
    #[serde(skip_serializing_if = "ReadOptions::is_empty")]
    pub options: ReadOptions,
}

/// What only some formats need; an option that a format does not know is refused.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ReadOptions {
    /// Which of DTD's ten official splits, 1 to 10; 1 if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fold: Option<usize>,
    /// Name of the images inside an HDF5, npz or Parquet file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub images: Option<String>,
    /// Name of the labels inside an HDF5, npz or Parquet file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub labels: Option<String>,
}

impl SourceConfig {
    /// How the data is stored: as the recipe says, or as recognised from the path.
    pub fn recognise(&self) -> Result<Format> {
        let path = &self.path;
        if !path.exists() {
            return Err(Error::NotFound { path: path.into() });
        }
        let recognised = || Format::recognise(path);
        self.format.or_else(recognised).ok_or_else(|| Error::UnknownFormat { path: path.into() })
    }
}

impl ReadOptions {
    /// Whether nothing is asked for.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Opens a split of whatever lies at a path.
pub fn open(path: &Path, split: Split) -> Result<Box<dyn Dataset>> {
    open_source(&SourceConfig { path: path.into(), ..Default::default() }, split)
}

/// Opens a split of a dataset as a recipe describes it.
pub fn open_source(source: &SourceConfig, split: Split) -> Result<Box<dyn Dataset>> {
    source.recognise()?.open(&source.path, split, &source.options)
}
