//! Hashes of files that were read before, on disk.
//!
//! ```text
//! magic (16 bytes)
//! per file: hash of its absolute path (16), of what the file system says of it (16), of its content (32)
//! hash of all that (32)
//! ```
//!
//! Several processes may use one folder: a file is replaced as a whole, and what another process learnt in
//! the meantime is read once more by the next one that needs it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::content::{Content, Facts};
use crate::{regular_file, write_atomically};

const MAGIC: [u8; 16] = *b"lejepa hashes 1\n";
const ENTRY: usize = 16 + 16 + 32;

/// An absolute path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct PathKey([u8; 16]);

impl PathKey {
    pub(super) fn of(path: &Path) -> Self {
        let absolute = std::path::absolute(path).unwrap_or_else(|_| path.into());
        let mut key = [0; 16];
        key.copy_from_slice(&blake3::hash(absolute.as_os_str().as_encoded_bytes()).as_bytes()[..16]);
        Self(key)
    }
}

/// Where files below a folder are remembered.
pub(super) fn path(memos: &Path, root: &Path) -> PathBuf {
    let PathKey(key) = PathKey::of(root);
    let name: String = key[..8].iter().map(|byte| format!("{byte:02x}")).collect();
    memos.join(format!("{name}.hashes"))
}

/// Contents of files by path.
#[derive(Debug, Default)]
pub(super) struct Memo {
    files: HashMap<PathKey, (Facts, Content)>,
}

impl Memo {
    /// What is remembered; nothing if the file is not there or not whole.
    pub(super) fn read(path: &Path) -> Self {
        regular_file::read(path).ok().and_then(|bytes| Self::parse(&bytes)).unwrap_or_default()
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let (content, hash) = bytes.split_last_chunk::<32>()?;
        let entries = content.strip_prefix(&MAGIC)?;
        if blake3::hash(content) != *hash || entries.len() % ENTRY != 0 {
            return None;
        }
        let files = entries.as_chunks::<ENTRY>().0.iter().map(|entry| {
            let (path, rest) = entry.split_first_chunk::<16>()?;
            let (facts, content) = rest.split_first_chunk::<16>()?;
            let content = Content::from_bytes(*content.first_chunk::<32>()?);
            Some((PathKey(*path), (Facts(*facts), content)))
        });
        Some(Self { files: files.collect::<Option<_>>()? })
    }

    /// The content of a file of which the file system still says the same.
    pub(super) fn get(&self, path: &PathKey, facts: &Facts) -> Option<Content> {
        self.files.get(path).filter(|(known, _)| known == facts).map(|&(_, content)| content)
    }

    /// Remembers more; of a path there is one entry, the latest.
    pub(super) fn add(&mut self, learnt: HashMap<PathKey, (Facts, Content)>) {
        self.files.extend(learnt);
    }

    /// A memo that cannot be written costs time and no more, as on a disk that is full or read-only.
    pub(super) fn write(&self, path: &Path) {
        let mut entries: Vec<_> = self.files.iter().collect();
        entries.sort_unstable_by_key(|(path, _)| **path);
        let mut bytes = MAGIC.to_vec();
        for (PathKey(path), (Facts(facts), content)) in entries {
            bytes.extend_from_slice(path);
            bytes.extend_from_slice(facts);
            bytes.extend_from_slice(content.as_bytes());
        }
        let hash = blake3::hash(&bytes);
        bytes.extend_from_slice(hash.as_bytes());
        let _ = write_atomically(path, |file| file.write_all(&bytes));
    }
}
