//! `.npy` files of numpy: images in one, labels in another beside it.
//!
//! A folder may hold `images.npy` and `labels.npy`, or splits as `train_images.npy` (`val_`, `test_`)
//! or `x_train.npy` with `y_train.npy`. A file on its own is a training split; its labels are looked
//! for under names made from its own: `labels` for `images`, `y` for `x`, or `NAME_labels.npy`.

use std::path::{Path, PathBuf};

use super::image_array::FoundArray;
use super::npy_array::NpyArray;
use super::npy_header::MAGIC;
use super::{ImageArray, Split, mapped_file};
use crate::{Error, Result, regular_file};

/// Opens `.npy` files.
#[derive(Debug)]
pub(super) struct Npy;

impl Npy {
    /// Whether the path is a `.npy` file, whatever its name, or a folder with known names.
    pub(super) fn is_at(path: &Path) -> bool {
        if path.is_dir() {
            return Split::ALL.iter().any(|&split| find_images(path, split).is_some());
        }
        begins_with(path, MAGIC)
    }

    /// Maps the images of a split and reads its labels.
    pub(super) fn open(path: &Path, split: Split) -> Result<ImageArray> {
        let no_split = || Error::NoSplit { split: split.name(), path: path.into() };
        let (images, labels) = if path.is_dir() {
            find_images(path, split).ok_or_else(no_split)?
        } else if split == Split::Train {
            (path.to_path_buf(), labels_beside(path))
        } else {
            return Err(no_split());
        };
        let (shape, source) = read(&images)?.images().map_err(|problem| invalid(&images, problem))?;
        let labels = match labels {
            Some(path) => Some(read(&path)?.labels(shape.count).map_err(|problem| invalid(&path, problem))?),
            None => None,
        };
        FoundArray {
            path: images,
            name: String::new(),
            shape,
            source,
            labels,
            labels_name: None,
            notes: Vec::new(),
        }
        .whole()
    }
}

/// The names that people give to images and their labels.
pub(super) fn array_names(split: Split) -> &'static [(&'static str, &'static str)] {
    match split {
        Split::Train => &[
            ("train_images", "train_labels"),
            ("x_train", "y_train"),
            ("images", "labels"),
            ("x", "y"),
            ("arr_0", "arr_1"),
        ],
        Split::Validation => &[("val_images", "val_labels"), ("x_val", "y_val")],
        Split::Test => &[("test_images", "test_labels"), ("x_test", "y_test")],
        Split::Unlabelled => &[],
    }
}

/// Whether a file begins with these bytes.
pub(super) fn begins_with(path: &Path, magic: &[u8]) -> bool {
    use std::io::Read;
    let mut bytes = vec![0; magic.len()];
    regular_file::open(path).and_then(|mut file| file.read_exact(&mut bytes)).is_ok() && bytes == magic
}

fn find_images(folder: &Path, split: Split) -> Option<(PathBuf, Option<PathBuf>)> {
    let file = |name| Some(folder.join(format!("{name}.npy"))).filter(|path| path.is_file());
    array_names(split).iter().find_map(|&(images, labels)| Some((file(images)?, file(labels))))
}

fn labels_beside(images: &Path) -> Option<PathBuf> {
    let stem = images.file_stem()?.to_str()?;
    let known = Split::ALL.iter().flat_map(|&split| array_names(split));
    let known = known.filter(|(images, _labels)| *images == stem).map(|(_images, labels)| labels.to_string());
    known
        .chain([format!("{stem}_labels"), format!("{stem}-labels")])
        .map(|name| images.with_file_name(format!("{name}.npy")))
        .find(|path| path.is_file())
}

fn read(path: &Path) -> Result<NpyArray> {
    NpyArray::new(mapped_file::map(path)?).map_err(|problem| invalid(path, problem))
}

fn invalid(path: &Path, problem: String) -> Error {
    Error::Invalid { format: "npy", path: path.into(), problem }
}

#[cfg(test)]
mod tests {
    use super::super::array_fixtures::{assert_holds, fixture, names, problem_with, written};
    use super::*;
    use crate::Dataset;

    fn open(name: &str, split: Split) -> Box<dyn Dataset> {
        crate::open(&fixture(name), split).unwrap()
    }

    #[test]
    fn a_folder_of_arrays_has_the_splits_that_its_names_say() {
        assert_holds(&*open("npy/pair", Split::Train), 0, 3, &[0, 2, 1, 2, 0]);
        assert_holds(&*open("npy/splits", Split::Train), 0, 1, &[0, 2, 1, 2, 0]);
        assert_holds(&*open("npy/splits", Split::Test), 7, 1, &[1, 1, 2]);
        assert_holds(&*open("npy/keras", Split::Train), 0, 3, &[0, 2]);
        assert_holds(&*open("npy/keras", Split::Test), 2, 3, &[1, 2]);
        let validation = open("npy/splits", Split::Validation);
        assert_eq!((validation.len(), validation.label(0), validation.class_names().len()), (2, None, 0));
        assert_eq!(open("npy/pair", Split::Train).class_names(), ["0", "1", "2"]);
    }

    #[test]
    fn a_single_file_finds_labels_beside_it() {
        for name in ["npy/single/planar.npy", "npy/pair/images.npy"] {
            assert_holds(&*open(name, Split::Train), 0, 3, &[0, 2, 1, 2, 0]);
        }
        let alone = open("npy/keras/x_test.npy", Split::Train);
        assert_holds(&*alone, 2, 3, &[0, 1]);
        assert_eq!(alone.class_names(), ["1", "2"], "the numbers that occur in it");
        assert!(open("npy/pair/images.npy", Split::Train).name(3).ends_with("images.npy image 3"));
        let unlabelled = open("npy/single/version2.npy", Split::Train);
        assert_eq!((unlabelled.len(), unlabelled.label(0)), (5, None));
    }

    #[test]
    fn versions_of_the_format_hold_the_same_images() {
        let [second, third] = [2, 3].map(|version| {
            let dataset = open(&format!("npy/single/version{version}.npy"), Split::Train);
            dataset.image(4).unwrap()
        });
        assert_eq!(second, third);
        assert_eq!(second, open("npy/pair", Split::Train).image(4).unwrap());
    }

    #[test]
    fn splits_that_are_not_there_are_named() {
        for (name, split, word) in [
            ("npy/pair", Split::Test, "no test split"),
            ("npy/pair/images.npy", Split::Test, "no test split"),
            ("npy/keras", Split::Validation, "no validation split"),
            ("npy/splits", Split::Unlabelled, "no unlabelled split"),
        ] {
            let message = crate::open(&fixture(name), split).err().unwrap().to_string();
            assert!(message.contains(word), "{message}");
        }
    }

    #[test]
    fn arrays_that_are_no_images_are_named_with_the_cause() {
        for (name, cause) in [
            ("fortran", "Fortran order"),
            ("float", "images are float32, expected uint8"),
            ("object", "images are Python objects"),
            ("records", "records"),
            ("flat", "expected images of shape"),
        ] {
            let message = problem_with(&fixture(&format!("npy/refused/{name}.npy")), names(None, None));
            assert!(message.contains(cause) && message.contains(name), "{message}");
        }
        let message = problem_with(&fixture("npy/pair"), names(Some("images"), None));
        assert!(message.contains("`data.options.images` must be absent for the format npy"), "{message}");
    }

    #[test]
    fn damaged_files_are_errors() {
        let whole = std::fs::read(fixture("npy/pair/images.npy")).unwrap();
        for length in (6..whole.len()).step_by(11) {
            let (_folder, path) = written("images.npy", &whole[..length]);
            assert!(crate::open(&path, Split::Train).is_err(), "{length}");
        }
        let (_folder, path) = written("images.npy", &[&whole[..], &[0]].concat());
        let message = problem_with(&path, names(None, None));
        assert!(message.contains("expected 360 bytes") && message.contains("got more"), "{message}");
        for bytes in [&b""[..], b"\x93NUMP", b"no array"] {
            let (_folder, path) = written("images.npy", bytes);
            assert!(Npy::open(&path, Split::Train).unwrap_err().to_string().contains("does not begin"));
        }
    }

    #[test]
    fn labels_that_do_not_fit_are_errors() {
        let images = std::fs::read(fixture("npy/pair/images.npy")).unwrap();
        let problem = |labels: PathBuf, change: fn(&mut Vec<u8>)| {
            let (folder, path) = written("images.npy", &images);
            let mut labels = std::fs::read(labels).unwrap();
            change(&mut labels);
            std::fs::write(folder.path().join("labels.npy"), labels).unwrap();
            problem_with(&path, names(None, None))
        };
        let labels = || fixture("npy/pair/labels.npy");
        assert!(problem(labels(), |bytes| bytes.truncate(160)).contains("expected 40 bytes"));
        assert!(problem(labels(), |bytes| bytes[128] = 0xff).contains("got -"), "negative");
        assert!(problem(labels(), |bytes| bytes[130] = 1).contains("labels from 0 to 1000000"));
        assert!(problem(fixture("npy/splits/test_labels.npy"), |_| ()).contains("3 labels for 5 images"));
        assert!(problem(fixture("npy/refused/float.npy"), |_| ()).contains("labels are float32"));
        assert!(problem(fixture("npy/refused/flat.npy"), |_| ()).contains("one label for each"));
        assert!(problem(fixture("npy/refused/object.npy"), |_| ()).contains("labels are Python objects"));
    }
}
