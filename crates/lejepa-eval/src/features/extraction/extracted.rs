//! All rows of an extraction, on disk.

use std::path::PathBuf;

use lejepa_data::BrokenImage;

use super::folder::PartFolder;
use super::key::Key;
use super::part::Part;
use crate::{Error, Result};

/// All parts of an extraction.
#[derive(Debug)]
pub struct Extracted {
    /// Each with the first image that it is used for.
    parts: Vec<(usize, PathBuf)>,
    name: String,
    /// What they were computed by, and of what.
    pub key: Key,
    /// Images that have a row, by their number in the list.
    pub indices: Vec<usize>,
    /// Those that have none: they could not be read, or what was computed is of no use.
    pub broken: Vec<BrokenImage>,
    /// Length of a row.
    pub dim: usize,
}

impl Extracted {
    /// An error if images are missing.
    pub(super) fn of(folder: &PartFolder, key: Key) -> Result<Self> {
        let (used, missing) = folder.cover(&(0..key.images));
        if !missing.is_empty() {
            let images = missing.iter().map(|range| range.len()).sum();
            let first = missing.iter().map(|range| range.start).min().unwrap_or_default();
            return Err(Error::MissingParts { images, first, folder: folder.path.clone() });
        }
        let name = folder.key.clone();
        let mut extracted =
            Self { parts: Vec::new(), name, key, indices: Vec::new(), broken: Vec::new(), dim: 0 };
        for (first, path, found) in used {
            let mut broken = found.broken.iter().filter(|(image, _)| *image >= first).peekable();
            for image in first..found.images.end {
                match broken.next_if(|(place, _)| *place == image) {
                    Some((_, image)) => extracted.broken.push(image.clone()),
                    None => extracted.indices.push(image),
                }
            }
            extracted.dim = found.dim;
            extracted.parts.push((first, path.clone()));
        }
        Ok(extracted)
    }

    /// The rows, part by part, with the numbers of their images.
    pub fn for_each_part(&self, mut look: impl FnMut(&[usize], &[f32]) -> Result<()>) -> Result<()> {
        let mut indices = self.indices.as_slice();
        for (first, path) in &self.parts {
            let lost = || Error::LostPart { path: path.clone() };
            let part = Part::read(path, &self.name).ok_or_else(lost)?.from(*first);
            let rows = part.rows.len() / part.dim.max(1);
            let (own, rest) = indices.split_at_checked(rows).ok_or_else(lost)?;
            look(own, &part.rows)?;
            indices = rest;
        }
        Ok(())
    }
}
