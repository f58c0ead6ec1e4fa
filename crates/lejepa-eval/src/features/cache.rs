//! The folder in which evaluations keep features: what is in it, and how it is made smaller.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use lejepa_data::{Hold, Lock, regular_file};
use serde::Serialize;

use crate::features::Key;
use crate::features::extraction::{ABOUT, About, KEY, LOCK};
use crate::{Error, Result};

/// Digits of an entry's name.
const DIGITS: usize = 24;

/// Features of one encoder on one list of images.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CacheEntry {
    /// Its folder.
    pub path: PathBuf,
    /// The encoder's file when it was used last; nothing in entries of earlier versions, which are not used
    /// any more.
    pub encoder: Option<String>,
    /// The first image.
    pub first: Option<String>,
    /// What was computed, and how many images there are.
    pub key: Option<Key>,
    /// Bytes on disk.
    pub bytes: u64,
    /// Seconds since somebody used it.
    pub seconds_unused: u64,
}

/// A folder of entries.
#[derive(Debug, Clone)]
pub struct FeatureCache {
    path: PathBuf,
}

impl FeatureCache {
    /// The cache in a folder.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// All entries, those that were used last first. Nothing else in the folder is looked at.
    pub fn entries(&self) -> Result<Vec<CacheEntry>> {
        let failed = |source| Error::File { path: self.path.clone(), source };
        let folders = match std::fs::read_dir(&self.path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            folders => folders.map_err(failed)?,
        };
        let mut entries = Vec::new();
        for folder in folders {
            let path = folder.map_err(failed)?.path();
            if is_entry(&path) {
                entries.push(CacheEntry::read(path));
            }
        }
        entries.sort_by_key(|entry| (entry.seconds_unused, entry.path.clone()));
        Ok(entries)
    }

    /// Removes an entry; `false` if somebody is using it.
    pub fn remove(&self, entry: &CacheEntry) -> Result<bool> {
        let failed = |source| Error::File { path: entry.path.clone(), source };
        let Some(_lock) = Lock::take(&entry.path.join(LOCK), Hold::Exclusive)? else { return Ok(false) };
        std::fs::remove_dir_all(&entry.path).map_err(failed)?;
        Ok(true)
    }
}

impl CacheEntry {
    fn read(path: PathBuf) -> Self {
        let (mut bytes, mut used) = (0, SystemTime::UNIX_EPOCH);
        for file in std::fs::read_dir(&path).into_iter().flatten().flatten() {
            if let Ok(metadata) = file.metadata() {
                bytes += metadata.len();
                used = used.max(metadata.modified().unwrap_or(used));
            }
        }
        let json = |name: &str| regular_file::read(&path.join(name)).unwrap_or_default();
        let about: Option<About> = serde_json::from_slice(&json(ABOUT)).ok();
        let (encoder, first) = about.map(|about| (about.encoder, about.first)).unzip();
        let unused = used.elapsed().unwrap_or(Duration::ZERO).as_secs();
        let key = serde_json::from_slice(&json(KEY)).ok();
        Self { encoder, first, key, bytes, seconds_unused: unused, path }
    }
}

/// Only what an extraction makes: nothing of the user's is ever removed.
fn is_entry(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.len() == DIGITS && name.bytes().all(|byte| byte.is_ascii_hexdigit()) && path.join(KEY).is_file()
}
