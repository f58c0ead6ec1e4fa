//! Where the layout of a well-known set begins: at the path, or in a folder below it that its archive
//! or torchvision makes.

use std::path::{Path, PathBuf};

/// The first of the path and the folders `below` it that holds one of a layout's own files.
pub(super) fn find(path: &Path, below: &[&str], own_files: &[impl AsRef<Path>]) -> Option<PathBuf> {
    std::iter::once(path.to_path_buf())
        .chain(below.iter().map(|folder| path.join(folder)))
        .find(|root| own_files.iter().any(|file| root.join(file).is_file()))
}
