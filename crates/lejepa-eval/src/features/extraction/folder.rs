//! The parts of one key in a folder, whoever wrote them.

use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use lejepa_data::BrokenImage;

use super::part::{ENDING, Part};
use crate::{Error, Result};

/// What is known of a part without its rows.
#[derive(Debug, Clone)]
pub(super) struct Found {
    pub(super) images: Range<usize>,
    pub(super) dim: usize,
    pub(super) broken: Vec<(usize, BrokenImage)>,
}

/// A part, after the first image that it is used for.
type Used<'a> = (usize, &'a PathBuf, &'a Found);

#[derive(Debug)]
pub(super) struct PartFolder {
    pub(super) path: PathBuf,
    /// The key's name.
    pub(super) key: String,
    found: HashMap<PathBuf, Found>,
}

impl PartFolder {
    pub(super) fn new(path: &Path, key: String) -> Self {
        Self { path: path.into(), key, found: HashMap::new() }
    }

    /// Whether there are parts, of whatever key.
    pub(super) fn has_parts(path: &Path) -> bool {
        let is_part = |entry: std::fs::DirEntry| entry.path().extension().is_some_and(|end| end == ENDING);
        std::fs::read_dir(path).is_ok_and(|entries| entries.flatten().any(is_part))
    }

    /// Looks for parts that are new.
    pub(super) fn refresh(&mut self) -> Result<()> {
        let failed = |source| Error::File { path: self.path.clone(), source };
        for entry in std::fs::read_dir(&self.path).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            if self.found.contains_key(&path) {
                continue;
            }
            let Some(images) = Part::images_of(&path, &self.key) else { continue };
            // One that is not whole is computed again.
            if let Some(part) = Part::read(&path, &self.key).filter(|part| part.images == images) {
                self.found.insert(path, Found { images, dim: part.dim, broken: part.broken });
            }
        }
        Ok(())
    }

    pub(super) fn add(&mut self, path: PathBuf, part: &Part) {
        let found = Found { images: part.images.clone(), dim: part.dim, broken: part.broken.clone() };
        self.found.insert(path, found);
    }

    /// Parts that hold all of a range as far as they are there, in order; and what is missing between them.
    pub(super) fn cover(&self, range: &Range<usize>) -> (Vec<Used<'_>>, Vec<Range<usize>>) {
        let mut parts: Vec<(&PathBuf, &Found)> = self.found.iter().collect();
        parts.sort_by_key(|(path, found)| (found.images.start, found.images.end, *path));
        let (mut used, mut missing, mut next) = (Vec::new(), Vec::new(), range.start);
        for (path, found) in parts {
            let Range { start, end } = found.images;
            if end <= next || start >= range.end {
                continue;
            }
            if start > next {
                missing.push(next..start);
            }
            used.push((next.max(start), path, found));
            next = end;
        }
        if next < range.end {
            missing.push(next..range.end);
        }
        (used, missing)
    }
}
