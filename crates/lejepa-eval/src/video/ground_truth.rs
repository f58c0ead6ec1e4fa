//! The masks of a clip as they should be.

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
}

impl GroundTruth {
    /// Reads all masks once, to know the objects.
    pub(super) fn open(folder: &Path) -> Result<Self> {
        let mut occurs = [false; 256];
        for path in images(folder)?.iter().filter(|path| is_png(path)) {
            for label in LabelMap::read(path)?.objects() {
                occurs[usize::from(label)] = true;
            }
        }
        let objects: Vec<u8> = (0..=u8::MAX).filter(|&label| occurs[usize::from(label)]).collect();
        if objects.is_empty() {
            return Err(Error::NoObjects { path: folder.into() });
        }
        Ok(Self { folder: folder.into(), objects })
    }

    /// The labels of all frames.
    pub(super) fn objects(&self) -> &[u8] {
        &self.objects
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
