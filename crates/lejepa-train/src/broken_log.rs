//! `broken-images.jsonl`: the images of a run that could not be used, each once.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use lejepa_data::{BrokenImage, open_own_file, regular_file};

use crate::Result;

/// The log of a run; the file appears with the first broken image.
#[derive(Debug)]
pub(crate) struct BrokenLog {
    path: PathBuf,
    names: BTreeSet<String>,
}

impl BrokenLog {
    /// With what an earlier session has written.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let bytes = match regular_file::read(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            Err(source) => {
                return Err(lejepa_data::Error::Io { action: "read", path: path.into(), source }.into());
            }
        };
        // A line that was cut off is written again when its image is met again.
        let lines = bytes.split(|&byte| byte == b'\n');
        let known = lines.filter_map(|line| serde_json::from_slice::<BrokenImage>(line).ok());
        Ok(Self { path: path.into(), names: known.map(|image| image.name).collect() })
    }

    /// Writes an image down. Says whether it is new.
    pub(crate) fn add(&mut self, image: &BrokenImage) -> Result<bool> {
        if !self.names.insert(image.name.clone()) {
            return Ok(false);
        }
        let failed = |source| lejepa_data::Error::Io { action: "write", path: self.path.clone(), source };
        let mut file = open_own_file(&self.path, "write", File::options().create(true).append(true))?;
        let line = serde_json::to_string(image).map_err(std::io::Error::from).map_err(failed)?;
        writeln!(file, "{line}").map_err(failed)?;
        Ok(true)
    }
}
