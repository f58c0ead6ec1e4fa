//! Files that are read in parts, in any order, by many threads.

use std::path::Path;

use bytes::Bytes;
use memmap2::Mmap;

use crate::{Error, Result, regular_file};

/// A file as bytes that the system reads when they are touched. Slices share the mapping.
pub(super) fn map(path: &Path) -> Result<Bytes> {
    let failed = |source| Error::Io { action: "read", path: path.into(), source };
    let file = regular_file::open(path).map_err(failed)?;
    // SAFETY: the mapping is read-only. Data files must not be changed while they are read, as every
    // reader of datasets asks of its users.
    #[allow(unsafe_code)]
    let mapped = unsafe { Mmap::map(&file) }.map_err(failed)?;
    Ok(Bytes::from_owner(mapped))
}
