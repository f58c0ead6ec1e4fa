//! Files that are there whole or not at all.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use crate::{Error, Result};

/// Writes a file under a temporary name beside `path`, syncs it and renames it into place. Whatever
/// was at `path` stays until the new content is safe. Missing parent folders are made.
pub fn write_atomically(
    path: &Path,
    write: impl FnOnce(&mut (dyn Write + Send)) -> std::io::Result<()>,
) -> Result<()> {
    let failed = |source| Error::Io { action: "write", path: path.into(), source };
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    std::fs::create_dir_all(folder).map_err(failed)?;
    // Always the same name for the same file: what a killed process leaves is written over next time.
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let temporary = folder.join(format!(".{name}.writing"));
    let written = write_and_sync(&temporary, write).and_then(|()| std::fs::rename(&temporary, path));
    if written.is_err() {
        // The first failure is the one to report.
        let _ = std::fs::remove_file(&temporary);
    }
    written.map_err(failed)?;
    // The rename itself must survive a power cut.
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(failed)
}

fn write_and_sync(
    path: &Path,
    write: impl FnOnce(&mut (dyn Write + Send)) -> std::io::Result<()>,
) -> std::io::Result<()> {
    let mut buffered = BufWriter::new(File::create(path)?);
    write(&mut buffered)?;
    buffered.into_inner()?.sync_all()
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
