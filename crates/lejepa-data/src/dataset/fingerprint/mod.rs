//! What tells one split from every other: a hash of its content.
//!
//! ```text
//! files     path below their common folder, BLAKE3 of the content
//! images    name below that folder (a file, or file and place in it), label
//! classes   name
//! ```
//!
//! The same bytes have the same fingerprint wherever they lie. No reader of a format computes one: each
//! lists its files ([`Dataset::files`]), and names, labels and classes are what the others see too.
//!
//! A file is not read again while its file system says the same of it (identity of the file system, length, inode,
//! times of change), if that one is believed: `volume` says which are, and what is relied upon.

mod content;
#[cfg(target_os = "linux")]
mod disk;
mod memo;
mod turn;
mod volume;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use crate::{Dataset, Error, Result};
pub use content::FileFacts;
#[cfg(feature = "hdf5")]
pub(super) use content::settled_facts;
use content::{Content, Contents, Trust};

/// How far the files of a dataset are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hashing {
    /// Bytes that were read.
    pub done: u64,
    /// Bytes that are to be read.
    pub total: u64,
}

/// A caller who is told how far the reading is, and may stop it.
type Observe<'a> = &'a mut dyn FnMut(Hashing) -> ControlFlow<()>;

/// Computes fingerprints. Files are read once: with a folder to remember them in, those that have not been
/// touched since are not read again.
#[derive(Default)]
pub struct Fingerprinter<'a> {
    memo: Option<PathBuf>,
    observe: Option<Observe<'a>>,
}

impl<'a> Fingerprinter<'a> {
    /// Remembers hashes of files in a folder, which is made when there is something to remember.
    pub fn remembering(mut self, folder: &Path) -> Self {
        self.memo = Some(folder.into());
        self
    }

    /// Tells somebody how far it is.
    pub fn observed(mut self, observe: Observe<'a>) -> Self {
        self.observe = Some(observe);
        self
    }

    /// The fingerprint of files: of their names below their common folder and their contents, in order.
    pub fn of_files(&mut self, files: &[PathBuf]) -> Result<String> {
        let mut fingerprint = Fingerprint::new();
        self.add_files(&mut fingerprint, files)?;
        Ok(fingerprint.finish())
    }

    /// Adds names and contents; returns the common folder.
    fn add_files(&mut self, fingerprint: &mut Fingerprint, files: &[PathBuf]) -> Result<PathBuf> {
        let root = common_folder(files);
        let contents = self.contents(files, &root)?;
        fingerprint.count(files.len());
        for (file, content) in files.iter().zip(contents) {
            let below = file.strip_prefix(&root).unwrap_or(file);
            fingerprint.text(below.as_os_str().as_encoded_bytes());
            // What cannot be read now is something else once it can be.
            fingerprint.text(content.as_ref().map_or(&b"unreadable"[..], |hash| hash.as_bytes()));
        }
        Ok(root)
    }

    /// The fingerprint of a dataset that reads its own files.
    pub(super) fn of(&mut self, dataset: &(impl Dataset + ?Sized)) -> Result<String> {
        let mut fingerprint = Fingerprint::new();
        let root = self.add_files(&mut fingerprint, &dataset.files())?.display().to_string();
        fingerprint.count(dataset.len());
        for index in 0..dataset.len() {
            let name = dataset.name(index);
            let mut below =
                name.strip_prefix(&root).unwrap_or(&name).trim_start_matches(std::path::is_separator);
            // `data/.` is the folder `data`.
            while let Some(rest) = below.strip_prefix("./") {
                below = rest.trim_start_matches(std::path::is_separator);
            }
            fingerprint.text(below.as_bytes());
            fingerprint.count(dataset.label(index).unwrap_or(usize::MAX));
        }
        let classes = dataset.class_names();
        fingerprint.count(classes.len());
        classes.iter().for_each(|class| fingerprint.text(class.as_bytes()));
        Ok(fingerprint.finish())
    }

    /// The fingerprint of something that consists of others, in their order.
    pub fn combined(parts: impl IntoIterator<Item = impl AsRef<[u8]>>) -> String {
        let mut fingerprint = Fingerprint::new();
        parts.into_iter().for_each(|part| fingerprint.text(part.as_ref()));
        fingerprint.finish()
    }

    fn contents(&mut self, files: &[PathBuf], root: &Path) -> Result<Vec<Option<Content>>> {
        let mut go_on = |_: Hashing| ControlFlow::Continue(());
        let observe: &mut dyn FnMut(Hashing) -> ControlFlow<()> = match &mut self.observe {
            Some(observe) => observe,
            None => &mut go_on,
        };
        let memo = self.memo.as_ref().map(|folder| memo::path(folder, root));
        let contents = Contents::read(files, (memo.as_deref(), Trust::default()), observe);
        contents.ok_or(Error::Stopped)
    }
}

/// A hash of values of any length, none of which can be taken for a part of its neighbour.
struct Fingerprint(blake3::Hasher);

impl Fingerprint {
    fn new() -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(b"lejepa data 2\n");
        Self(hasher)
    }

    fn count(&mut self, count: usize) {
        self.0.update(&(count as u64).to_le_bytes());
    }

    fn text(&mut self, text: &[u8]) {
        self.count(text.len());
        self.0.update(text);
    }

    fn finish(self) -> String {
        self.0.finalize().to_hex()[..16].to_string()
    }
}

/// The deepest folder that all files lie in.
fn common_folder(files: &[PathBuf]) -> PathBuf {
    let mut files = files.iter();
    let mut folder = files.next().and_then(|first| first.parent()).unwrap_or(Path::new(""));
    for file in files {
        while !file.starts_with(folder) {
            folder = folder.parent().unwrap_or(Path::new(""));
        }
    }
    folder.to_path_buf()
}

#[cfg(test)]
mod tests;
