//! Hashes of what files hold, read by all cores.

use std::collections::HashMap;
use std::fs::Metadata;
use std::io::Read;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rayon::prelude::*;

use super::Hashing;
use super::memo::{Memo, PathKey};
use super::turn::Turn;
use super::volume::{Volume, Volumes};
use crate::regular_file;

/// The hash of a file's content.
pub(super) type Content = blake3::Hash;

/// Files are read in blocks of this size; larger ones by all cores at once.
const BLOCK: usize = 16 << 20;
/// So many bytes are worth waiting for another process that reads them already.
const SHARED: u64 = 64 << 20;
/// Between two looks at the caller: files and bytes.
const BATCH_FILES: usize = 4096;
const BATCH_BYTES: u64 = 256 << 20;

/// Which files can be remembered by what the file system says of them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Trust {
    /// Those that were not touched for so long. A younger one may be written again without a trace: within a
    /// tick of the file system's clock, and through a mapping as long as its page has not been written back.
    pub(super) untouched: Duration,
    /// Also those on a file system that is not believed, see [`Volume`](super::volume::Volume).
    pub(super) everywhere: bool,
}

impl Default for Trust {
    /// Linux writes back after half a minute.
    fn default() -> Self {
        Self { untouched: Duration::from_secs(120), everywhere: false }
    }
}

/// What the file system says of some files: while it is the same they hold what they held, as far as it knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileFacts(blake3::Hash);

impl FileFacts {
    /// As it is now.
    pub fn of(files: &[PathBuf]) -> Self {
        let volumes = Volumes::default();
        let each: Vec<[u8; 16]> = files
            .par_iter()
            .map(|file| Stated::of(file, &volumes).facts.map_or([0; 16], |facts| facts.0))
            .collect();
        Self(blake3::hash(each.as_flattened()))
    }
}

/// What a file system says of a file, as one number: which one it is, and the file's length, inode and times of
/// change. The last change of the inode cannot be set back by anybody, unlike the time of modification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Facts(pub(super) [u8; 16]);

/// A file before its content is known.
struct Stated {
    key: PathKey,
    facts: Option<Facts>,
    changed: Option<Duration>,
    length: u64,
    is_believed: bool,
}

/// The contents of files.
pub(super) struct Contents;

impl Contents {
    /// The hashes of files in their order; none for one that cannot be read. Nothing at all if the caller
    /// stops the work; what was read until then is remembered.
    pub(super) fn read(
        files: &[PathBuf],
        (memo, trust): (Option<&Path>, Trust),
        observe: &mut dyn FnMut(Hashing) -> ControlFlow<()>,
    ) -> Option<Vec<Option<Content>>> {
        let volumes = Volumes::default();
        let stated: Vec<Stated> = files.par_iter().map(|file| Stated::of(file, &volumes)).collect();
        let recall = |known: &Memo| -> (Vec<Option<Content>>, Vec<usize>) {
            let contents = stated.iter().map(|file| known.get(&file.key, &file.remembered(trust)?));
            let contents: Vec<Option<Content>> = contents.collect();
            let unknown = (0..files.len()).filter(|&place| contents[place].is_none()).collect();
            (contents, unknown)
        };
        let length = |unknown: &[usize]| unknown.iter().map(|&place| stated[place].length).sum();
        let mut known = memo.map(Memo::read).unwrap_or_default();
        let (mut contents, mut unknown) = recall(&known);
        let mut hashing = Hashing { done: 0, total: length(&unknown) };
        let mut _turn = None;
        if let (Some(memo), SHARED..) = (memo, hashing.total)
            && unknown.iter().all(|&place| stated[place].settled(trust).is_some())
        {
            // Others may be about to learn the same: one process reads, and the others take it over.
            _turn = Some(Turn::wait_for(memo, &mut || observe(hashing))?);
            known = Memo::read(memo);
            (contents, unknown) = recall(&known);
            hashing.total = length(&unknown);
        }
        let mut stopped = false;
        let mut learnt = HashMap::new();
        for batch in batches(&unknown, |place| stated[place].length) {
            let read = |&place: &usize| (place, hash(&files[place]));
            let found: Vec<(usize, Option<Content>)> = match batch {
                // One file that is worth the whole machine: it tells how far it is itself.
                [place] if stated[*place].length > BATCH_BYTES => {
                    let before = hashing.done;
                    let hashed = hash_large(&files[*place], &mut |bytes| {
                        hashing.done = before + bytes;
                        stopped |= observe(hashing).is_break();
                        if stopped { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                    });
                    hashing.done = before;
                    vec![(*place, hashed)]
                }
                _ => batch.par_iter().map(read).collect(),
            };
            if stopped {
                break;
            }
            let volumes = Volumes::default();
            for (place, content) in found {
                contents[place] = content;
                // What changed while it was read, or may still change unseen, is not remembered.
                let file = &stated[place];
                let after = Stated::of(&files[place], &volumes).settled(trust);
                if let (Some(content), Some(facts)) = (content, after)
                    && file.facts == Some(facts)
                {
                    learnt.insert(file.key, (facts, content));
                }
                hashing.done += file.length;
            }
            stopped = observe(hashing).is_break();
            if stopped {
                break;
            }
        }
        if let Some(path) = memo.filter(|_| !learnt.is_empty()) {
            known.add(learnt);
            known.write(path);
        }
        (!stopped).then_some(contents)
    }
}

impl Stated {
    fn of(file: &Path, volumes: &Volumes) -> Self {
        let key = PathKey::of(file);
        let Ok(metadata) = std::fs::metadata(file) else {
            return Self { key, facts: None, changed: None, length: 0, is_believed: false };
        };
        let volume = volumes.of(file, device(&metadata));
        Self {
            key,
            facts: facts(&metadata, volume),
            changed: changed(&metadata),
            length: metadata.len(),
            is_believed: volume.is_believed,
        }
    }

    /// What it is known by, if its file system is believed.
    fn remembered(&self, trust: Trust) -> Option<Facts> {
        self.facts.filter(|_| self.is_believed || trust.everywhere)
    }

    /// The same for a file that will not change unseen any more: it was left alone for long enough.
    fn settled(&self, trust: Trust) -> Option<Facts> {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).ok()?;
        let age = now.checked_sub(self.changed?)?;
        self.remembered(trust).filter(|_| age > trust.untouched)
    }
}

/// Groups of files that are read before the caller is asked again.
fn batches(places: &[usize], length: impl Fn(usize) -> u64) -> Vec<&[usize]> {
    let mut batches = Vec::new();
    let (mut start, mut bytes) = (0, 0);
    for (end, &place) in places.iter().enumerate() {
        if end > start && (end - start == BATCH_FILES || bytes + length(place) > BATCH_BYTES) {
            batches.push(&places[start..end]);
            (start, bytes) = (end, 0);
        }
        bytes += length(place);
    }
    if start < places.len() {
        batches.push(&places[start..]);
    }
    batches
}

fn hash(path: &Path) -> Option<Content> {
    hash_large(path, &mut |_| ControlFlow::Continue(()))
}

/// The hash of a file, by all cores; `observe` is told how many bytes are done.
fn hash_large(path: &Path, observe: &mut dyn FnMut(u64) -> ControlFlow<()>) -> Option<Content> {
    let file = regular_file::open(path).ok()?;
    let length = file.metadata().ok()?.len();
    let mut hasher = blake3::Hasher::new();
    let mut block = Vec::with_capacity(usize::try_from(length).unwrap_or(BLOCK).min(BLOCK) + 1);
    loop {
        block.clear();
        (&file).take(BLOCK as u64).read_to_end(&mut block).ok()?;
        if block.is_empty() {
            return Some(hasher.finalize());
        }
        // Below this a file has too little for several cores.
        if block.len() < 128 << 10 {
            hasher.update(&block)
        } else {
            hasher.update_rayon(&block)
        };
        if observe(hasher.count()).is_break() {
            return None;
        }
    }
}

/// The facts of a file that will not change unseen any more, to be remembered.
#[cfg(feature = "hdf5")]
pub(in crate::dataset) fn settled_facts(path: &Path) -> Option<Vec<u8>> {
    let facts = Stated::of(path, &Volumes::default()).settled(Trust::default())?;
    Some(facts.0.to_vec())
}

#[cfg(unix)]
fn device(metadata: &Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::dev(metadata)
}

#[cfg(not(unix))]
fn device(_metadata: &Metadata) -> u64 {
    0
}

/// When a file or anything about it was changed last.
#[cfg(unix)]
fn changed(metadata: &Metadata) -> Option<Duration> {
    use std::os::unix::fs::MetadataExt;
    // Before 1970 is long ago.
    let seconds = Duration::from_secs(u64::try_from(metadata.ctime()).unwrap_or(0));
    Some(seconds + Duration::from_nanos(u64::try_from(metadata.ctime_nsec()).ok()?))
}

#[cfg(unix)]
pub(super) fn facts(metadata: &Metadata, volume: Volume) -> Option<Facts> {
    use std::os::unix::fs::MetadataExt;
    let mut hasher = blake3::Hasher::new();
    for number in [metadata.len(), metadata.ino()].into_iter().chain(volume.identity) {
        hasher.update(&number.to_le_bytes());
    }
    for number in [metadata.mtime(), metadata.mtime_nsec(), metadata.ctime(), metadata.ctime_nsec()] {
        hasher.update(&number.to_le_bytes());
    }
    let mut facts = [0; 16];
    facts.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
    Some(Facts(facts))
}

/// Where the system does not tell when an inode changed, nothing is remembered.
#[cfg(not(unix))]
fn changed(_metadata: &Metadata) -> Option<Duration> {
    None
}

#[cfg(not(unix))]
fn facts(_metadata: &Metadata, _volume: Volume) -> Option<Facts> {
    None
}
