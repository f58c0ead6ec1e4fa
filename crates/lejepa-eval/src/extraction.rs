//! Features of many images, computed part by part into a folder: what is there already is not computed
//! again, so that an extraction can be stopped at any moment and go on later.
//!
//! ```text
//! parts/key.json           what is computed, of what, by what
//! parts/00000000.part      rows of the first images, and which of them could not be read
//! ```

use std::collections::HashMap;
use std::ops::{ControlFlow, Range};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use lejepa_data::{BrokenImage, Output, Preprocess, write_atomically};
use lejepa_embed::Encoder;
use safetensors::tensor::{Dtype, TensorView};
use safetensors::{SafeTensors, serialize};
use serde::{Deserialize, Serialize};

use crate::{Error, ImageList, Result};

/// Images of a part: a few seconds of work for a small encoder.
const PART: usize = 256;
/// Names inside a part.
const ROWS: &str = "rows";
const BROKEN: &str = "broken";

/// What is to be computed.
#[derive(Clone, Copy)]
pub struct Extraction<'a> {
    /// The encoder.
    pub encoder: &'a Encoder,
    /// Which of its outputs; one vector per image.
    pub output: Output,
    /// Of what.
    pub images: &'a ImageList,
}

/// What decides every number of an extraction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Key {
    encoder: String,
    output: Output,
    preprocess: Preprocess,
    normalised: bool,
    data: String,
    images: usize,
}

/// All parts of an extraction.
#[derive(Debug)]
pub struct Extracted {
    parts: Vec<PathBuf>,
    /// Images that could be read, by their number in the list.
    pub indices: Vec<usize>,
    /// Those that could not.
    pub broken: Vec<BrokenImage>,
    /// Length of a row.
    pub dim: usize,
}

/// One file.
struct Part {
    dim: usize,
    /// `(readable images, dim)`.
    rows: Vec<f32>,
    /// Unreadable images by their place in the part.
    broken: Vec<(usize, BrokenImage)>,
}

impl Extraction<'_> {
    /// Computes what is not yet in the folder. `observe` is told how many more images are done, and may
    /// stop the work after any part: then there is no result yet.
    pub fn run(
        &self,
        folder: &Path,
        observe: &mut dyn FnMut(usize) -> ControlFlow<()>,
    ) -> Result<Option<Extracted>> {
        self.claim(folder)?;
        let mut extracted = Extracted { parts: Vec::new(), indices: Vec::new(), broken: Vec::new(), dim: 0 };
        for start in (0..self.images.len()).step_by(PART) {
            let range = start..self.images.len().min(start + PART);
            let path = folder.join(format!("{start:08}.part"));
            let part = match Part::read(&path) {
                Some(part) if part.fits(range.len()) => part,
                _ => {
                    let part = self.compute(range.clone())?;
                    part.write(&path)?;
                    part
                }
            };
            extracted.add(path, part, range.clone());
            if observe(range.len()).is_break() {
                return Ok(None);
            }
        }
        Ok(Some(extracted))
    }

    /// A name for what is computed: extractions with the same one give the same numbers.
    pub fn name(&self) -> Result<String> {
        let key = serde_json::to_vec(&self.key()?).map_err(Error::Json)?;
        Ok(blake3::hash(&key).to_hex()[..24].to_string())
    }

    fn key(&self) -> Result<Key> {
        Ok(Key {
            encoder: self.encoder.fingerprint(),
            output: self.output,
            preprocess: self.encoder.preprocess().clone(),
            normalised: self.encoder.is_normalised(),
            data: self.images.fingerprint()?,
            images: self.images.len(),
        })
    }

    /// Makes the folder, or sees to it that what is in there belongs to this extraction.
    fn claim(&self, folder: &Path) -> Result<()> {
        let key = self.key()?;
        let path = folder.join("key.json");
        if let Ok(found) = std::fs::read(&path) {
            let found: Option<Key> = serde_json::from_slice(&found).ok();
            return if found == Some(key) {
                Ok(())
            } else {
                Err(Error::OtherExtraction { folder: folder.into() })
            };
        }
        let json = serde_json::to_string_pretty(&key).map_err(Error::Json)?;
        Ok(write_atomically(&path, |file| writeln!(file, "{json}"))?)
    }

    fn compute(&self, range: Range<usize>) -> Result<Part> {
        let broken = Mutex::new(Vec::new());
        let values = self.encoder.compute_with(self.output, range.len(), |place, pixels| {
            let index = range.start + place;
            let prepared = self.images.image(index);
            let prepared = prepared.and_then(|image| self.encoder.preprocess().apply_into(&image, pixels));
            if let Err(error) = prepared {
                let image = BrokenImage::new(self.images.info(index).id, &error);
                broken.lock().unwrap_or_else(PoisonError::into_inner).push((place, image));
            }
            Ok(())
        })?;
        let mut broken = broken.into_inner().unwrap_or_else(PoisonError::into_inner);
        broken.sort_unstable_by_key(|(place, _)| *place);
        let dim = values.len() / range.len().max(1);
        let is_broken = |place: usize| broken.binary_search_by_key(&place, |(place, _)| *place).is_ok();
        let values: Vec<f32> = values.into_iter().collect();
        let rows = values.chunks(dim.max(1)).enumerate().filter(|(place, _)| !is_broken(*place));
        Ok(Part { dim, rows: rows.flat_map(|(_, row)| row).copied().collect(), broken })
    }
}

impl Extracted {
    fn add(&mut self, path: PathBuf, part: Part, range: Range<usize>) {
        let is_broken = |index: &usize| part.broken.iter().any(|(place, _)| range.start + place == *index);
        self.indices.extend(range.clone().filter(|index| !is_broken(index)));
        self.parts.push(path);
        self.dim = part.dim;
        self.broken.extend(part.broken.into_iter().map(|(_, image)| image));
    }

    /// The rows, part by part, with the numbers of their images.
    pub fn for_each_part(&self, mut look: impl FnMut(&[usize], &[f32]) -> Result<()>) -> Result<()> {
        let mut indices = self.indices.as_slice();
        for path in &self.parts {
            let part = Part::read(path).ok_or_else(|| Error::LostPart { path: path.clone() })?;
            let (own, rest) = indices
                .split_at_checked(part.rows.len() / part.dim.max(1))
                .ok_or_else(|| Error::LostPart { path: path.clone() })?;
            look(own, &part.rows)?;
            indices = rest;
        }
        Ok(())
    }
}

impl Part {
    fn fits(&self, images: usize) -> bool {
        self.dim > 0 && self.rows.len() / self.dim + self.broken.len() == images
    }

    /// `None` for a file that is not there or not whole.
    fn read(path: &Path) -> Option<Self> {
        let bytes = std::fs::read(path).ok()?;
        let (_, header) = SafeTensors::read_metadata(&bytes).ok()?;
        let broken = header.metadata().as_ref()?.get(BROKEN)?;
        let file = SafeTensors::deserialize(&bytes).ok()?;
        let tensor = file.tensor(ROWS).ok().filter(|tensor| tensor.dtype() == Dtype::F32)?;
        let rows = tensor.data().as_chunks::<4>().0.iter().map(|&value| f32::from_le_bytes(value)).collect();
        Some(Self { dim: *tensor.shape().get(1)?, rows, broken: serde_json::from_str(broken).ok()? })
    }

    fn write(&self, path: &Path) -> Result<()> {
        let bytes: Vec<u8> = self.rows.iter().flat_map(|value| value.to_le_bytes()).collect();
        let shape = vec![self.rows.len() / self.dim.max(1), self.dim];
        let tensor = TensorView::new(Dtype::F32, shape, &bytes).map_err(Error::Safetensors)?;
        let broken = serde_json::to_string(&self.broken).map_err(Error::Json)?;
        let metadata = HashMap::from([(BROKEN.to_string(), broken)]);
        let file = serialize([(ROWS, tensor)], Some(metadata)).map_err(Error::Safetensors)?;
        Ok(write_atomically(path, |target| target.write_all(&file))?)
    }
}
