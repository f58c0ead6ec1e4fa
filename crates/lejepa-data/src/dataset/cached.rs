//! Decoded images in one memory-mapped file, so that large ones are decoded once and not in every epoch.
//!
//! ```text
//! pixels of all images, one after the other; of an unusable image, the reason as text
//! per image: offset, length (u64), height, width, channels (u32; all 0 for an unusable one), BLAKE3 (8 bytes)
//! number of images (u64), magic (16 bytes)
//! ```
//!
//! All numbers are little-endian. The table stands at the end, because it is known last.

use std::io;
use std::ops::{ControlFlow, Range};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use rayon::prelude::*;

use super::{Dataset, FileFacts, Fingerprinter, Stored, mapped_file};
use crate::atomic_file::sweep;
use crate::resize::{Part, Resizer, Stretch};
use crate::{BrokenImage, DECODING, Error, Image, Interpolation, Result, write_atomically};

const MAGIC: [u8; 16] = *b"lejepa pixels 2\n";
const ENTRY: usize = 8 + 8 + 3 * 4 + 8;
/// Images that are decoded at a time: memory stays bounded.
const CHUNK: usize = 128;

/// A dataset whose images come out of a cache.
pub struct Cached {
    dataset: Box<dyn Dataset>,
    fingerprint: String,
    path: PathBuf,
    map: Bytes,
    entries: Vec<Entry>,
}

/// Which cache of a dataset: a file of its own for every content, size and way of decoding.
#[derive(Debug, Clone, Copy)]
pub struct CachePlace<'a> {
    /// Folder of caches.
    pub folder: &'a Path,
    /// The dataset's.
    pub fingerprint: &'a str,
    /// Of its files, from before the fingerprint was taken.
    pub facts: FileFacts,
    /// Images are shrunk to this short side.
    pub short_side: usize,
}

struct Entry {
    bytes: Range<usize>,
    size: [u32; 3],
    hash: [u8; 8],
}

impl Cached {
    /// Opens the cache of a dataset; if there is none, it is made first. `progress` is told how many more
    /// images are done, and may stop the work.
    pub fn open(
        dataset: Box<dyn Dataset>,
        place: CachePlace<'_>,
        progress: &mut dyn FnMut(usize) -> ControlFlow<()>,
    ) -> Result<Self> {
        let CachePlace { folder, fingerprint, short_side, .. } = place;
        let path = folder.join(format!("{fingerprint}-{short_side}-{DECODING}.pixels"));
        // Half a cache is large, and nothing may be written here for long.
        sweep(folder);
        if !path.exists() {
            write(&*dataset, &path, &place, progress)?;
        }
        let map = mapped_file::map(&path)?;
        let invalid = || damaged(&path);
        let entries = read_entries(&map).filter(|entries| entries.len() == dataset.len());
        let entries = entries.ok_or_else(invalid)?;
        Ok(Self { dataset, fingerprint: fingerprint.into(), path, map, entries })
    }
}

impl Dataset for Cached {
    fn len(&self) -> usize {
        self.entries.len()
    }

    fn stored(&self, index: usize) -> Result<Stored> {
        let Entry { bytes, size: [height, width, channels], hash } = &self.entries[index];
        let bytes = &self.map[bytes.clone()];
        if short_hash(bytes) != *hash {
            return Err(damaged(&self.path));
        }
        if *channels == 0 {
            let problem = String::from_utf8_lossy(bytes).into_owned();
            return Err(Error::Invalid { format: "image", path: self.path.clone(), problem });
        }
        let [height, width, channels] = [*height, *width, *channels].map(|length| length as usize);
        Ok(Stored::Pixels(Image::from_pixels(height, width, channels, bytes.to_vec())?))
    }

    fn name(&self, index: usize) -> String {
        self.dataset.name(index)
    }

    fn label(&self, index: usize) -> Option<usize> {
        self.dataset.label(index)
    }

    fn class_names(&self) -> &[String] {
        self.dataset.class_names()
    }

    fn files(&self) -> Vec<PathBuf> {
        self.dataset.files()
    }

    fn fingerprint(&self, _fingerprinter: &mut Fingerprinter<'_>) -> Result<String> {
        Ok(self.fingerprint.clone())
    }

    fn notes(&self) -> &[String] {
        self.dataset.notes()
    }
}

fn damaged(path: &Path) -> Error {
    let problem = "it is damaged: remove it, and it is made again".into();
    Error::Invalid { format: "cache", path: path.into(), problem }
}

/// Enough to notice damage.
fn short_hash(bytes: &[u8]) -> [u8; 8] {
    let mut short = [0; 8];
    short.copy_from_slice(&blake3::hash(bytes).as_bytes()[..8]);
    short
}

fn write(
    dataset: &dyn Dataset,
    path: &Path,
    place: &CachePlace<'_>,
    progress: &mut dyn FnMut(usize) -> ControlFlow<()>,
) -> Result<()> {
    let mut table = Vec::with_capacity(dataset.len() * ENTRY);
    let (mut offset, mut failure) = (0u64, None);
    let aborted = || Err(io::ErrorKind::Interrupted.into());
    let written = write_atomically(path, |file| {
        for start in (0..dataset.len()).step_by(CHUNK) {
            let indices = start..(start + CHUNK).min(dataset.len());
            let chunk: Vec<Result<Image>> = indices
                .clone()
                .into_par_iter()
                .map(|index| shrunk(dataset.stored(index)?, place.short_side))
                .collect();
            for (index, image) in indices.zip(chunk) {
                let reason;
                let image = match image {
                    // Another time it may be there: that must not be kept.
                    Err(error) if error.may_pass() => {
                        failure = Some(Error::sample(dataset.name(index), error));
                        return aborted();
                    }
                    image => image,
                };
                let (bytes, size) = match &image {
                    Ok(image) => (image.pixels(), [image.height(), image.width(), image.channels()]),
                    Err(error) => {
                        reason = BrokenImage::new(dataset.name(index), error).reason;
                        (reason.as_bytes(), [0; 3])
                    }
                };
                file.write_all(bytes)?;
                table.extend(offset.to_le_bytes());
                table.extend((bytes.len() as u64).to_le_bytes());
                table.extend(size.iter().flat_map(|&length| (length as u32).to_le_bytes()));
                table.extend(short_hash(bytes));
                offset += bytes.len() as u64;
            }
            if progress(CHUNK.min(dataset.len() - start)).is_break() {
                failure = Some(Error::Stopped);
                return aborted();
            }
        }
        if FileFacts::of(&dataset.files()) != place.facts {
            failure = Some(Error::Changed);
            return aborted();
        }
        file.write_all(&table)?;
        file.write_all(&(dataset.len() as u64).to_le_bytes())?;
        file.write_all(&MAGIC)
    });
    failure.map_or(written, Err)
}

/// The image with its short side no longer than asked for.
fn shrunk(stored: Stored, short_side: usize) -> Result<Image> {
    let (height, width) = stored.size()?;
    let image = stored.decode_shrunk(height.min(width) / short_side)?;
    let (height, width) = (image.height(), image.width());
    if height.min(width) <= short_side {
        return Ok(image);
    }
    let scale = short_side as f64 / height.min(width) as f64;
    let size = [height, width].map(|side| (side as f64 * scale).round() as usize);
    let whole = |length: usize| Stretch { start: 0., length: length as f64 };
    let part = Part { rows: whole(height), columns: whole(width), interpolation: Interpolation::Bicubic };
    Resizer::default().part(&image, part, (size[0], size[1]))
}

/// The table at the end of a cache; nothing if the file is not a whole one.
fn read_entries(map: &[u8]) -> Option<Vec<Entry>> {
    let (rest, magic) = map.split_last_chunk::<16>()?;
    let (rest, count) = rest.split_last_chunk::<8>()?;
    let count = usize::try_from(u64::from_le_bytes(*count)).ok()?;
    let pixels = rest.len().checked_sub(count.checked_mul(ENTRY)?)?;
    if *magic != MAGIC {
        return None;
    }
    rest[pixels..].chunks_exact(ENTRY).map(|entry| read_entry(entry, pixels)).collect()
}

fn read_entry(entry: &[u8], pixels: usize) -> Option<Entry> {
    let (offset, entry) = entry.split_first_chunk::<8>()?;
    let (length, sizes) = entry.split_first_chunk::<8>()?;
    let [offset, length] = [offset, length].map(|bytes| usize::try_from(u64::from_le_bytes(*bytes)).ok());
    let bytes = offset?..offset?.checked_add(length?)?;
    let mut size = [0; 3];
    for (length, bytes) in size.iter_mut().zip(sizes.as_chunks::<4>().0) {
        *length = u32::from_le_bytes(*bytes);
    }
    let hash = *sizes.last_chunk::<8>()?;
    (bytes.end <= pixels).then_some(Entry { bytes, size, hash })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Split, open};

    const FOOTER: usize = 8 + MAGIC.len();

    fn open_in(
        cache: &tempfile::TempDir,
        (dataset, fingerprint, short_side): (Box<dyn Dataset>, &str, usize),
        progress: &mut dyn FnMut(usize) -> ControlFlow<()>,
    ) -> Result<Cached> {
        let facts = FileFacts::of(&dataset.files());
        Cached::open(dataset, CachePlace { folder: cache.path(), fingerprint, facts, short_side }, progress)
    }

    fn folder_of_images() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, height) in [("a.png", 90), ("b.png", 20)] {
            let image = ::image::RgbImage::from_fn(60, height, |x, y| ::image::Rgb([x as u8, y as u8, 7]));
            image.save(folder.path().join(name)).unwrap();
        }
        std::fs::write(folder.path().join("c.png"), "no image").unwrap();
        folder
    }

    #[test]
    fn a_cache_is_made_once_and_gives_shrunk_images() {
        let (folder, cache) = (folder_of_images(), tempfile::tempdir().unwrap());
        let mut done = 0;
        let mut open_cached = || {
            let dataset = open(folder.path(), Split::Train).unwrap();
            open_in(&cache, (dataset, "a", 30), &mut |more| {
                done += more;
                ControlFlow::Continue(())
            })
            .unwrap()
        };
        let first = open_cached();
        let again = open_cached();
        for cached in [first, again] {
            let image = cached.image(0).unwrap();
            assert_eq!((image.height(), image.width(), image.channels()), (45, 30, 3));
            let small = cached.image(1).unwrap();
            assert_eq!((small.height(), small.width()), (20, 60), "small images are kept as they are");
            let message = cached.image(2).unwrap_err().to_string();
            assert!(message.contains("c.png"), "{message}");
        }
        assert_eq!(done, 3, "made once");
    }

    #[test]
    fn images_that_change_or_vanish_while_they_are_read_are_not_kept() {
        let (folder, cache) = (folder_of_images(), tempfile::tempdir().unwrap());
        let dataset = open(folder.path(), Split::Train).unwrap();
        let facts = FileFacts::of(&dataset.files());
        let place = CachePlace { folder: cache.path(), fingerprint: "a", facts, short_side: 30 };
        std::fs::write(folder.path().join("a.png"), "other").unwrap();
        let changed = Cached::open(dataset, place, &mut |_| ControlFlow::Continue(()));
        assert!(matches!(changed, Err(Error::Changed)));

        let dataset = open(folder.path(), Split::Train).unwrap();
        std::fs::remove_file(folder.path().join("b.png")).unwrap();
        let away = open_in(&cache, (dataset, "a", 30), &mut |_| ControlFlow::Continue(()));
        assert!(away.err().unwrap().to_string().contains("b.png"));
        assert_eq!(std::fs::read_dir(cache.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_damaged_pixel_is_noticed() {
        let (folder, cache) = (folder_of_images(), tempfile::tempdir().unwrap());
        let open_cached = || {
            let dataset = open(folder.path(), Split::Train).unwrap();
            open_in(&cache, (dataset, "a", 30), &mut |_| ControlFlow::Continue(())).unwrap()
        };
        let path = open_cached().path.clone();
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[45 * 30 + 7] ^= 1;
        std::fs::write(&path, bytes).unwrap();
        let damaged = open_cached();
        assert!(damaged.stored(0).unwrap_err().to_string().contains("damaged"));
        assert!(damaged.image(1).is_ok());
    }

    #[test]
    fn other_content_and_another_size_have_caches_of_their_own() {
        let (folder, cache) = (folder_of_images(), tempfile::tempdir().unwrap());
        for (fingerprint, short_side, height) in [("a", 30, 45), ("b", 20, 30), ("a", 20, 30)] {
            let dataset = open(folder.path(), Split::Train).unwrap();
            let wanted = (dataset, fingerprint, short_side);
            let cached = open_in(&cache, wanted, &mut |_| ControlFlow::Continue(())).unwrap();
            assert_eq!(cached.image(0).unwrap().height(), height);
            let name = format!("{fingerprint}-{short_side}-{DECODING}.pixels");
            assert_eq!(cached.path, cache.path().join(name));
            assert_eq!(cached.fingerprint(&mut Fingerprinter::default()).unwrap(), fingerprint);
        }
    }

    #[test]
    fn work_that_is_stopped_leaves_nothing() {
        let (folder, cache) = (folder_of_images(), tempfile::tempdir().unwrap());
        let dataset = open(folder.path(), Split::Train).unwrap();
        assert!(open_in(&cache, (dataset, "a", 30), &mut |_| ControlFlow::Break(())).is_err());
        assert_eq!(std::fs::read_dir(cache.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_damaged_cache_is_an_error_that_says_what_to_do() {
        let (folder, cache) = (folder_of_images(), tempfile::tempdir().unwrap());
        let open_cached = || {
            let dataset = open(folder.path(), Split::Train).unwrap();
            open_in(&cache, (dataset, "a", 30), &mut |_| ControlFlow::Continue(()))
        };
        let path = open_cached().unwrap().path.clone();
        let whole = std::fs::read(&path).unwrap();
        let end = whole.len() - FOOTER;
        for damaged in [
            whole[..whole.len() - 1].to_vec(),
            whole[10..].to_vec(),
            Vec::new(),
            [&whole[..end], &[0xff; FOOTER - 16], &whole[whole.len() - 16..]].concat(),
            [&whole[..end - ENTRY], &[0xff; ENTRY], &whole[end..]].concat(),
        ] {
            std::fs::write(&path, damaged).unwrap();
            let message = open_cached().err().unwrap().to_string();
            assert!(message.contains("remove it") || message.contains("cannot read"), "{message}");
        }
    }
}
