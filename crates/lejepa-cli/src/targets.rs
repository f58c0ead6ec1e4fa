//! Files that are about to be written.

use std::path::PathBuf;

use anyhow::{Result, bail};

/// Stops a command before its work if one of its files is there already and may be somebody's.
pub(crate) fn refuse_existing(paths: &[PathBuf]) -> Result<()> {
    match paths.iter().find(|path| path.symlink_metadata().is_ok()) {
        Some(path) => {
            bail!("there already, and replaced only with --overwrite: {}", path.display())
        }
        None => Ok(()),
    }
}
