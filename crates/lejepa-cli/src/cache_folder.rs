//! The user's cache.

use std::path::PathBuf;

/// Where evaluations keep features if nothing else is said.
pub(crate) fn features() -> PathBuf {
    let absolute = |folder: &PathBuf| folder.is_absolute();
    let user = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(absolute);
    let user = user.or_else(|| Some(std::env::home_dir()?.join(".cache")).filter(absolute));
    user.unwrap_or_else(std::env::temp_dir).join("lejepa/features")
}
