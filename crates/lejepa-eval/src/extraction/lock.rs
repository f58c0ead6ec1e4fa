//! Locks between processes; those of a dead one are free.

use std::fs::{File, TryLockError};
use std::path::Path;

use crate::{Error, Result};

/// Held until it is dropped.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

/// Whether others may hold it too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hold {
    Shared,
    Exclusive,
}

impl Lock {
    /// `None` if others hold it. A file system without locks gives all: parts have a key and a name of their
    /// own, so that nothing is mixed there either.
    pub(crate) fn take(path: &Path, hold: Hold) -> Result<Option<Self>> {
        let failed = |source| Error::File { path: path.into(), source };
        loop {
            let file = File::options().create(true).truncate(false).write(true).open(path).map_err(failed)?;
            let taken = match hold {
                Hold::Shared => file.try_lock_shared(),
                Hold::Exclusive => file.try_lock(),
            };
            match taken {
                Err(TryLockError::WouldBlock) => return Ok(None),
                // It may have been removed by the one that held it before.
                Ok(()) if !is_at(&file, path) => {}
                Ok(()) | Err(TryLockError::Error(_)) => return Ok(Some(Self { _file: file })),
            }
        }
    }
}

#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let place = |metadata: std::io::Result<std::fs::Metadata>| {
        metadata.ok().map(|metadata| (metadata.dev(), metadata.ino()))
    };
    let own = place(file.metadata());
    own.is_some() && own == place(path.metadata())
}

#[cfg(not(unix))]
fn is_at(_file: &File, path: &Path) -> bool {
    path.exists()
}
