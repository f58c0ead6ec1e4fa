//! Files of a run that are not used any more, and are not to be lost.

use std::path::{Path, PathBuf};

use crate::Result;

/// Gives a file a name under which nobody looks for it, and which nothing has yet.
pub(crate) fn put_aside(path: &Path, ending: &str) -> Result<PathBuf> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let numbered = |number: usize| match number {
        1 => path.with_file_name(format!("{name}.{ending}")),
        _ => path.with_file_name(format!("{name}.{ending}-{number}")),
    };
    let is_free = |aside: &PathBuf| aside.symlink_metadata().is_err();
    let aside = (1..).map(numbered).find(is_free).unwrap_or_else(|| numbered(1));
    std::fs::rename(path, &aside).map_err(|source| lejepa_data::Error::Io {
        action: "rename",
        path: path.into(),
        source,
    })?;
    Ok(aside)
}
