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
    /// Also those on a file system in memory, where writing through a mapping never leaves a trace.
    pub(super) in_memory: bool,
}

impl Default for Trust {
    /// Linux writes back after half a minute.
    fn default() -> Self {
        Self { untouched: Duration::from_secs(120), in_memory: false }
    }
}

/// What the file system says of some files: while it is the same they hold what they held, as far as it knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileFacts(blake3::Hash);

impl FileFacts {
    /// As it is now.
    pub fn of(files: &[PathBuf]) -> Self {
        let each: Vec<[u8; 16]> = files
            .par_iter()
            .map(|file| std::fs::metadata(file).ok().and_then(|metadata| facts(&metadata)))
            .map(|facts| facts.map_or([0; 16], |facts| facts.0))
            .collect();
        Self(blake3::hash(each.as_flattened()))
    }
}

/// What a file system says of a file, as one number: its length, inode and times of change. The last change
/// of the inode cannot be set back by anybody, unlike the time of modification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Facts(pub(super) [u8; 16]);

/// A file before its content is known.
struct Stated {
    key: PathKey,
    facts: Option<Facts>,
    changed: Option<Duration>,
    length: u64,
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
        let stated: Vec<Stated> = files.par_iter().map(|file| Stated::of(file)).collect();
        let recall = |known: &Memo| -> (Vec<Option<Content>>, Vec<usize>) {
            let contents = stated.iter().map(|file| known.get(&file.key, file.facts.as_ref()?));
            let contents: Vec<Option<Content>> = contents.collect();
            let unknown = (0..files.len()).filter(|&place| contents[place].is_none()).collect();
            (contents, unknown)
        };
        let length = |unknown: &[usize]| unknown.iter().map(|&place| stated[place].length).sum();
        let mut known = memo.map(Memo::read).unwrap_or_default();
        let (mut contents, mut unknown) = recall(&known);
        let mut hashing = Hashing { done: 0, total: length(&unknown) };
        let mut _turn = None;
        if let (Some(memo), SHARED.., Some(&first)) = (memo, hashing.total, unknown.first())
            && (trust.in_memory || !is_in_memory(&files[first]))
            && unknown.iter().all(|&place| stated[place].is_settled(trust))
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
            for (place, content) in found {
                contents[place] = content;
                // What changed while it was read, or may still change unseen, is not remembered.
                let file = &stated[place];
                if let (Some(content), Some(facts)) = (content, settled(&files[place], trust))
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
    fn of(file: &Path) -> Self {
        let metadata = std::fs::metadata(file).ok();
        Self {
            key: PathKey::of(file),
            changed: metadata.as_ref().and_then(changed),
            facts: metadata.as_ref().and_then(facts),
            length: metadata.map_or(0, |metadata| metadata.len()),
        }
    }
}

impl Stated {
    /// Whether it was left alone for long enough to be remembered.
    fn is_settled(&self, trust: Trust) -> bool {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).ok();
        let age = now.zip(self.changed).and_then(|(now, changed)| now.checked_sub(changed));
        age.is_some_and(|age| age > trust.untouched)
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
    settled(path, Trust::default()).map(|facts| facts.0.to_vec())
}

/// The facts of a file that will not change unseen any more.
fn settled(path: &Path, trust: Trust) -> Option<Facts> {
    if is_in_memory(path) && !trust.in_memory {
        return None;
    }
    let metadata = std::fs::metadata(path).ok()?;
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).ok()?;
    let age = now.checked_sub(changed(&metadata)?)?;
    if age > trust.untouched { facts(&metadata) } else { None }
}

/// Whether a file lies on a file system in memory; if that cannot be told, yes.
#[cfg(target_os = "linux")]
fn is_in_memory(path: &Path) -> bool {
    const TMPFS: u32 = 0x0102_1994;
    const RAMFS: u32 = 0x8584_58f6;
    // The field is wider on some machines, the numbers are not.
    rustix::fs::statfs(path).map_or(true, |system| [TMPFS, RAMFS].contains(&(system.f_type as u32)))
}

#[cfg(not(target_os = "linux"))]
fn is_in_memory(_path: &Path) -> bool {
    false
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
fn facts(metadata: &Metadata) -> Option<Facts> {
    use std::os::unix::fs::MetadataExt;
    let mut hasher = blake3::Hasher::new();
    for number in [metadata.len(), metadata.ino()] {
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
fn facts(_metadata: &Metadata) -> Option<Facts> {
    None
}
