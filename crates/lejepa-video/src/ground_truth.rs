//! The masks of a clip as they should be.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::frame_folder::images;
use super::score::TrueFrame;
use super::{Frame, LabelMap};
use crate::{Error, Result};

/// A folder of masks; one is in memory at a time.
#[derive(Debug, Clone)]
pub(super) struct GroundTruth {
    folder: PathBuf,
    objects: Vec<u8>,
    /// Objects that the first mask does not show.
    later: Vec<u8>,
    /// The frame of the first mask with objects, if masks without any come before it.
    begin: Option<String>,
}

impl GroundTruth {
    /// Reads all masks once, to know the objects: those of the first mask that has any, as in DAVIS, where an
    /// object that appears later belongs to the background.
    pub(super) fn open(folder: &Path) -> Result<Self> {
        let mut objects = Vec::new();
        let mut later = BTreeSet::new();
        let mut begin = None;
        for (number, path) in images(folder)?.iter().filter(|path| is_png(path)).enumerate() {
            let shown = LabelMap::read(path)?.objects();
            if objects.is_empty() {
                objects = shown;
                begin = path.file_stem().map(|name| name.to_string_lossy().into()).filter(|_| number > 0);
            } else {
                later.extend(shown.into_iter().filter(|label| !objects.contains(label)));
            }
        }
        if objects.is_empty() {
            return Err(Error::NoObjects { path: folder.into() });
        }
        Ok(Self { folder: folder.into(), objects, later: later.into_iter().collect(), begin })
    }

    /// The labels that are judged, of the first mask.
    pub(super) fn objects(&self) -> &[u8] {
        &self.objects
    }

    /// The labels that appear in a later mask, and are not judged.
    pub(super) fn later(&self) -> &[u8] {
        &self.later
    }

    /// The frame whose mask says what the objects are, unless it is the first one with a mask.
    pub(super) fn begin(&self) -> Option<&str> {
        self.begin.as_deref()
    }

    /// The mask of a frame; nothing if it has none.
    pub(super) fn mask(&self, name: &str) -> Result<Option<LabelMap>> {
        let path = self.path(name);
        if path.is_file() { LabelMap::read(&path).map(Some) } else { Ok(None) }
    }

    /// The same, ready to be compared with.
    pub(super) fn of(&self, frame: &Frame) -> Result<Option<TrueFrame>> {
        let Some(mask) = self.mask(&frame.name)? else { return Ok(None) };
        let (height, width) = (frame.image.height(), frame.image.width());
        if mask.labels.dim() != (height, width) {
            let (rows, columns) = mask.labels.dim();
            let problem = format!("{rows}x{columns} pixels, the frame has {height}x{width}");
            return Err(Error::Mask { problem, path: self.path(&frame.name) });
        }
        Ok(Some(TrueFrame::new(&mask, &self.objects)))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.png"))
    }
}

fn is_png(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "png")
}

#[cfg(test)]
mod tests {
    use ndarray::array;

    use super::*;

    #[test]
    fn objects_are_those_of_the_first_mask_that_has_any() {
        let folder = tempfile::tempdir().unwrap();
        for (name, labels) in [
            ("00000", array![[0, 0, 0]]),
            ("00001", array![[2, 0, 5]]),
            ("00002", array![[2, 3, 0]]),
            ("00003", array![[1, 3, 5]]),
        ] {
            LabelMap::new(labels).write(&folder.path().join(format!("{name}.png"))).unwrap();
        }
        let truth = GroundTruth::open(folder.path()).unwrap();
        assert_eq!((truth.objects(), truth.later()), (&[2, 5][..], &[1, 3][..]));
        assert_eq!(truth.begin(), Some("00001"));
        std::fs::remove_file(folder.path().join("00000.png")).unwrap();
        assert_eq!(GroundTruth::open(folder.path()).unwrap().begin(), None);
    }
}
