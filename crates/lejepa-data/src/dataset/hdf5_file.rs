//! What is inside an HDF5 file.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use hdf5::plist::dataset_create::Layout;
use hdf5::types::{IntSize, TypeDescriptor};
use hdf5::{Hyperslab, LocationType, SliceOrIndex};
use ndarray::IxDyn;

use super::ReadOptions;
use super::array_labels::{check_label_shape, check_labels, wrong_label_type};
use super::hdf5::invalid;
use super::hdf5_examination::examine;
use super::image_array::{FoundArray, ImageShape, ImageSource, wrong_image_type};
use super::unpack_limit::UnpackLimit;
use crate::{Error, Result, regular_file};

const IMAGES: [&str; 4] = ["images", "image", "x", "data"];
const LABELS: [&str; 4] = ["ans", "labels", "label", "y"];

/// The most that deflate makes of one byte.
const LARGEST_EXPANSION: u64 = 1032;

/// HDF5 keeps this much of unpacked chunks by itself.
const USUAL_CACHE: usize = 1 << 20;
/// More is kept for chunks of several images, so that the next image is at hand.
const LARGEST_CACHE: usize = 256 << 20;
/// A prime number well above that of the chunks that are kept, as HDF5's manual asks for.
const CACHE_SLOTS: usize = 12_421;

/// Unpacking more than this for one image is worth a note.
const SLOW_BYTES: usize = 8 << 20;

/// Finds the images of a file and reads their labels.
pub(super) fn read(path: &Path, options: &ReadOptions) -> Result<FoundArray> {
    examine(path, options)?;
    Ok(read_at_once(path, options)?.0)
}

/// Reads all that may be read later, with a sign of life now and then.
pub(super) fn read_all(
    path: &Path,
    options: &ReadOptions,
    sign: &mut dyn FnMut() -> Result<()>,
) -> Result<()> {
    /// Images between two signs.
    const OFTEN: usize = 16;
    sign()?;
    let (found, layout, together) = read_at_once(path, options)?;
    let last = found.shape.count.saturating_sub(1);
    // Images that nothing was done to are where they should be, or outside the file.
    let step = if layout == Layout::Chunked { together } else { last.max(1) };
    for (count, row) in (0..found.shape.count).step_by(step).enumerate() {
        // An image that cannot be read is an error when it is asked for.
        let _ = found.source.read(row);
        if count % OFTEN == 0 || step > 1 {
            sign()?;
        }
    }
    Ok(())
}

/// With how the images lie, and how many of them it takes to touch everything once: where chunks are too large to be
/// kept, each image of one unpacks all of it again.
fn read_at_once(path: &Path, options: &ReadOptions) -> Result<(FoundArray, Layout, usize)> {
    let mut file = Hdf5File::open(path, USUAL_CACHE)?;
    let name = match &options.images {
        Some(name) => name.clone(),
        None => IMAGES.into_iter().find(|name| file.has(name)).unwrap_or(IMAGES[0]).into(),
    };
    let mut dataset = file.dataset(&name)?;
    let in_images = |problem| invalid(path, format!("{name}: {problem}"));
    let shape = image_shape(&dataset).map_err(in_images)?;
    let layout = file.check_storage(&dataset, options.unpack_limit()).map_err(in_images)?;
    let unpacked = bytes_unpacked_for_one_image(&dataset);
    if unpacked > USUAL_CACHE {
        // The cache is a setting of the file, and only of one that is not open yet.
        drop((dataset, file));
        file = Hdf5File::open(path, unpacked.min(LARGEST_CACHE))?;
        dataset = file.dataset(&name)?;
    }
    let together = unpacked_together(unpacked, &dataset.chunk().unwrap_or_default());
    let mut notes = Vec::new();
    if unpacked > SLOW_BYTES && unpacked / 4 > shape.image_bytes() {
        let sizes: Vec<_> = dataset.shape().iter().skip(1).map(usize::to_string).collect();
        notes.push(format!(
            "to read one image of {name}, {} MB are unpacked, because chunks hold several images; a copy \
             made with `h5repack -l {name}:CHUNK=1x{}` is faster to train on",
            unpacked >> 20,
            sizes.join("x")
        ));
    }

    let group = name.rsplit_once('/').map_or(String::new(), |(group, _name)| format!("{group}/"));
    let mut beside = LABELS.into_iter().map(|label| format!("{group}{label}"));
    let labels_name = options.labels.clone().or_else(|| beside.find(|name| file.has(name)));
    let labels = match &labels_name {
        Some(name) => {
            let dataset = file.dataset(name)?;
            let labels = file.labels(&dataset, shape.count, options.unpack_limit());
            Some(labels.map_err(|problem| invalid(path, format!("{name}: {problem}")))?)
        }
        None => None,
    };
    let source = Box::new(Hdf5Images { path: path.into(), dataset });
    Ok((FoundArray { path: path.into(), name, shape, source, labels, labels_name, notes }, layout, together))
}

#[derive(Debug)]
struct Hdf5Images {
    path: PathBuf,
    dataset: hdf5::Dataset,
}

impl ImageSource for Hdf5Images {
    fn read(&self, row: usize) -> Result<Vec<u8>> {
        let all_of_each_axis = self.dataset.ndim().saturating_sub(1);
        let mut axes = vec![SliceOrIndex::Index(row)];
        axes.extend(vec![SliceOrIndex::from(..); all_of_each_axis]);
        let image = self.dataset.read_slice::<u8, _, IxDyn>(Hyperslab::from(axes));
        let image = image.map_err(|error| invalid(&self.path, error.to_string()))?;
        Ok(image.into_raw_vec_and_offset().0)
    }
}

/// The shape of images that can be read; the error says why they cannot.
fn image_shape(dataset: &hdf5::Dataset) -> std::result::Result<ImageShape, String> {
    match value_type(dataset)? {
        TypeDescriptor::Unsigned(IntSize::U1) => ImageShape::of(&dataset.get_shape().map_err(text)?),
        other => Err(wrong_image_type(&other.to_string())),
    }
}

fn value_type(dataset: &hdf5::Dataset) -> std::result::Result<TypeDescriptor, String> {
    dataset.dtype().and_then(|kind| kind.to_descriptor()).map_err(text)
}

/// Images that share chunks are unpacked together, whichever of them is asked for.
fn bytes_unpacked_for_one_image(dataset: &hdf5::Dataset) -> usize {
    let chunk = dataset.chunk().unwrap_or_default();
    let Some((images, sizes)) = chunk.split_first() else { return 0 };
    let shape = dataset.shape();
    let covered = shape.iter().skip(1).zip(sizes).map(|(axis, &size)| axis.checked_next_multiple_of(size));
    covered.fold(*images, |product, covered| product.saturating_mul(covered.unwrap_or(usize::MAX)))
}

/// Images of a chunk that is unpacked anew for each of them.
fn unpacked_together(unpacked: usize, chunk: &[usize]) -> usize {
    match chunk.first() {
        Some(&images) if unpacked > LARGEST_CACHE => images.max(1),
        _ => 1,
    }
}

fn text(error: hdf5::Error) -> String {
    error.to_string()
}

struct Hdf5File<'a> {
    path: &'a Path,
    length: u64,
    file: hdf5::File,
}

impl<'a> Hdf5File<'a> {
    fn open(path: &'a Path, cache: usize) -> Result<Self> {
        // What the system has against it is said in the system's words.
        let metadata = regular_file::open(path).and_then(|file| file.metadata());
        let metadata = metadata.map_err(|source| Error::Io { action: "read", path: path.into(), source })?;
        let mut options = hdf5::File::with_options();
        options.with_fapl(|access| access.chunk_cache(CACHE_SLOTS, cache, 0.75));
        let file = options.open(path).map_err(|error| invalid(path, error.to_string()))?;
        Ok(Self { path, length: metadata.len(), file })
    }

    fn has(&self, name: &str) -> bool {
        self.file.link_exists(name) && self.is(LocationType::Dataset, name)
    }

    fn is(&self, kind: LocationType, name: &str) -> bool {
        self.file.loc_type_by_name(name).is_ok_and(|found| found == kind)
    }

    fn dataset(&self, name: &str) -> Result<hdf5::Dataset> {
        if !self.has(name) {
            return Err(invalid(self.path, format!("no dataset {name}, but: {}", self.contents())));
        }
        let dataset =
            self.file.dataset(name).map_err(|error| invalid(self.path, format!("{name}: {error}")))?;
        // Such a file would change without this one.
        if dataset.filename() != self.file.filename() {
            let problem = format!("{name} is in another file, by an external link: {}", dataset.filename());
            return Err(invalid(self.path, problem));
        }
        Ok(dataset)
    }

    fn labels(
        &self,
        dataset: &hdf5::Dataset,
        images: usize,
        limit: UnpackLimit,
    ) -> std::result::Result<Vec<usize>, String> {
        match value_type(dataset)? {
            TypeDescriptor::Integer(_) | TypeDescriptor::Unsigned(_) => {}
            other => return Err(wrong_label_type(&other.to_string())),
        }
        check_label_shape(&dataset.get_shape().map_err(text)?, images)?;
        self.check_storage(dataset, limit)?;
        // HDF5 turns larger unsigned numbers into the largest signed one, which is refused too.
        let values = dataset.read_raw::<i64>().map_err(text)?;
        check_labels(values.into_iter().map(i128::from))
    }

    /// Refuses what lies in other files, and shapes that the file's length cannot hold: memory is
    /// never taken because a header asks for it.
    fn check_storage(
        &self,
        dataset: &hdf5::Dataset,
        unpack_limit: UnpackLimit,
    ) -> std::result::Result<Layout, String> {
        let stored = dataset.create_plist().map_err(text)?;
        let limit = match stored.layout() {
            Layout::Contiguous | Layout::Compact => self.length,
            Layout::Chunked => self.length.saturating_mul(LARGEST_EXPANSION),
            _ => return Err("a virtual dataset, expected one that holds its values".into()),
        };
        if !stored.external().is_empty() {
            return Err("its values lie in another file".into());
        }
        let value_size = dataset.dtype().map_err(text)?.size();
        for axes in [Some(dataset.get_shape().map_err(text)?), stored.chunk()].into_iter().flatten() {
            let bytes = axes.iter().try_fold(value_size, |product, &size| product.checked_mul(size));
            if bytes.is_none_or(|bytes| bytes as u64 > limit) {
                return Err(format!("shape {axes:?} does not fit into a file of {} bytes", self.length));
            }
        }
        // HDF5 1.10 trusts the shape and reads beyond what there is.
        let (expected, got) = ((dataset.size() * value_size) as u64, dataset.storage_size());
        if stored.layout() != Layout::Chunked && expected != got {
            return Err(format!("expected {expected} bytes for shape {:?}, got {got}", dataset.shape()));
        }
        let chunk =
            stored.chunk().unwrap_or_default().iter().fold(value_size, |product, size| product * size);
        unpack_limit.check("a chunk", chunk as u64)?;
        Ok(stored.layout())
    }

    /// The datasets of the file, for messages: not all of them if there are many.
    fn contents(&self) -> String {
        const LISTED: usize = 20;
        const SEARCHED_GROUPS: usize = 50;
        let mut listed = Vec::new();
        // Groups may contain each other, so their number is what ends the search.
        let mut groups = VecDeque::from([String::new()]);
        for _group in 0..SEARCHED_GROUPS {
            let Some(group) = groups.pop_front() else { break };
            let location = if group.is_empty() { "/" } else { &group };
            let names = self.file.group(location).and_then(|group| group.member_names());
            for name in names.unwrap_or_default() {
                let path = if group.is_empty() { name } else { format!("{group}/{name}") };
                if self.has(&path) {
                    listed.push(self.describe(&path));
                } else if self.is(LocationType::Group, &path) && groups.len() < SEARCHED_GROUPS {
                    groups.push_back(path);
                }
                if listed.len() == LISTED {
                    listed.push("...".into());
                    return listed.join(", ");
                }
            }
        }
        if listed.is_empty() { "no datasets".into() } else { listed.join(", ") }
    }

    fn describe(&self, name: &str) -> String {
        let Ok(dataset) = self.file.dataset(name) else { return name.into() };
        let kind = value_type(&dataset).map_or_else(|problem| problem, |kind| kind.to_string());
        format!("{name} {:?} {kind}", dataset.shape())
    }
}

#[cfg(test)]
mod tests {
    use super::super::array_fixtures::fixture;
    use super::*;

    #[test]
    fn a_chunk_that_is_too_large_to_be_kept_is_unpacked_once_for_an_examination() {
        assert_eq!(unpacked_together(LARGEST_CACHE + 1, &[4096, 256, 256, 3]), 4096);
        assert_eq!(unpacked_together(LARGEST_CACHE, &[4096, 256, 256, 3]), 1);
        assert_eq!(unpacked_together(usize::MAX, &[]), 1);
    }

    #[test]
    fn an_examination_keeps_the_limit() {
        let options = ReadOptions { unpack_limit: Some(8), ..Default::default() };
        let mut signs = 0;
        let path = fixture("hdf5/together.h5");
        let refused = read_all(&path, &options, &mut || {
            signs += 1;
            Ok(())
        })
        .unwrap_err()
        .to_string();
        assert!(
            refused.contains("a chunk asks for 9 MB of memory, more than the limit of 8 MB"),
            "{refused}"
        );
        assert_eq!(signs, 1, "before anything is unpacked");
    }
}
