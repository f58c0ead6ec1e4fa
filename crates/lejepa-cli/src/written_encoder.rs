//! An encoder file before it is in its place: in memory, or with its weights beside it on the disk.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use lejepa_data::{SelfTest, open_own_file};
use lejepa_embed::{Encoder, EncoderBuilder};
use tempfile::TempDir;

/// What it is called in messages until it has a name.
const NAME: &str = "the exported encoder";
/// What files of weights end in.
const ENDING: &str = "weights";
/// What folders of exports that are not finished begin with, and the file in them that their process holds.
const PREFIX: &str = ".lejepa-export-";
const LOCK: &str = "lock";

pub(crate) struct WrittenEncoder {
    /// Of the ONNX file.
    bytes: Vec<u8>,
    weights: Option<Weights>,
}

/// Weights that are on the disk already, in a folder beside their place.
struct Weights {
    folder: TempDir,
    /// Held for as long as the folder is in use.
    _lock: File,
    /// The file's name, here and there: another content has another one, so that nothing is overwritten that an
    /// older file needs.
    name: String,
    length: u64,
}

impl WrittenEncoder {
    pub(crate) fn inside(bytes: Vec<u8>) -> Self {
        Self { bytes, weights: None }
    }

    /// `encode` writes the weights and makes a name of their hash.
    pub(crate) fn beside(
        out: &Path,
        encode: impl FnOnce(&mut dyn Write, &dyn Fn(&str) -> String) -> Result<Vec<u8>>,
    ) -> Result<Self> {
        let parent = match out.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let failed = || format!("cannot write weights beside: {}", out.display());
        std::fs::create_dir_all(parent).with_context(failed)?;
        sweep(parent);
        let folder = tempfile::Builder::new().prefix(PREFIX).tempdir_in(parent).with_context(failed)?;
        let lock = File::create(folder.path().join(LOCK)).with_context(failed)?;
        // Where locks are not to be had, nobody takes it for left behind either.
        let _ = lock.try_lock();
        let (stem, name) =
            (out.file_stem().unwrap_or_default().to_string_lossy(), std::cell::OnceCell::new());
        let temporary = folder.path().join(ENDING);
        let mut file = BufWriter::new(File::create(&temporary).with_context(failed)?);
        let bytes = encode(&mut file, &|hash: &str| {
            name.get_or_init(|| format!("{stem}.{}.{ENDING}", hash.get(..16).unwrap_or(hash))).clone()
        })?;
        let file = file.into_inner().map_err(std::io::Error::from).with_context(failed)?;
        file.sync_all().with_context(failed)?;
        let length = file.metadata().with_context(failed)?.len();
        let name = name.into_inner().unwrap_or_else(|| format!("{stem}.{ENDING}"));
        std::fs::rename(temporary, folder.path().join(&name)).with_context(failed)?;
        Ok(Self { bytes, weights: Some(Weights { folder, _lock: lock, name, length }) })
    }

    pub(crate) fn megabytes(&self) -> f64 {
        let weights = self.weights.as_ref().map_or(0, |weights| weights.length);
        (self.bytes.len() as u64 + weights) as f64 / 1e6
    }

    /// Opens what there is so far.
    pub(crate) fn open(&self, opener: &EncoderBuilder) -> Result<Encoder> {
        match &self.weights {
            None => Ok(opener.open_bytes(NAME, &self.bytes)?),
            Some(weights) => {
                let path = weights.folder.path().join("encoder.onnx");
                std::fs::write(&path, &self.bytes)
                    .with_context(|| format!("cannot write: {}", path.display()))?;
                Ok(opener.open(&path)?)
            }
        }
    }

    pub(crate) fn add_self_test(&mut self, test: &SelfTest) -> Result<()> {
        self.bytes = lejepa_onnx::with_self_test(std::mem::take(&mut self.bytes), test)?;
        Ok(())
    }

    /// Weights of earlier exports to the same place, which are never removed: a file that was renamed may need
    /// them.
    pub(crate) fn earlier_weights(out: &Path, current: &Path) -> Vec<PathBuf> {
        let stem = format!("{}.", out.file_stem().unwrap_or_default().to_string_lossy());
        let entries = current.parent().and_then(|folder| std::fs::read_dir(folder).ok());
        let mut earlier: Vec<PathBuf> =
            entries.into_iter().flatten().flatten().map(|entry| entry.path()).collect();
        earlier.retain(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let hash = name.strip_prefix(&stem).and_then(|rest| rest.strip_suffix(&format!(".{ENDING}")));
            path != current && hash.is_some_and(|hash| hash.len() == 16 && !hash.contains('.'))
        });
        earlier.sort();
        earlier
    }

    /// The bytes of the ONNX file, whose weights are in their place beside `out` from now on.
    pub(crate) fn place_weights(self, out: &Path) -> Result<(Vec<u8>, Option<PathBuf>)> {
        let Some(Weights { folder, name, .. }) = self.weights else { return Ok((self.bytes, None)) };
        let target = out.with_file_name(&name);
        std::fs::rename(folder.path().join(&name), &target)
            .with_context(|| format!("cannot write: {}", target.display()))?;
        Ok((self.bytes, Some(target)))
    }
}

/// Removes what exports left behind that were killed.
fn sweep(parent: &Path) {
    let entries = std::fs::read_dir(parent).into_iter().flatten().flatten();
    for folder in entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX)) {
        let lock = open_own_file(&folder.path().join(LOCK), "open", File::options().read(true));
        if lock.is_ok_and(|lock| lock.try_lock().is_ok()) {
            // What cannot be removed is in nobody's way.
            let _ = std::fs::remove_dir_all(folder.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_killed_exports_left_is_removed_and_what_others_write_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("encoder.onnx");
        let write = || {
            WrittenEncoder::beside(&out, |weights, location| {
                weights.write_all(b"weights")?;
                Ok(location("0123456789abcdef0123").into_bytes())
            })
        };
        let left = folder.path().join(".lejepa-export-left");
        std::fs::create_dir(&left).unwrap();
        std::fs::write(left.join(LOCK), b"").unwrap();
        let first = write().unwrap();
        let second = write().unwrap();
        assert!(!left.exists());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
        drop(second);
        let (bytes, weights) = first.place_weights(&out).unwrap();
        assert_eq!(bytes, b"encoder.0123456789abcdef.weights");
        assert_eq!(std::fs::read(weights.unwrap()).unwrap(), b"weights");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
