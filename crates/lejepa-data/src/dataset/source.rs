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

impl ReadOptions {
    /// Whether nothing is asked for.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Refuses options that a format does not know.
    pub(super) fn allow_only(&self, format: Format, known: &[&str]) -> Result<()> {
        let fold = self.fold.map(|fold| fold.to_string());
        let given = [("data.fold", &fold), ("data.images", &self.images), ("data.labels", &self.labels)];
        for (field, value) in given {
            if let Some(got) = value.clone().filter(|_| !known.contains(&field)) {
                let expected = format!("absent for the format `{}`", format.name());
                return Err(Error::Setting { field, expected, got });
            }
        }
        Ok(())
    }
}

/// Opens a split of whatever lies at a path.
pub fn open(path: &Path, split: Split) -> Result<Box<dyn Dataset>> {
    open_source(&SourceConfig { path: path.into(), ..Default::default() }, split)
}

/// Opens a split of a dataset as a recipe describes it.
pub fn open_source(source: &SourceConfig, split: Split) -> Result<Box<dyn Dataset>> {
    let path = &source.path;
    if !path.exists() {
        return Err(Error::NotFound { path: path.into() });
    }
    let format = match source.format {
        Some(format) => format,
        None => Format::recognise(path).ok_or_else(|| Error::UnknownFormat { path: path.into() })?,
    };
    format.open(path, split, &source.options)
}
