//! Rows of neighbouring images in one file, with the key that they were computed under.

use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use lejepa_data::{BrokenImage, regular_file, write_atomically};
use safetensors::tensor::{Dtype, TensorView};
use safetensors::{SafeTensors, serialize};

use super::shard::Shard;
use crate::{Error, Result};

/// Names inside a part.
const ROWS: &str = "rows";
const BROKEN: &str = "broken";
const KEY: &str = "key";
const IMAGES: &str = "images";
const HASH: &str = "blake3";
/// What a part's name ends in.
pub(super) const ENDING: &str = "part";

/// One file.
#[derive(Debug, PartialEq)]
pub(super) struct Part {
    /// Images of the list.
    pub(super) images: Range<usize>,
    pub(super) dim: usize,
    /// `(images with a row, dim)`.
    pub(super) rows: Vec<f32>,
    /// Images without one, by their number in the list, in ascending order.
    pub(super) broken: Vec<(usize, BrokenImage)>,
}

impl Part {
    pub(super) fn empty(start: usize) -> Self {
        Self { images: start..start, dim: 0, rows: Vec::new(), broken: Vec::new() }
    }

    /// Takes the rows of the images that follow.
    pub(super) fn append(&mut self, next: Self) {
        self.images.end = next.images.end;
        self.dim = next.dim;
        self.rows.extend(next.rows);
        self.broken.extend(next.broken);
    }

    /// The part without images before this one.
    pub(super) fn from(mut self, first: usize) -> Self {
        let left_out = first.saturating_sub(self.images.start);
        let broken = self.broken.iter().filter(|(image, _)| *image < first).count();
        self.rows.drain(..(left_out - broken) * self.dim);
        self.broken.drain(..broken);
        self.images.start += left_out;
        self
    }

    /// Where parts of these images lie.
    pub(super) fn path(folder: &Path, key: &str, shard: Option<Shard>, images: &Range<usize>) -> PathBuf {
        let shard = shard.map(|shard| format!("{}-", shard.label())).unwrap_or_default();
        folder.join(format!("{shard}{key}-{:010}-{:010}.{ENDING}", images.start, images.end))
    }

    /// The images of a part of this key, by its name.
    pub(super) fn images_of(path: &Path, key: &str) -> Option<Range<usize>> {
        let name = path.file_name()?.to_str()?.strip_suffix(ENDING)?.strip_suffix('.')?;
        let (rest, end) = name.rsplit_once('-')?;
        let (rest, start) = rest.rsplit_once('-')?;
        (rest == key || rest.ends_with(&format!("-{key}"))).then_some(())?;
        Some(start.parse().ok()?..end.parse().ok()?)
    }

    /// `None` for a file that is not there, not whole, or of another key.
    pub(super) fn read(path: &Path, key: &str) -> Option<Self> {
        let bytes = regular_file::read(path).ok()?;
        let (_, header) = SafeTensors::read_metadata(&bytes).ok()?;
        let metadata = header.metadata().as_ref()?;
        (metadata.get(KEY)? == key).then_some(())?;
        let images: Range<usize> = serde_json::from_str(metadata.get(IMAGES)?).ok()?;
        let broken: Vec<(usize, BrokenImage)> = serde_json::from_str(metadata.get(BROKEN)?).ok()?;
        let file = SafeTensors::deserialize(&bytes).ok()?;
        let tensor = file.tensor(ROWS).ok().filter(|tensor| tensor.dtype() == Dtype::F32)?;
        (*metadata.get(HASH)? == hash(metadata.get(IMAGES)?, metadata.get(BROKEN)?, tensor.data()))
            .then_some(())?;
        let rows = tensor.data().as_chunks::<4>().0.iter().map(|&value| f32::from_le_bytes(value)).collect();
        let [kept, dim] = *tensor.shape() else { return None };
        let whole = dim > 0 && kept + broken.len() == images.len();
        let placed = broken.is_sorted_by(|left, right| left.0 < right.0)
            && broken.iter().all(|(image, _)| images.contains(image));
        (whole && placed).then_some(Self { images, dim, rows, broken })
    }

    pub(super) fn write(&self, path: &Path, key: &str) -> Result<()> {
        let bytes: Vec<u8> = self.rows.iter().flat_map(|value| value.to_le_bytes()).collect();
        let shape = vec![self.rows.len() / self.dim.max(1), self.dim];
        let tensor = TensorView::new(Dtype::F32, shape, &bytes).map_err(Error::Safetensors)?;
        let images = serde_json::to_string(&self.images).map_err(Error::Json)?;
        let broken = serde_json::to_string(&self.broken).map_err(Error::Json)?;
        let metadata = HashMap::from([
            (KEY.to_string(), key.to_string()),
            (HASH.to_string(), hash(&images, &broken, &bytes)),
            (IMAGES.to_string(), images),
            (BROKEN.to_string(), broken),
        ]);
        let file = serialize([(ROWS, tensor)], Some(metadata)).map_err(Error::Safetensors)?;
        Ok(write_atomically(path, |target| target.write_all(&file))?)
    }
}

/// Of everything that a part says.
fn hash(images: &str, broken: &str, rows: &[u8]) -> String {
    let mut hasher = blake3::Hasher::new();
    for part in [images.as_bytes(), broken.as_bytes(), rows] {
        hasher.update(&(part.len() as u64).to_le_bytes()).update(part);
    }
    hasher.finalize().to_hex().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part() -> Part {
        let broken = vec![(4, BrokenImage { name: "four".into(), reason: "why".into() })];
        Part { images: 3..7, dim: 2, rows: vec![3., 3., 5., 5., 6., 6.], broken }
    }

    #[test]
    fn a_part_of_another_key_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = Part::path(folder.path(), "own", Shard::new(2, 3), &(3..7));
        part().write(&path, "own").unwrap();
        assert_eq!(Part::read(&path, "own"), Some(part()));
        assert_eq!(Part::read(&path, "other"), None);
        assert_eq!(Part::images_of(&path, "own"), Some(3..7));
        assert_eq!(Part::images_of(&path, "wn"), None);
    }

    #[test]
    fn a_part_that_was_damaged_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.part");
        part().write(&path, "own").unwrap();
        let whole = std::fs::read(&path).unwrap();
        let rows = whole.len() - 6 * 4;
        for place in rows..whole.len() {
            let mut damaged = whole.clone();
            damaged[place] ^= 1;
            std::fs::write(&path, damaged).unwrap();
            assert_eq!(Part::read(&path, "own"), None, "byte {place}");
        }
    }

    #[test]
    fn a_part_can_begin_later() {
        let rows = |first: usize| (part().from(first).images, part().from(first).rows);
        assert_eq!(rows(3), (3..7, vec![3., 3., 5., 5., 6., 6.]));
        assert_eq!(rows(4), (4..7, vec![5., 5., 6., 6.]));
        assert_eq!(rows(5), (5..7, vec![5., 5., 6., 6.]));
        assert!(part().from(5).broken.is_empty());
    }
}
