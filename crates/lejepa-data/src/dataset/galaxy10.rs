//! Galaxy10, pictures of galaxies in ten classes: HDF5 files with `images` and `ans`.
//!
//! Two sets go by that name, and anybody's file may have those two arrays, so a file is one of them only if
//! size and number of its images and its labels are: the others are read as any HDF5 file, and a note says so.
//! A recipe that names the format is believed, and a note says what differs.
//!
//! There is no official split. Here it is drawn once and for all: the images are permuted with a fixed
//! seed, and the first 11,008 of the 17,736 images of Galaxy10 DECaLS are the training split, the
//! others the test split. Files with another number of images are divided in the same proportion. Both
//! splits keep the order of the file.

use std::path::Path;

use rand::seq::SliceRandom;

use super::hdf5::read;
use super::image_array::FoundArray;
use super::{Hdf5, ImageArray, ReadOptions, Split};
use crate::{Error, Purpose, Result, generator};

/// Opens Galaxy10.
#[derive(Debug)]
pub(super) struct Galaxy10;

const SPLIT_SEED: u64 = 10;
const DECALS_IMAGES: u128 = 17_736;
const DECALS_TRAINING_IMAGES: u128 = 11_008;

/// One of the two sets.
#[derive(Debug, PartialEq)]
struct Edition {
    name: &'static str,
    size: usize,
    images: usize,
    /// Images of every class, where they are published.
    counts: Option<[usize; 10]>,
    classes: [&'static str; 10],
}

const EDITIONS: [Edition; 2] = [
    Edition {
        name: "Galaxy10 DECaLS",
        size: 256,
        images: 17_736,
        counts: Some([1081, 1853, 2645, 2027, 334, 2043, 1829, 2628, 1423, 1873]),
        classes: DECALS_CLASSES,
    },
    Edition { name: "Galaxy10 SDSS", size: 69, images: 21_785, counts: None, classes: SDSS_CLASSES },
];

const DECALS_CLASSES: [&str; 10] = [
    "Disturbed Galaxies",
    "Merging Galaxies",
    "Round Smooth Galaxies",
    "In-between Round Smooth Galaxies",
    "Cigar Shaped Smooth Galaxies",
    "Barred Spiral Galaxies",
    "Unbarred Tight Spiral Galaxies",
    "Unbarred Loose Spiral Galaxies",
    "Edge-on Galaxies without Bulge",
    "Edge-on Galaxies with Bulge",
];

const SDSS_CLASSES: [&str; 10] = [
    "Disk, Face-on, No Spiral",
    "Smooth, Completely round",
    "Smooth, in-between round",
    "Smooth, Cigar shaped",
    "Disk, Edge-on, Rounded Bulge",
    "Disk, Edge-on, Boxy Bulge",
    "Disk, Edge-on, No Bulge",
    "Disk, Face-on, Tight Spiral",
    "Disk, Face-on, Medium Spiral",
    "Disk, Face-on, Loose Spiral",
];

impl Galaxy10 {
    /// Whether the path is an HDF5 file that is one of the two sets.
    pub(super) fn is_at(path: &Path, options: &ReadOptions) -> bool {
        let found = Hdf5::find(path).and_then(|file| read(&file, &names(options)).ok());
        found.is_some_and(|found| Edition::exactly(&found).is_some())
    }

    /// Opens a split. If the options name datasets, the file is read as any other HDF5 file.
    pub(super) fn open(path: &Path, split: Split, options: &ReadOptions) -> Result<ImageArray> {
        if options.images.is_some() || options.labels.is_some() {
            return Hdf5::open(path, split, options);
        }
        let path = Hdf5::file(path)?;
        let mut found = read(&path, &names(options))?;
        let rows = split_rows(found.shape.count, split).filter(|rows| !rows.is_empty());
        let rows = rows.ok_or(Error::NoSplit { split: split.name(), path })?;
        if Edition::exactly(&found).is_none() {
            found.notes.push(difference(&found, "its split is drawn in the same proportion"));
        }
        let class_names = match EDITIONS.iter().find(|edition| edition.has_size(&found)) {
            Some(edition) => edition.classes.map(Into::into).to_vec(),
            None => (0..10).map(|class| class.to_string()).collect(),
        };
        found.part(rows, class_names)
    }

    /// What to say of an HDF5 file that has Galaxy10's names and is not Galaxy10.
    pub(super) fn note(found: &FoundArray) -> Option<String> {
        let named = found.name == NAMES[0] && found.labels_name.as_deref() == Some(NAMES[1]);
        let sized = EDITIONS.iter().any(|edition| edition.has_size(found));
        (named && sized && Edition::exactly(found).is_none())
            .then(|| difference(found, "classes are called by their numbers, and there is no test split"))
    }
}

const NAMES: [&str; 2] = ["images", "ans"];

/// The set's names, with all else as it was asked for.
fn names(options: &ReadOptions) -> ReadOptions {
    let [images, labels] = NAMES.map(|name| Some(name.into()));
    ReadOptions { images, labels, ..options.clone() }
}

fn difference(found: &FoundArray, consequence: &str) -> String {
    let sets =
        EDITIONS.map(|Edition { name, size, images, .. }| format!("{name} ({images} of {size}x{size})"));
    let super::image_array::ImageShape { count, height, width, .. } = found.shape;
    format!("{count} images of {height}x{width} are not those of {}: {consequence}", sets.join(" or "))
}

impl Edition {
    fn has_size(&self, found: &FoundArray) -> bool {
        (found.shape.height, found.shape.width, found.shape.channels) == (self.size, self.size, 3)
    }

    /// The set that a file is, down to its labels.
    fn exactly(found: &FoundArray) -> Option<&'static Self> {
        let mut counts = [0; 10];
        for &label in found.labels.as_ref()? {
            *counts.get_mut(label)? += 1;
        }
        EDITIONS.iter().find(|edition| {
            edition.has_size(found)
                && found.shape.count == edition.images
                && edition.counts.is_none_or(|expected| expected == counts)
        })
    }
}

/// The images of a split of `count`, in the order of the file.
fn split_rows(count: usize, split: Split) -> Option<Vec<usize>> {
    let mut order: Vec<usize> = (0..count).collect();
    order.shuffle(&mut generator(SPLIT_SEED, Purpose::Split, 0, 0));
    // Rounded to the nearest.
    let training = (count as u128 * DECALS_TRAINING_IMAGES * 2 + DECALS_IMAGES) / (DECALS_IMAGES * 2);
    let (training, test) = order.split_at(usize::try_from(training).ok()?);
    let mut rows = match split {
        Split::Train => training.to_vec(),
        Split::Test => test.to_vec(),
        Split::Validation | Split::Unlabelled => return None,
    };
    rows.sort_unstable();
    Some(rows)
}

#[cfg(test)]
mod split_tests {
    use super::*;

    #[test]
    fn the_split_of_decals_never_changes() {
        let training = split_rows(17_736, Split::Train).unwrap();
        let test = split_rows(17_736, Split::Test).unwrap();
        assert_eq!((training.len(), test.len()), (11_008, 6_728));
        let mut all = [training.clone(), test.clone()].concat();
        all.sort_unstable();
        assert!(all.into_iter().eq(0..17_736), "each image is in one split");
        assert_eq!(training[1000..1008], [1603, 1604, 1606, 1607, 1608, 1610, 1611, 1613]);
        assert_eq!(test[..8], [0, 10, 13, 14, 20, 21, 24, 28]);
        let bytes: Vec<u8> = training.iter().flat_map(|&row| (row as u32).to_le_bytes()).collect();
        assert_eq!(blake3::hash(&bytes).to_hex()[..16], *"dc83159a867a94f2");
    }

    #[test]
    fn other_numbers_of_images_are_divided_in_proportion() {
        for (count, training) in [(1, 1), (2, 1), (10, 6), (100, 62), (21_785, 13_521)] {
            let lengths = [Split::Train, Split::Test].map(|split| split_rows(count, split).unwrap().len());
            assert_eq!(lengths, [training, count - training]);
        }
        assert_eq!(split_rows(100, Split::Validation), None);
    }
}

#[cfg(test)]
#[cfg(feature = "hdf5")]
mod file_tests {
    use std::path::PathBuf;

    use super::super::array_fixtures::{fixture, names, open_with, written};
    use super::super::image_array::{ImageShape, ImageSource};
    use super::*;
    use crate::{Dataset, Format, SourceConfig, open_source};

    /// A recipe that names the format.
    fn open_named(path: PathBuf, split: Split) -> Result<Box<dyn Dataset>> {
        let source = SourceConfig { path, format: Some(Format::Galaxy10), ..Default::default() };
        open_source(&source, split)
    }

    #[derive(Debug)]
    struct NoPixels;

    impl ImageSource for NoPixels {
        fn read(&self, _row: usize) -> Result<Vec<u8>> {
            Ok(Vec::new())
        }
    }

    fn found(size: usize, labels: Vec<usize>) -> FoundArray {
        let shape = ImageShape::of(&[labels.len(), size, size, 3]).unwrap();
        let [name, labels_name] = NAMES.map(String::from);
        FoundArray {
            path: "galaxies.h5".into(),
            name,
            shape,
            source: Box::new(NoPixels),
            labels: Some(labels),
            labels_name: Some(labels_name),
            notes: Vec::new(),
        }
    }

    #[test]
    fn a_file_is_galaxy10_if_its_number_of_images_of_every_class_is() {
        let counts = EDITIONS[0].counts.unwrap();
        let labels: Vec<usize> = (0..10).flat_map(|class| vec![class; counts[class]]).collect();
        assert_eq!(labels.len(), EDITIONS[0].images);
        let whole = found(256, labels.clone());
        assert_eq!(Edition::exactly(&whole).map(|edition| edition.name), Some("Galaxy10 DECaLS"));
        assert_eq!(Galaxy10::note(&whole), None);
        assert_eq!(Edition::exactly(&found(255, labels.clone())), None);

        let mut other = labels.clone();
        other[0] = 1;
        for others in [other, labels[1..].to_vec(), vec![0, 1, 2], vec![11; 17_736]] {
            let (count, others) = (others.len(), found(256, others));
            assert_eq!(Edition::exactly(&others), None);
            let note = Galaxy10::note(&others).unwrap();
            assert!(
                note.starts_with(&format!("{count} images of 256x256 are not those of Galaxy10")),
                "{note}"
            );
        }
        let sloan = found(69, (0..21_785).map(|image| image % 10).collect());
        assert_eq!(Edition::exactly(&sloan).map(|edition| edition.name), Some("Galaxy10 SDSS"));
    }

    #[test]
    fn a_stranger_with_the_same_names_and_size_is_an_hdf5_file_with_a_note() {
        for (name, size) in [("galaxy10/decals.h5", "256x256"), ("galaxy10/sdss.h5", "69x69")] {
            assert_eq!(Format::recognise(&fixture(name)), Some(Format::Hdf5));
            let data = crate::open(&fixture(name), Split::Train).unwrap();
            assert!(data.class_names().iter().all(|name| name.parse::<usize>().is_ok()));
            assert!(
                data.notes()[0].contains(size) && data.notes()[0].contains("numbers"),
                "{:?}",
                data.notes()
            );
        }
        assert!(crate::open(&fixture("galaxy10/small.h5"), Split::Train).unwrap().notes().is_empty());
    }

    #[test]
    fn both_splits_come_from_one_file() {
        let splits =
            [Split::Train, Split::Test].map(|split| open_named(fixture("galaxy10/small.h5"), split).unwrap());
        assert_eq!(splits.each_ref().map(|split| split.len()), [12, 8]);
        let mut seen: Vec<u8> = Vec::new();
        for split in &splits {
            for index in 0..split.len() {
                let image = split.image(index).unwrap();
                let number = image.pixels()[0];
                assert_eq!((image.height(), image.width(), image.channels()), (5, 5, 3));
                assert_eq!(split.label(index), Some(usize::from(number) % 10));
                assert!(split.name(index).ends_with(&format!("small.h5 images image {number}")));
                seen.push(number);
            }
        }
        seen.sort_unstable();
        assert!(seen.into_iter().eq(0..20));
        let message = open_named(fixture("galaxy10/small.h5"), Split::Validation).err().unwrap();
        assert!(message.to_string().contains("no validation split"), "{message}");
    }

    #[test]
    fn the_size_of_the_images_says_which_classes() {
        let third = |name: &str| {
            let dataset = open_named(fixture(name), Split::Train).unwrap();
            assert_eq!(dataset.class_names().len(), 10);
            assert!(dataset.notes()[0].contains("same proportion"), "{:?}", dataset.notes());
            dataset.class_names()[3].clone()
        };
        assert_eq!(third("galaxy10/decals.h5"), "In-between Round Smooth Galaxies");
        assert_eq!(third("galaxy10/sdss.h5"), "Smooth, Cigar shaped");
        assert_eq!(third("galaxy10/small.h5"), "3");
    }

    #[test]
    fn named_datasets_are_read_as_any_hdf5_file() {
        let options = names(Some("images"), Some("ans"));
        assert_eq!(open_with(&fixture("galaxy10/small.h5"), options).unwrap().len(), 20);
        let labelled = open_with(&fixture("galaxy10/small.h5"), names(Some("images"), None)).unwrap();
        assert_eq!((labelled.len(), labelled.label(13)), (20, Some(3)));
    }

    #[test]
    fn an_eleventh_class_is_an_error() {
        let mut bytes = std::fs::read(fixture("galaxy10/small.h5")).unwrap();
        let labels: Vec<u8> = (0..20).map(|index| index % 10).collect();
        let place = bytes.windows(20).position(|bytes| bytes == labels).unwrap();
        bytes[place + 19] = 10;
        let (_folder, path) = written("small.h5", &bytes);
        for split in [Split::Train, Split::Test] {
            let message = open_named(path.clone(), split).err().unwrap().to_string();
            assert!(message.contains("label 10 of") && message.contains("image 19"), "{message}");
        }
    }

    #[test]
    fn other_files_are_named_with_what_they_hold() {
        assert!(!Galaxy10::is_at(&fixture("hdf5/contiguous.h5"), &ReadOptions::default()));
        let path = fixture("hdf5/contiguous.h5");
        let message = Galaxy10::open(&path, Split::Train, &ReadOptions::default()).unwrap_err().to_string();
        assert!(message.contains("no dataset ans, but: images [5, 4, 6, 3] uint8"), "{message}");
    }

    #[test]
    fn the_limit_of_unpacking_holds_for_it_too() {
        let options = ReadOptions { unpack_limit: Some(8), ..Default::default() };
        assert_eq!(super::names(&options).unpack_limit, Some(8));
        let path = fixture("hdf5/together.h5");
        let message = Galaxy10::open(&path, Split::Train, &options).unwrap_err().to_string();
        assert!(
            message.contains("a chunk asks for 9 MB of memory, more than the limit of 8 MB"),
            "{message}"
        );
    }
}
