//! Files of features that other tools open: `.npy`, `.safetensors`, `.parquet`.
//!
//! Rows are written part by part: memory does not grow with their number. Parquet holds ids and labels
//! itself; beside the others lies a `.csv` with a line per row. What computed the rows is in the metadata of
//! `.safetensors` and `.parquet`, and beside `.npy`, which has none, in a `.json`.

mod listing;
mod npy;
mod parquet;
mod precision;
mod safetensors;

use std::io::Write;
use std::path::{Path, PathBuf};

use lejepa_data::{AtomicFile, Claim, regular_file};

pub use self::precision::FeaturePrecision;
use crate::features::{Extracted, Key};
use crate::sets::ImageList;
use crate::{Error, Result};

/// The kinds of files, recognised by their endings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FeatureFormat {
    /// One array, `(images, dim)`.
    Npy,
    /// `features` `(images, dim)` and `labels` `(images)`, -1 where there is none.
    Safetensors,
    /// Columns `id`, `split`, `label`, `class` and `embedding`, a list of fixed size.
    Parquet,
}

/// How features are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FeatureFile {
    /// The kind of file.
    pub format: FeatureFormat,
    /// How its numbers are stored.
    pub precision: FeaturePrecision,
}

impl FeatureFile {
    /// The kind of file that a path ends in.
    pub fn of(path: &Path, precision: FeaturePrecision) -> Result<Self> {
        let format = match path.extension().and_then(|ending| ending.to_str()) {
            Some("npy") => FeatureFormat::Npy,
            Some("safetensors") => FeatureFormat::Safetensors,
            Some("parquet") => FeatureFormat::Parquet,
            _ => return Err(Error::FeatureFormat { path: path.into() }),
        };
        Ok(Self { format, precision })
    }

    /// All files that are written.
    pub fn paths(&self, path: &Path) -> Vec<PathBuf> {
        match self.format {
            FeatureFormat::Npy => vec![path.into(), listing_of(path), description_of(path)],
            FeatureFormat::Safetensors => vec![path.into(), listing_of(path)],
            FeatureFormat::Parquet => vec![path.into()],
        }
    }

    /// Whether all files are there and say that they hold just what an extraction would give. What they really hold is
    /// for a [`Claim`] to tell.
    pub fn is_written(&self, path: &Path, key: &Key) -> bool {
        let Ok(expected) = description(key, self.precision) else { return false };
        let found = match self.format {
            FeatureFormat::Npy => regular_file::read(&description_of(path)).ok(),
            FeatureFormat::Safetensors => safetensors::description(path),
            FeatureFormat::Parquet => parquet::description(path),
        };
        let found: Option<serde_json::Map<String, serde_json::Value>> =
            found.and_then(|json| serde_json::from_slice(&json).ok());
        let says = |(name, value): &(&str, String)| {
            found.as_ref().and_then(|found| found.get(*name)?.as_str()) == Some(value)
        };
        self.paths(path).iter().all(|path| path.is_file()) && expected.iter().all(says)
    }

    /// Writes features with what is known of their images, with the right to all of [`Self::paths`].
    pub fn write(&self, claim: &Claim, path: &Path, features: &Extracted, images: &ImageList) -> Result<()> {
        let precision = self.precision;
        let about = description(&features.key, precision)?;
        match self.format {
            FeatureFormat::Parquet => {
                return streamed(claim, path, |file| {
                    parquet::write(file, features, images, precision, &about)
                });
            }
            FeatureFormat::Safetensors => {
                streamed(claim, path, |file| safetensors::write(file, features, images, precision, &about))?;
            }
            FeatureFormat::Npy => {
                streamed(claim, path, |file| npy::write(file, features, precision))?;
                let about: serde_json::Map<_, _> =
                    about.iter().map(|(name, value)| (name.to_string(), value.as_str().into())).collect();
                let about = serde_json::to_string_pretty(&about).map_err(Error::Json)?;
                claim.write(&description_of(path), format!("{about}\n").as_bytes())?;
            }
        }
        listing::write(claim, &listing_of(path), features, images)
    }
}

fn listing_of(path: &Path) -> PathBuf {
    path.with_extension("csv")
}

/// `features.npy.json`.
fn description_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".json");
    name.into()
}

/// What computed the rows, and of what.
fn description(key: &Key, precision: FeaturePrecision) -> Result<[(&'static str, String); 4]> {
    let program = format!("lejepa {}", env!("CARGO_PKG_VERSION"));
    let encoder = key.computation.encoder.clone();
    let (key, precision) = (serde_json::to_string(key).map_err(Error::Json)?, precision.name().to_string());
    Ok([("program", program), ("encoder", encoder), ("key", key), ("precision", precision)])
}

/// Writes a file atomically with a function whose errors are this crate's.
fn streamed(
    claim: &Claim,
    path: &Path,
    write: impl FnOnce(&mut (dyn Write + Send)) -> Result<()>,
) -> Result<()> {
    let mut file = AtomicFile::create(path)?;
    write(&mut file).map_err(|error| Error::FeatureFile { path: path.into(), source: Box::new(error) })?;
    Ok(claim.commit(file)?)
}

/// Little-endian bytes of rows.
fn write_rows(file: &mut dyn Write, features: &Extracted, precision: FeaturePrecision) -> Result<()> {
    features.for_each_part(|_, rows| {
        let bytes: Vec<u8> = match precision {
            FeaturePrecision::F32 => rows.iter().flat_map(|value| value.to_le_bytes()).collect(),
            FeaturePrecision::F16 => {
                precision::halved(rows)?.iter().flat_map(|value| value.to_le_bytes()).collect()
            }
        };
        file.write_all(&bytes).map_err(Error::Write)
    })
}
