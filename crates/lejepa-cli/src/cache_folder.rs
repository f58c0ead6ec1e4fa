//! The user's cache.

use std::path::PathBuf;

/// Where evaluations keep features if nothing else is said.
pub(crate) fn features() -> PathBuf {
    folder().join("features")
}

/// Where HDF5 files are remembered that were read without harm.
#[cfg(feature = "hdf5")]
pub(crate) fn hdf5() -> PathBuf {
    folder().join("hdf5")
}

fn folder() -> PathBuf {
    let absolute = |folder: &PathBuf| folder.is_absolute();
    let user = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(absolute);
    let user = user.or_else(|| Some(std::env::home_dir()?.join(".cache")).filter(absolute));
    user.unwrap_or_else(std::env::temp_dir).join("lejepa")
}
