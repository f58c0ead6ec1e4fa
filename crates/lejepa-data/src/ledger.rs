//! What jobs have written into a folder, by content: what has another one is somebody else's by now.
//!
//! `.made-by.jsonl` has a line for every file, added before the file is put into its place: a job that was killed
//! knows its files again.

use std::collections::HashSet;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use crate::own_file::open_own_file;
use crate::{Error, Result, regular_file};

/// Its name.
pub(crate) const NAME: &str = ".made-by.jsonl";

/// The lines of one job.
#[derive(Debug)]
pub(crate) struct Ledger {
    folder: PathBuf,
    job: String,
    lines: Mutex<HashSet<Line>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct Line {
    made_by: String,
    /// Below the folder.
    file: String,
    blake3: String,
}

impl Ledger {
    /// What a job has written into a folder, as far as it can be read.
    pub(crate) fn open(folder: &Path, job: &str) -> Self {
        let text = regular_file::read(&folder.join(NAME)).unwrap_or_default();
        let lines = text.split(|&byte| byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok());
        let lines = lines.filter(|line: &Line| line.made_by == job).collect();
        Self { folder: folder.into(), job: job.into(), lines: Mutex::new(lines) }
    }

    /// Whether a file is as the job has written it; of a folder, whether the job has written anything below it.
    pub(crate) fn has(&self, path: &Path) -> bool {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        match path.symlink_metadata() {
            Ok(metadata) if metadata.is_dir() => path
                .strip_prefix(&self.folder)
                .is_ok_and(|folder| lines.iter().any(|line| Path::new(&line.file).starts_with(folder))),
            Ok(metadata) if metadata.is_file() => {
                self.line(path, path).is_ok_and(|line| lines.contains(&line))
            }
            _ => false,
        }
    }

    /// Notes that what is in one file is about to be at its place.
    pub(crate) fn note(&self, content: &Path, path: &Path) -> Result<()> {
        let line = self.line(content, path)?;
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.contains(&line) {
            return Ok(());
        }
        let ledger = self.folder.join(NAME);
        let mut file = open_own_file(&ledger, "write", File::options().create(true).append(true))?;
        let failed = |source| Error::Io { action: "write", path: ledger.clone(), source };
        let json = serde_json::to_string(&line).map_err(std::io::Error::from).map_err(failed)?;
        // After a line that was cut off as well.
        file.write_all(format!("\n{json}\n").as_bytes()).map_err(failed)?;
        lines.insert(line);
        Ok(())
    }

    fn line(&self, content: &Path, path: &Path) -> Result<Line> {
        let failed = |source| Error::Io { action: "read", path: content.into(), source };
        let mut hasher = blake3::Hasher::new();
        regular_file::open(content)
            .and_then(|file| hasher.update_reader(file).map(|_| ()))
            .map_err(failed)?;
        let below = path.strip_prefix(&self.folder).unwrap_or(path);
        let file = below.to_string_lossy().into_owned();
        let blake3 = hasher.finalize().to_hex()[..32].to_string();
        Ok(Line { made_by: self.job.clone(), file, blake3 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_of_the_job_while_it_holds_what_was_written() {
        let folder = tempfile::tempdir().unwrap();
        let (path, deep) = (folder.path().join("sheet.png"), folder.path().join("masks/1.png"));
        let own = Ledger::open(folder.path(), "own");
        std::fs::write(&path, "drawn").unwrap();
        assert!(!own.has(&path));
        own.note(&path, &path).unwrap();
        std::fs::create_dir(deep.parent().unwrap()).unwrap();
        assert!(!own.has(deep.parent().unwrap()));
        own.note(&path, &deep).unwrap();
        assert!(!own.has(&deep), "not there");
        let ledger = folder.path().join(NAME);
        let cut = [std::fs::read(&ledger).unwrap(), b"{\"made_by\": \"ow".to_vec()].concat();
        std::fs::write(&ledger, cut).unwrap();
        let again = Ledger::open(folder.path(), "own");
        again.note(&ledger, &folder.path().join("more")).unwrap();
        for own in [own, again, Ledger::open(folder.path(), "own")] {
            assert!(own.has(&path));
            assert!(own.has(deep.parent().unwrap()));
            std::fs::write(&path, "mine!").unwrap();
            assert!(!own.has(&path));
            std::fs::write(&path, "drawn").unwrap();
        }
        assert!(!Ledger::open(folder.path(), "other").has(&path));
    }
}
