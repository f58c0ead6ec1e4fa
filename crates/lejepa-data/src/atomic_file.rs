//! Files that are there whole or not at all.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::{Error, Result};

/// Writes a file under a temporary name beside `path`, syncs it and renames it into place. Whatever
/// was at `path` stays until the new content is safe. Missing parent folders are made.
pub fn write_atomically(
    path: &Path,
    write: impl FnOnce(&mut (dyn Write + Send)) -> std::io::Result<()>,
) -> Result<()> {
    let mut file = AtomicFile::create(path)?;
    write(&mut file).map_err(|source| Error::Io { action: "write", path: path.into(), source })?;
    file.commit()
}

/// The same for content that comes bit by bit: a writer whose content is at its path after
/// [`AtomicFile::commit`], and gone if it is dropped before.
#[derive(Debug)]
pub struct AtomicFile {
    path: PathBuf,
    temporary: PathBuf,
    file: Option<BufWriter<File>>,
}

impl AtomicFile {
    /// Starts a file; missing parent folders are made.
    pub fn create(path: &Path) -> Result<Self> {
        let failed = |source| Error::Io { action: "write", path: path.into(), source };
        let folder = folder_of(path);
        std::fs::create_dir_all(folder).map_err(failed)?;
        // Always the same name for the same file: what a killed process leaves is written over next time.
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let temporary = folder.join(format!(".{name}.writing"));
        let file = Some(BufWriter::new(File::create(&temporary).map_err(failed)?));
        Ok(Self { path: path.into(), temporary, file })
    }

    /// Puts what was written into its place.
    pub fn commit(mut self) -> Result<()> {
        let failed = |source| Error::Io { action: "write", path: self.path.clone(), source };
        let Some(file) = self.file.take() else { return Ok(()) };
        let renamed = file
            .into_inner()
            .map_err(std::io::Error::from)
            .and_then(|file| file.sync_all())
            .and_then(|()| std::fs::rename(&self.temporary, &self.path));
        if renamed.is_err() {
            // The first failure is the one to report.
            let _ = std::fs::remove_file(&self.temporary);
        }
        renamed.map_err(failed)?;
        // The rename itself must survive a power cut.
        File::open(folder_of(&self.path)).and_then(|folder| folder.sync_all()).map_err(failed)
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.file.as_mut().map_or(Ok(0), |file| file.write(bytes))
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.file.as_mut().map_or(Ok(()), Write::flush)
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        if self.file.take().is_some() {
            // Nobody is left to tell.
            let _ = std::fs::remove_file(&self.temporary);
        }
    }
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_write_leaves_the_old_content_and_no_rubbish() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/result.json");
        write_atomically(&path, |file| file.write_all(b"old")).unwrap();
        let failure = write_atomically(&path, |file| {
            file.write_all(b"half of the new")?;
            Err(std::io::Error::other("disk full"))
        });
        assert!(failure.unwrap_err().to_string().contains("result.json"));
        assert_eq!(std::fs::read(&path).unwrap(), b"old");
        assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn content_that_comes_bit_by_bit_is_there_after_the_commit_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("film.gif");
        let mut dropped = AtomicFile::create(&path).unwrap();
        dropped.write_all(b"half").unwrap();
        drop(dropped);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        let mut kept = AtomicFile::create(&path).unwrap();
        kept.write_all(b"whole").unwrap();
        assert!(!path.exists());
        kept.commit().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"whole");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_a_killed_process_left_is_written_over() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("result.json");
        std::fs::write(folder.path().join(".result.json.writing"), b"a much longer half of something")
            .unwrap();
        write_atomically(&path, |file| file.write_all(b"new")).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"new");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
