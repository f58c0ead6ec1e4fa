//! Features of many images, computed part by part into a folder: what is there already is not computed
//! again, so that an extraction can be stopped at any moment and go on later, and several processes can
//! share it.
//!
//! ```text
//! key.json                                what is computed, of what, by what
//! 8c1f…-0000000000-0000004096.part        rows of these images, and which of them have none
//! lock, front, shard-3-of-16.lock         held by the processes that are at work
//! ```
//!
//! A part holds the hash of its key: one of another key is never used. Inferences start at multiples of their
//! size, counted from the first image, so that rows do not depend on where parts begin and end.

mod extracted;
mod folder;
mod key;
mod part;
mod shard;
mod workplace;

use std::ops::ControlFlow;
use std::path::Path;

use lejepa_data::Output;
use lejepa_embed::Encoder;

pub use self::extracted::Extracted;
use self::folder::PartFolder;
pub use self::key::Key;
pub use self::shard::Shard;
pub use self::workplace::Workplace;
pub(crate) use self::workplace::{ABOUT, About, KEY, LOCK};
use crate::Result;
use crate::sets::ImageList;

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

/// Who else may be at work in the folder, and what is to be done there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Share {
    /// Everything, side by side with other processes that want the same.
    Together,
    /// Everything, and nobody else.
    Alone,
    /// Some of the images, side by side with processes that compute the others.
    Shard(Shard),
    /// Nothing: all shards are there.
    Merge,
}

impl<'a> Extraction<'a> {
    /// Computes what is not yet in the folder, side by side with other processes. `observe` is told how many
    /// more images are done, and may stop the work: then there is no result yet.
    pub fn run(
        &self,
        folder: &Path,
        observe: &mut dyn FnMut(usize) -> ControlFlow<()>,
    ) -> Result<Option<Extracted>> {
        self.begin(folder, Share::Together)?.finish(observe)
    }

    /// What is whole in a folder, which is only read: it may be of somebody else.
    pub(crate) fn finished(&self, folder: &Path) -> Result<Option<Extracted>> {
        let key = self.key()?;
        let mut parts = PartFolder::new(folder, key.name()?);
        // Where nothing can be read, nothing is finished.
        let covered = parts.refresh().is_ok() && parts.cover(&(0..key.images)).1.is_empty();
        if covered { Extracted::of(&parts, key).map(Some) } else { Ok(None) }
    }

    /// Goes to work in a folder.
    pub fn begin(&self, folder: &Path, share: Share) -> Result<Workplace<'a>> {
        Workplace::enter(*self, folder, share)
    }

    /// Whether an extraction was begun in a folder and not finished.
    pub fn is_begun(folder: &Path) -> bool {
        folder.join(KEY).is_file()
    }

    /// A name for what is computed: extractions with the same one give the same numbers.
    pub fn name(&self) -> Result<String> {
        self.key()?.name()
    }

    /// What decides every number.
    pub fn key(&self) -> Result<Key> {
        Ok(Key {
            format: Key::FORMAT,
            computation: self.encoder.computation(self.output)?,
            data: self.images.fingerprint()?,
            images: self.images.len(),
        })
    }
}
