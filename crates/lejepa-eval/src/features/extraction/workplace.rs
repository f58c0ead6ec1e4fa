//! A process at work in a folder of parts.

use std::io::ErrorKind;
use std::ops::{ControlFlow, Range};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use lejepa_data::{BrokenImage, Hold, Lock, regular_file, write_atomically};
use serde::{Deserialize, Serialize};

use super::folder::PartFolder;
use super::part::Part;
use super::{Extracted, Extraction, Key, Shard, Share};
use crate::{Error, Result};

/// The key.
pub(crate) const KEY: &str = "key.json";
/// Held by everybody who is at work in the folder.
pub(crate) const LOCK: &str = "lock";
/// Held by the one that works from the front.
const FRONT: &str = "front";
/// What a person would like to know of a folder in a cache.
pub(crate) const ABOUT: &str = "about.json";

/// Work that is lost if the power is cut.
const PART_TIME: Duration = Duration::from_secs(15);
/// Values of the largest part.
const PART_VALUES: usize = 1 << 26;
/// Images between two looks at the clock, to begin with and at most.
const FIRST_PORTION: usize = 32;
const LARGEST_PORTION: usize = 1024;
/// A portion that took less is followed by a larger one.
const PORTION_TIME: Duration = Duration::from_secs(1);

/// Where features of a cache come from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct About {
    /// The encoder's file.
    pub(crate) encoder: String,
    /// The first image.
    pub(crate) first: String,
}

/// The right to write into a folder, with what is to be written.
#[derive(Debug)]
pub struct Workplace<'a> {
    extraction: Extraction<'a>,
    key: Key,
    folder: PartFolder,
    share: Share,
    /// Whether this process works from the front; others begin elsewhere.
    in_front: bool,
    _locks: Vec<Lock>,
}

impl std::fmt::Debug for Extraction<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Extraction").field("encoder", self.encoder).finish_non_exhaustive()
    }
}

impl<'a> Workplace<'a> {
    pub(super) fn enter(extraction: Extraction<'a>, folder: &Path, share: Share) -> Result<Self> {
        let failed = |source| Error::File { path: folder.into(), source };
        std::fs::create_dir_all(folder).map_err(failed)?;
        let take = |name: &str, hold| Lock::take(&folder.join(name), hold);
        let need = |name: &str, hold| -> Result<Lock> {
            let busy = || Error::Busy { holder: Lock::holder(&folder.join(name)), folder: folder.into() };
            take(name, hold)?.ok_or_else(busy)
        };
        let mut locks = Vec::new();
        let mut in_front = true;
        match share {
            Share::Alone | Share::Merge => locks.push(need(LOCK, Hold::Exclusive)?),
            Share::Shard(shard) => {
                locks.push(need(LOCK, Hold::Shared)?);
                locks.push(need(&format!("shard-{}.lock", shard.label()), Hold::Exclusive)?);
            }
            Share::Together => {
                locks.push(need(LOCK, Hold::Shared)?);
                let front = take(FRONT, Hold::Exclusive)?;
                in_front = front.is_some();
                locks.extend(front);
            }
        }
        let key = claim(&extraction, folder, share)?;
        let folder = PartFolder::new(folder, key.name()?);
        Ok(Self { extraction, key, folder, share, in_front, _locks: locks })
    }

    /// Computes what is not there yet; nothing if it was stopped.
    pub(crate) fn finish(
        mut self,
        observe: &mut dyn FnMut(usize) -> ControlFlow<()>,
    ) -> Result<Option<Extracted>> {
        match self.compute(observe)? {
            ControlFlow::Break(()) => Ok(None),
            ControlFlow::Continue(()) => self.collect().map(Some),
        }
    }

    /// Computes what is not there yet, or was stopped. `observe` is told how many more images are done.
    pub fn compute(&mut self, observe: &mut dyn FnMut(usize) -> ControlFlow<()>) -> Result<ControlFlow<()>> {
        let range = self.range();
        let (mut told, mut portion) = (0, FIRST_PORTION);
        loop {
            self.folder.refresh()?;
            let (_, missing) = self.folder.cover(&range);
            let done = range.len() - missing.iter().map(Range::len).sum::<usize>();
            if observe(done.saturating_sub(told)).is_break() {
                return Ok(ControlFlow::Break(()));
            }
            told = told.max(done);
            let Some(gap) = self.gap(&missing) else { return Ok(ControlFlow::Continue(())) };
            let mut watch = |images| {
                told += images;
                observe(images)
            };
            if self.fill(gap, &mut portion, &mut watch)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
    }

    /// All rows; an error if some are missing.
    pub fn collect(&mut self) -> Result<Extracted> {
        self.folder.refresh()?;
        Extracted::of(&self.folder, self.key.clone())
    }

    /// The images that are to be computed here.
    pub fn range(&self) -> Range<usize> {
        match self.share {
            Share::Together | Share::Alone => 0..self.key.images,
            Share::Shard(shard) => shard.range(self.key.images, self.key.computation.batch),
            Share::Merge => 0..0,
        }
    }

    /// Removes what was written here, after it has been put elsewhere; what else is in the folder stays.
    pub fn clear(self) -> Result<()> {
        let failed = |source| Error::File { path: self.folder.path.clone(), source };
        for entry in std::fs::read_dir(&self.folder.path).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let is_lock = name.starts_with("shard-") && name.ends_with(".lock");
            if Part::images_of(&path, &self.folder.key).is_some() || is_lock || [KEY, LOCK].contains(&&*name)
            {
                std::fs::remove_file(&path).map_err(failed)?;
            }
        }
        // Left alone if somebody has put something into it.
        let _ = std::fs::remove_dir(&self.folder.path);
        Ok(())
    }

    /// Where to go on: at the front, or at a place of one's own so that nothing is computed twice.
    fn gap(&self, missing: &[Range<usize>]) -> Option<Range<usize>> {
        if self.in_front {
            return missing.first().cloned();
        }
        let images = missing.iter().map(Range::len).sum::<usize>();
        let seed = format!("{} {:?}", std::process::id(), SystemTime::now());
        let drawn = blake3::hash(seed.as_bytes())
            .as_bytes()
            .iter()
            .take(7)
            .fold(0, |sum, &byte| sum << 8 | usize::from(byte));
        let mut place = drawn % images.max(1);
        for gap in missing {
            if place < gap.len() {
                let batch = self.key.computation.batch.max(1);
                return Some(gap.start.max((gap.start + place) / batch * batch)..gap.end);
            }
            place -= gap.len();
        }
        None
    }

    /// Computes and writes one part from the start of a gap on.
    fn fill(
        &mut self,
        gap: Range<usize>,
        portion: &mut usize,
        watch: &mut dyn FnMut(usize) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>> {
        let clock = Instant::now();
        let mut part = Part::empty(gap.start);
        let mut flow = ControlFlow::Continue(());
        while part.images.end < gap.end
            && clock.elapsed() < PART_TIME
            && part.rows.len() < PART_VALUES
            && flow.is_continue()
        {
            let started = Instant::now();
            let images = portion.next_multiple_of(self.key.computation.batch.max(1));
            let next = part.images.end..gap.end.min(part.images.end + images);
            let count = next.len();
            part.append(self.rows(next)?);
            flow = watch(count);
            if started.elapsed() < PORTION_TIME {
                *portion = (2 * *portion).min(LARGEST_PORTION);
            }
        }
        // What is kept is of the images that the key names.
        self.extraction.images.check_unchanged()?;
        let path = Part::path(&self.folder.path, &self.folder.key, self.shard(), &part.images);
        part.write(&path, &self.folder.key)?;
        self.folder.add(path, &part);
        Ok(flow)
    }

    fn shard(&self) -> Option<Shard> {
        match self.share {
            Share::Shard(shard) => Some(shard),
            _ => None,
        }
    }

    fn rows(&self, range: Range<usize>) -> Result<Part> {
        let Extraction { encoder, output, images } = self.extraction;
        let broken = Mutex::new(Vec::new());
        let rows = encoder.compute_each(output, range.len(), |place, pixels| {
            let index = range.start + place;
            let prepared = images.image(index);
            let prepared = prepared.and_then(|image| encoder.preprocess().apply_into(&image, pixels));
            if let Err(error) = prepared {
                // A disk that is away for a moment must not cost images for good.
                if error.may_pass() {
                    return Err(error);
                }
                let image = BrokenImage::new(images.info(index).id, &error);
                broken.lock().unwrap_or_else(PoisonError::into_inner).push((index, image));
            }
            Ok(())
        })?;
        let mut broken = broken.into_inner().unwrap_or_else(PoisonError::into_inner);
        let unread: Vec<usize> = broken.iter().map(|(image, _)| *image).collect();
        for (place, flaw) in rows.flawed {
            let index = range.start + place;
            if !unread.contains(&index) {
                let reason = format!("its {} {flaw}", output.name());
                broken.push((index, BrokenImage { name: images.info(index).id, reason }));
            }
        }
        broken.sort_unstable_by_key(|(image, _)| *image);
        let dim = rows.values.len() / range.len().max(1);
        let is_broken = |image: usize| broken.binary_search_by_key(&image, |(image, _)| *image).is_ok();
        let values: Vec<f32> = rows.values.into_iter().collect();
        let kept = values.chunks(dim.max(1)).zip(range.clone()).filter(|(_, image)| !is_broken(*image));
        Ok(Part { images: range, dim, rows: kept.flat_map(|(row, _)| row).copied().collect(), broken })
    }
}

/// Sees to it that what is in the folder belongs to this extraction, and says so for others.
fn claim(extraction: &Extraction<'_>, folder: &Path, share: Share) -> Result<Key> {
    let key = extraction.key()?;
    let path = folder.join(KEY);
    let found = match regular_file::read(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        found => Some(found.map_err(|source| Error::File { path: path.clone(), source })?),
    };
    let known: Option<Key> = found.as_ref().and_then(|json| serde_json::from_slice(json).ok());
    let other = |differences: Vec<&str>| {
        let differences = differences.join(", ");
        Err(Error::OtherExtraction { folder: folder.into(), differences })
    };
    match (share, found, known) {
        (Share::Merge, _, Some(known)) => match &*key.differences_of_content(&known) {
            [] => return Ok(known),
            _ => return other(key.differences(&known)),
        },
        (Share::Alone | Share::Shard(_), _, Some(known)) if known != key => {
            return other(key.differences(&known));
        }
        (Share::Alone | Share::Shard(_) | Share::Merge, Some(_), None) => {
            return other(vec!["version of this program"]);
        }
        (Share::Alone | Share::Shard(_) | Share::Merge, None, _) if PartFolder::has_parts(folder) => {
            return Err(Error::PartsWithoutKey { folder: folder.into() });
        }
        (_, _, Some(known)) if known == key => {}
        // A folder of a cache is named by its key.
        _ => {
            let json = serde_json::to_string_pretty(&key).map_err(Error::Json)?;
            write_atomically(&path, |file| writeln!(file, "{json}"))?;
        }
    }
    if share == Share::Together {
        let first = if extraction.images.is_empty() { String::new() } else { extraction.images.info(0).id };
        let about = About { encoder: extraction.encoder.name().into(), first };
        let json = serde_json::to_string(&about).map_err(Error::Json)?;
        // Written each time: its age tells when the folder was used last.
        write_atomically(&folder.join(ABOUT), |file| writeln!(file, "{json}"))?;
    }
    Ok(key)
}
