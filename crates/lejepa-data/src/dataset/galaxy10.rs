//! Galaxy10, pictures of galaxies in ten classes: HDF5 files with `images` and `ans`.
//!
//! There is no official split. Here it is drawn once and for all: the images are permuted with a fixed
//! seed, and the first 11,008 of the 17,736 images of Galaxy10 DECaLS are the training split, the
//! others the test split. Files with another number of images are divided in the same proportion. Both
//! splits keep the order of the file.

use std::path::Path;

use rand::seq::SliceRandom;

use super::hdf5::{holds, read};
use super::{Hdf5, ImageArray, ReadOptions, Split};
use crate::{Error, Purpose, Result, generator};

/// Opens Galaxy10.
#[derive(Debug)]
pub(super) struct Galaxy10;

const SPLIT_SEED: u64 = 10;
const DECALS_IMAGES: u128 = 17_736;
const DECALS_TRAINING_IMAGES: u128 = 11_008;

const DECALS_SIZE: usize = 256;
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

const SDSS_SIZE: usize = 69;
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
    /// Whether the path is an HDF5 file with Galaxy10's names.
    pub(super) fn is_at(path: &Path) -> bool {
        Hdf5::find(path).is_some_and(|file| holds(&file, &["images", "ans"]))
    }

    /// Opens a split. If the options name datasets, the file is read as any other HDF5 file.
    pub(super) fn open(path: &Path, split: Split, options: &ReadOptions) -> Result<ImageArray> {
        if !options.is_empty() {
            return Hdf5::open(path, split, options);
        }
        let path = Hdf5::file(path)?;
        let names =
            ReadOptions { images: Some("images".into()), labels: Some("ans".into()), ..Default::default() };
        let found = read(&path, &names)?;
        let rows = split_rows(found.shape.count, split).filter(|rows| !rows.is_empty());
        let rows = rows.ok_or(Error::NoSplit { split: split.name(), path })?;
        let class_names = class_names(found.shape.height, found.shape.width);
        found.part(rows, class_names)
    }
}

fn class_names(height: usize, width: usize) -> Vec<String> {
    match (height, width) {
        (DECALS_SIZE, DECALS_SIZE) => DECALS_CLASSES.map(Into::into).to_vec(),
        (SDSS_SIZE, SDSS_SIZE) => SDSS_CLASSES.map(Into::into).to_vec(),
        _ => (0..DECALS_CLASSES.len()).map(|class| class.to_string()).collect(),
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
    use super::super::array_fixtures::{fixture, names, open_with, written};
    use super::*;

    #[test]
    fn both_splits_come_from_one_file() {
        let splits = [Split::Train, Split::Test]
            .map(|split| crate::open(&fixture("galaxy10/small.h5"), split).unwrap());
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
        let message = crate::open(&fixture("galaxy10/small.h5"), Split::Validation).err().unwrap();
        assert!(message.to_string().contains("no validation split"), "{message}");
    }

    #[test]
    fn the_size_of_the_images_says_which_classes() {
        let third = |name: &str| {
            let dataset = crate::open(&fixture(name), Split::Train).unwrap();
            assert_eq!(dataset.class_names().len(), 10);
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
            let message = crate::open(&path, split).err().unwrap().to_string();
            assert!(message.contains("label 10 of") && message.contains("image 19"), "{message}");
        }
    }

    #[test]
    fn other_files_are_named_with_what_they_hold() {
        assert!(!Galaxy10::is_at(&fixture("hdf5/contiguous.h5")));
        let path = fixture("hdf5/contiguous.h5");
        let message = Galaxy10::open(&path, Split::Train, &ReadOptions::default()).unwrap_err().to_string();
        assert!(message.contains("no dataset ans, but: images [5, 4, 6, 3] uint8"), "{message}");
    }
}
