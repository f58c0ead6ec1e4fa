//! Locks between processes; those of a dead one are free.

use std::fs::{File, TryLockError};
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use crate::atomic_file::{folder_of, remove_leftovers};
use crate::own_file::open_own_file;
use crate::{Error, Result, regular_file};

/// What the names of locks end in that lie beside what they are of.
pub(crate) const ENDING: &str = ".lejepa-lock";

/// Held until it is dropped. An exclusive one then takes its file with it, and folders that were made for it if
/// nothing else has come into them.
#[derive(Debug)]
pub struct Lock {
    path: PathBuf,
    hold: Hold,
    /// The innermost first.
    made: Vec<PathBuf>,
    file: File,
}

/// Whether others may hold it too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// Those who share it.
    Shared,
    /// Nobody.
    Exclusive,
}

impl Lock {
    /// The lock that a file stands for; `None` if others hold it. A file system without locks gives all.
    pub fn take(path: &Path, hold: Hold) -> Result<Option<Self>> {
        loop {
            let mut options = File::options();
            let file = open_own_file(path, "lock", options.create(true).truncate(false).write(true))?;
            let taken = match hold {
                Hold::Shared => file.try_lock_shared(),
                Hold::Exclusive => file.try_lock(),
            };
            match taken {
                Err(TryLockError::WouldBlock) => return Ok(None),
                // It may have been removed by the one that held it before.
                Ok(()) if !is_at(&file, path) => continue,
                Ok(()) | Err(TryLockError::Error(_)) => {}
            }
            let lock = Self { path: path.into(), hold, made: Vec::new(), file };
            if hold == Hold::Exclusive {
                lock.sign();
            }
            return Ok(Some(lock));
        }
    }

    /// The right to write into a folder, which is made if it is not there.
    pub fn of_folder(folder: &Path) -> Result<Self> {
        if folder.symlink_metadata().is_ok() && !folder.is_dir() {
            return Err(Error::NotAFolder { path: folder.into() });
        }
        let lock = Self::inside(folder, &folder.join(ENDING), folder)?;
        remove_leftovers(folder);
        Ok(lock)
    }

    /// The right to write a file; folders above it are made.
    pub fn of_file(path: &Path) -> Result<Self> {
        let folder = folder_of(path);
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        Self::inside(folder, &folder.join(format!(".{name}{ENDING}")), path)
    }

    /// The lock at `path`, which lies in a folder, on something.
    fn inside(folder: &Path, path: &Path, of: &Path) -> Result<Self> {
        /// Folders come and go with the locks of others, but not for ever.
        const PATIENCE: usize = 1000;
        let mut left = PATIENCE;
        loop {
            left -= 1;
            let made = missing(folder);
            let found = std::fs::create_dir_all(folder).map_err(|source| Error::Io {
                action: "make",
                path: folder.into(),
                source,
            });
            match found.and_then(|()| Self::take(path, Hold::Exclusive)) {
                Ok(Some(mut lock)) => {
                    lock.made = made;
                    return Ok(lock);
                }
                Ok(None) => return Err(Error::Busy { holder: Self::holder(path), path: of.into() }),
                // Whoever had made the folder has just removed it; somebody else may have made it again, also in the
                // middle of making it, which then says that something is there already.
                Err(Error::Io { source, .. })
                    if left > 0
                        && matches!(source.kind(), ErrorKind::NotFound | ErrorKind::AlreadyExists) => {}
                // What cannot be locked cannot be written either.
                Err(Error::Io { action: "lock", source, .. }) => {
                    return Err(Error::Io { action: "write", path: of.into(), source });
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Who holds a lock, as far as its file tells.
    pub fn holder(path: &Path) -> String {
        /// More than a process and a machine need.
        const LONGEST: u64 = 300;
        let mut text = String::new();
        let read = regular_file::open(path).and_then(|file| file.take(LONGEST).read_to_string(&mut text));
        let mut words = text.split_whitespace();
        let process: Option<u32> = words.next().and_then(|word| word.parse().ok());
        let plain = |name: &&str| name.chars().all(|it| it.is_ascii_alphanumeric() || ".-_".contains(it));
        match (read, process, words.next().filter(plain)) {
            (Ok(_), Some(process), Some(machine)) => format!("process {process} on {machine}"),
            (Ok(_), Some(process), None) => format!("process {process}"),
            _ => "another process".into(),
        }
    }

    /// Says for others who holds it. Those who cannot read it get a vaguer message.
    fn sign(&self) {
        let machine = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let signature = format!("{} {}\n", std::process::id(), machine.trim());
        let _ = self.file.set_len(0).and_then(|()| (&self.file).write_all(signature.as_bytes()));
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        if self.hold == Hold::Shared {
            return;
        }
        // While it is still held: whoever waits for it notices that it is gone, and makes another.
        let _ = std::fs::remove_file(&self.path);
        // Folders with something in them stay.
        let _ = self.made.iter().try_for_each(std::fs::remove_dir);
    }
}

/// A folder and those above it that are not there, the innermost first.
fn missing(folder: &Path) -> Vec<PathBuf> {
    let is_missing = |folder: &&Path| !folder.as_os_str().is_empty() && !folder.exists();
    folder.ancestors().take_while(is_missing).map(PathBuf::from).collect()
}

#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let place = |metadata: std::io::Result<std::fs::Metadata>| {
        metadata.ok().map(|metadata| (metadata.dev(), metadata.ino()))
    };
    let own = place(file.metadata());
    own.is_some() && own == place(path.symlink_metadata())
}

#[cfg(not(unix))]
fn is_at(_file: &File, path: &Path) -> bool {
    path.exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_has_one_writer_who_is_named_and_leaves_nothing_behind() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("runs/first");
        let lock = Lock::of_folder(&folder).unwrap();
        let message = Lock::of_folder(&folder.join("../first")).unwrap_err().to_string();
        assert!(message.starts_with(&format!("process {}", std::process::id())), "{message}");
        assert!(message.contains(" is at work in: "), "{message}");
        drop(lock);
        assert!(!root.path().join("runs").exists());
        let lock = Lock::of_folder(&folder).unwrap();
        std::fs::write(folder.join("result"), "mine").unwrap();
        drop(lock);
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn locks_change_nothing_behind_a_link_and_wait_for_no_pipe() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(ENDING);
        crate::own_file::with_each_trap(&path, |trap| {
            for lock in [
                Lock::of_folder(folder.path()).map(Some),
                Lock::take(&path, Hold::Exclusive),
                Lock::take(&path, Hold::Shared),
            ] {
                let error = lock.unwrap_err();
                assert!(matches!(&error, Error::NotOwn { path: named } if *named == path), "{trap}: {error}");
            }
            assert_eq!(Lock::holder(&path), "another process", "{trap}");
        });
        drop(Lock::of_folder(folder.path()).unwrap());
    }

    #[test]
    fn what_a_dead_process_has_left_does_not_block() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(ENDING), "17 elsewhere\n").unwrap();
        drop(Lock::of_folder(folder.path()).unwrap());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_a_killed_writer_has_left_in_a_folder_goes_with_the_next_one() {
        let folder = tempfile::tempdir().unwrap();
        let checkpoints = folder.path().join("checkpoints");
        std::fs::create_dir(&checkpoints).unwrap();
        let left = |name: &str| {
            let file = File::create(checkpoints.join(name)).unwrap();
            file.set_modified(std::time::SystemTime::now() - std::time::Duration::from_secs(5)).unwrap();
            file
        };
        left(".step-00000005.safetensors.17-0.writing");
        left("step-00000004.safetensors");
        let held = left(".step-00000006.safetensors.18-0.writing");
        held.try_lock().unwrap();
        let _lock = Lock::of_folder(folder.path()).unwrap();
        let names = std::fs::read_dir(&checkpoints).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<String> = names.map(|name| name.to_string_lossy().into_owned()).collect();
        names.sort();
        assert_eq!(names, [".step-00000006.safetensors.18-0.writing", "step-00000004.safetensors"]);
    }

    #[test]
    fn files_are_locked_one_by_one_however_they_are_spelt() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mine.csv");
        let _lock = Lock::of_file(&path).unwrap();
        assert!(Lock::of_file(&folder.path().join("./mine.csv")).is_err());
        Lock::of_file(&folder.path().join("yours.csv")).unwrap();
        assert!(Lock::of_folder(&folder.path().join("file")).is_ok());
        std::fs::write(&path, "").unwrap();
        assert!(matches!(Lock::of_folder(&path), Err(Error::NotAFolder { .. })));
    }

    #[test]
    fn a_signature_of_somebody_else_is_not_repeated() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        for (text, holder) in [
            ("12 gpu-3\n", "process 12 on gpu-3"),
            ("12\n", "process 12"),
            ("12 \x1b[31mred\n", "process 12"),
            ("mine", "another process"),
            ("", "another process"),
        ] {
            std::fs::write(&path, text).unwrap();
            assert_eq!(Lock::holder(&path), holder, "{text:?}");
        }
    }

    #[test]
    fn many_who_want_a_lock_get_it_one_after_the_other() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("deep/folder");
        let inside = std::sync::atomic::AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let mut taken = 0;
                    while taken < 20 {
                        match Lock::of_folder(&folder) {
                            Ok(_lock) => {
                                assert_eq!(inside.fetch_add(1, std::sync::atomic::Ordering::SeqCst), 0);
                                inside.fetch_sub(1, std::sync::atomic::Ordering::SeqCst);
                                taken += 1;
                            }
                            Err(Error::Busy { .. }) => {}
                            Err(error) => panic!("{error:?}"),
                        }
                    }
                });
            }
        });
    }
}
