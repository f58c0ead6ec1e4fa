//! Files that are there whole or not at all.

use std::collections::BTreeSet;
use std::fs::{File, TryLockError};
use std::io::{BufRead, BufReader, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::{Error, Result, lock, regular_file};

/// What the temporary names end in.
const ENDING: &str = ".writing";
/// What nobody holds is rubbish after the first of these times, and where locks are not to be had after the
/// second one.
const UNHELD: Duration = Duration::from_secs(60);
const UNTOUCHED: Duration = Duration::from_secs(24 * 3600);

/// Writes a file under a temporary name of its own beside `path`, syncs it and renames it into place. Whatever
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
        sweep(folder);
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let (temporary, file) = create_temporary(folder, &name).map_err(failed)?;
        let file = Some(BufWriter::new(file));
        Ok(Self { path: path.into(), temporary, file })
    }

    /// Where its content will be.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where its content is until then, for another program that writes it.
    pub fn temporary(&self) -> &Path {
        &self.temporary
    }

    /// The same when all that was written is there.
    pub(crate) fn flushed(&mut self) -> Result<&Path> {
        let failed = |source| Error::Io { action: "write", path: self.path.clone(), source };
        self.file.as_mut().map_or(Ok(()), Write::flush).map_err(failed)?;
        Ok(&self.temporary)
    }

    /// Puts what was written into its place.
    pub fn commit(self) -> Result<()> {
        self.put(|temporary, path| std::fs::rename(temporary, path))
    }

    /// Puts what was written into its place if nothing is there, or the very same.
    pub fn commit_new(self) -> Result<()> {
        let path = self.path.clone();
        match self.put(rename_new) {
            Err(Error::Io { source, .. }) if source.kind() == ErrorKind::AlreadyExists => {
                Err(Error::Exists { path })
            }
            put => put,
        }
    }

    fn put(mut self, rename: impl FnOnce(&Path, &Path) -> std::io::Result<()>) -> Result<()> {
        let failed = |source| Error::Io { action: "write", path: self.path.clone(), source };
        let Some(file) = self.file.take() else { return Ok(()) };
        let renamed = file.into_inner().map_err(std::io::Error::from).and_then(|file| {
            file.sync_all()?;
            // While it is still held: nobody takes it for rubbish.
            rename(&self.temporary, &self.path)
        });
        if renamed.is_err() {
            // The first failure is the one to report.
            let _ = std::fs::remove_file(&self.temporary);
        }
        renamed.map_err(failed)?;
        // The rename itself must survive a power cut.
        File::open(folder_of(&self.path)).and_then(|folder| folder.sync_all()).map_err(failed)
    }
}

/// A rename that replaces nothing: of two processes at once one wins.
fn rename_new(temporary: &Path, path: &Path) -> std::io::Result<()> {
    match std::fs::hard_link(temporary, path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => match same_content(temporary, path) {
            Ok(true) => {}
            _ => return Err(error),
        },
        // A file system without links.
        Err(error) => match path.symlink_metadata() {
            Ok(_) => return Err(ErrorKind::AlreadyExists.into()),
            Err(_) => return std::fs::rename(temporary, path).map_err(|_| error),
        },
        Ok(()) => {}
    }
    std::fs::remove_file(temporary)
}

fn same_content(one: &Path, other: &Path) -> std::io::Result<bool> {
    let (one, other) = (regular_file::open(one)?, regular_file::open(other)?);
    if one.metadata()?.len() != other.metadata()?.len() {
        return Ok(false);
    }
    let (mut one, mut other) = (BufReader::new(one), BufReader::new(other));
    loop {
        let (left, right) = (one.fill_buf()?, other.fill_buf()?);
        let length = left.len().min(right.len());
        if left[..length] != right[..length] {
            return Ok(false);
        }
        if length == 0 {
            return Ok(left.is_empty() && right.is_empty());
        }
        one.consume(length);
        other.consume(length);
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

/// Where a file lies.
pub(crate) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// A file that no other process has, wherever it runs. It is locked as long as it is written.
fn create_temporary(folder: &Path, name: &str) -> std::io::Result<(PathBuf, File)> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    loop {
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let temporary = folder.join(format!(".{name}.{}-{count}{ENDING}", std::process::id()));
        match File::create_new(&temporary) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
            Ok(file) => {
                // Without locks it is left alone for longer, see `sweep`.
                let _ = file.try_lock();
                return Ok((temporary, file));
            }
        }
    }
}

/// Removes what killed processes have left in a folder, once per process and folder.
pub(crate) fn sweep(folder: &Path) {
    static SWEPT: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    if !SWEPT.lock().unwrap_or_else(PoisonError::into_inner).insert(folder.into()) {
        return;
    }
    remove_abandoned(folder, UNHELD);
}

/// Removes what killed processes have left in a folder that nobody else writes into, and below it.
pub(crate) fn remove_leftovers(folder: &Path) {
    /// Folders of runs and reports; what else lies there may be large, and is not ours.
    const OWN: [&str; 6] = ["checkpoints", "diverged", "hashes", "cells", "draws", "video"];
    /// The masks of a clip lie deepest: `video/attention/dog/masks`.
    const DEPTH: usize = 3;
    /// Between making a file and locking it less time passes, whoever does so.
    const YOUNG: Duration = Duration::from_secs(2);
    remove_abandoned(folder, YOUNG);
    let mut folders: Vec<(PathBuf, usize)> = OWN.map(|name| (folder.join(name), DEPTH)).into();
    while let Some((folder, depth)) = folders.pop() {
        for below in remove_abandoned(&folder, YOUNG) {
            if depth > 0 {
                folders.push((below, depth - 1));
            }
        }
    }
}

/// Removes files that nobody has held for some time; the folders beside them.
fn remove_abandoned(folder: &Path, unheld: Duration) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => {
                folders.push(entry.path());
                continue;
            }
            Ok(kind) if kind.is_file() => {}
            // Links and pipes are not of this program.
            _ => continue,
        }
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let is_ours = [ENDING, lock::ENDING].iter().any(|ending| name.ends_with(ending));
        if name.starts_with('.')
            && is_ours
            && let Some(_held) = abandoned(&entry.path(), unheld)
        {
            // Somebody else may have been quicker.
            let _ = std::fs::remove_file(entry.path());
        }
    }
    folders
}

/// A file that nobody writes or holds any more, held until it is removed.
fn abandoned(path: &Path, unheld: Duration) -> Option<File> {
    let file = regular_file::open(path).ok()?;
    let modified = file.metadata().and_then(|metadata| metadata.modified());
    let age = modified.ok().and_then(|modified| modified.elapsed().ok()).unwrap_or_default();
    // Young ones are not even tried: somebody may be about to lock them.
    let is_abandoned = age > unheld
        && match file.try_lock() {
            Ok(()) => true,
            Err(TryLockError::WouldBlock) => false,
            Err(TryLockError::Error(_)) => age > UNTOUCHED,
        };
    is_abandoned.then_some(file)
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
    fn a_new_file_replaces_nothing_but_itself() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mine.csv");
        let put = |content: &[u8]| {
            let mut file = AtomicFile::create(&path).unwrap();
            file.write_all(content).unwrap();
            file.commit_new()
        };
        put(b"first").unwrap();
        put(b"first").unwrap();
        for other in [&b"other"[..], b"first and more", b""] {
            let message = put(other).unwrap_err().to_string();
            assert!(message.starts_with("there already, and replaced only with --overwrite: "), "{message}");
        }
        assert_eq!(std::fs::read(&path).unwrap(), b"first");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        // A link that leads nowhere is somebody's too.
        #[cfg(unix)]
        {
            std::fs::remove_file(&path).unwrap();
            std::os::unix::fs::symlink("nowhere", &path).unwrap();
            assert!(matches!(put(b"first"), Err(Error::Exists { .. })));
        }
    }

    #[test]
    fn what_a_killed_process_left_is_removed_and_what_others_write_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let left = |name: &str, age: u64| {
            let path = folder.path().join(name);
            let file = File::create(&path).unwrap();
            file.set_modified(std::time::SystemTime::now() - Duration::from_secs(age)).unwrap();
            (path, file)
        };
        let (dead, _) = left(".result.json.17-3.writing", 3600);
        let (young, _) = left(".result.json.18-0.writing", 0);
        let (held, writer) = left(".result.json.19-0.writing", 3600);
        writer.try_lock().unwrap();
        let path = folder.path().join("result.json");
        write_atomically(&path, |file| file.write_all(b"new")).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"new");
        assert_eq!([dead, young, held].map(|path| path.exists()), [false, true, true]);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn leftovers_that_are_no_files_are_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        crate::own_file::with_each_trap(&folder.path().join(".result.json.17-3.writing"), |_| {
            remove_abandoned(folder.path(), Duration::ZERO);
        });
    }

    #[test]
    fn many_writers_of_one_file_do_not_disturb_each_other() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/result.json");
        std::thread::scope(|scope| {
            for number in 0..8u8 {
                let path = &path;
                scope.spawn(move || {
                    for _ in 0..20 {
                        write_atomically(path, |file| file.write_all(&[number; 1000])).unwrap();
                    }
                });
            }
        });
        let content = std::fs::read(&path).unwrap();
        assert_eq!(content, [content[0]; 1000]);
        assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }
}
