//! Files of features that other tools open: `.npy`, `.safetensors`, `.parquet`.
//!
//! Rows are written part by part: memory does not grow with their number. Parquet holds ids and labels
//! itself; beside the others lies a `.csv` with a line per row.

mod listing;
mod npy;
mod parquet;
mod safetensors;

use std::io::Write;
use std::path::Path;

use lejepa_data::write_atomically;

use crate::{Error, Extracted, ImageList, Result};

/// The kinds of files, recognised by their endings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FeatureFormat {
    /// One array, `(images, dim)`.
    Npy,
    /// `features` `(images, dim)` and `labels` `(images)`, -1 where there is none.
    Safetensors,
    /// Columns `id`, `split`, `label`, `class` and `embedding`.
    Parquet,
}

impl FeatureFormat {
    /// What a path ends in.
    pub fn of(path: &Path) -> Result<Self> {
        match path.extension().and_then(|ending| ending.to_str()) {
            Some("npy") => Ok(Self::Npy),
            Some("safetensors") => Ok(Self::Safetensors),
            Some("parquet") => Ok(Self::Parquet),
            _ => Err(Error::FeatureFormat { path: path.into() }),
        }
    }

    /// Writes features with what is known of their images.
    pub fn write(self, path: &Path, features: &Extracted, images: &ImageList) -> Result<()> {
        match self {
            Self::Npy => streamed(path, |file| npy::write(file, features))?,
            Self::Safetensors => streamed(path, |file| safetensors::write(file, features, images))?,
            Self::Parquet => return streamed(path, |file| parquet::write(file, features, images)),
        }
        listing::write(&path.with_extension("csv"), features, images)
    }
}

/// Writes a file atomically with a function whose errors are this crate's.
fn streamed(path: &Path, write: impl FnOnce(&mut (dyn Write + Send)) -> Result<()>) -> Result<()> {
    let mut problem = None;
    let written = write_atomically(path, |file| {
        write(file).map_err(|error| {
            let message = std::io::Error::other(error.to_string());
            problem = Some(error);
            message
        })
    });
    match problem {
        Some(error) => Err(error),
        None => Ok(written?),
    }
}

/// Little-endian bytes of rows.
fn write_rows(file: &mut dyn Write, features: &Extracted) -> Result<()> {
    features.for_each_part(|_, rows| {
        let bytes: Vec<u8> = rows.iter().flat_map(|value| value.to_le_bytes()).collect();
        file.write_all(&bytes).map_err(Error::Write)
    })
}
