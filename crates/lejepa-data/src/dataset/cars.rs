//! Stanford cars, in the two forms in which they were handed out. `annotations` is an array of
//! structs, one per image, with its `class` counted from one.
//!
//! ```text
//! devkit/cars_meta.mat                                   class_names
//! devkit/cars_train_annos.mat, cars_train/<fname>        annotations
//! cars_test_annos_withlabels.mat, cars_test/<fname>      annotations; the file may lie in devkit/
//!
//! cars_annos.mat, car_ims/                               class_names, annotations with
//!                                                        relative_im_path, class and test
//! ```

use std::path::{Path, PathBuf};

use super::mat::{Array, MatFile};
use super::{ImageFile, ImageFiles, Split, classes, layout_root, split_file};
use crate::{Error, Result};

const CLASSES: &str = "devkit/cars_meta.mat";
const TRAIN: &str = "devkit/cars_train_annos.mat";
const TEST: [&str; 2] = ["cars_test_annos_withlabels.mat", "devkit/cars_test_annos_withlabels.mat"];
const SINGLE: &str = "cars_annos.mat";

pub(super) fn is_at(path: &Path) -> bool {
    find_root(path).is_some()
}

fn find_root(path: &Path) -> Option<PathBuf> {
    layout_root::find(path, &["stanford_cars"], &[TRAIN, CLASSES, TEST[0], TEST[1], SINGLE])
}

pub(super) fn open(path: &Path, split: Split) -> Result<ImageFiles> {
    let root = find_root(path).unwrap_or_else(|| path.into());
    if !matches!(split, Split::Train | Split::Test) {
        return Err(Error::NoSplit { split: split.name(), path: root });
    }
    let file = |name: &str| MatFile::open(&split_file::required(root.join(name), split)?);
    if !root.join("devkit").is_dir() && root.join(SINGLE).is_file() {
        return open_single(&root, split, &file(SINGLE)?);
    }
    let class_names = file(CLASSES)?.read("class_names", Array::texts)?;
    let (annotations, folder) = match split {
        Split::Train => (file(TRAIN)?, "cars_train"),
        _ => (file(TEST.into_iter().find(|name| root.join(name).is_file()).unwrap_or(TEST[0]))?, "cars_test"),
    };
    let files = annotations.read("annotations", |cars| {
        let names = cars.field("fname")?.texts()?;
        let classes = cars.field("class")?.whole_numbers()?;
        let image = |(name, class): (String, usize)| image(folder, &name, class, class_names.len());
        names.into_iter().zip(classes).map(image).collect()
    })?;
    ImageFiles::new(&root, split, files, class_names)
}

/// The older form: one file for both splits.
fn open_single(root: &Path, split: Split, file: &MatFile) -> Result<ImageFiles> {
    let class_names = file.read("class_names", Array::texts)?;
    let files = file.read("annotations", |cars| {
        let paths = cars.field("relative_im_path")?.texts()?;
        let classes = cars.field("class")?.whole_numbers()?;
        let is_test = cars.field("test")?.whole_numbers()?;
        paths
            .into_iter()
            .zip(classes)
            .zip(is_test)
            .filter(|(_image, is_test)| (*is_test == 1) == (split == Split::Test))
            .map(|((path, class), _is_test)| image("", &path, class, class_names.len()))
            .collect()
    })?;
    ImageFiles::new(root, split, files, class_names)
}

fn image(
    folder: &str,
    name: &str,
    class: usize,
    class_count: usize,
) -> std::result::Result<ImageFile, String> {
    let label = classes::from_one(class, class_count).map_err(|problem| format!("{name}: {problem}"))?;
    Ok(ImageFile { path: split_file::image_path(folder, name)?, label: Some(label) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::{Dataset, Format, fixture};

    #[test]
    fn the_official_splits_are_read_as_torchvision_reads_them() {
        fixture::assert_as_torchvision("cars", "stanford_cars", &[Split::Train, Split::Test]);
        assert_eq!(Format::recognise(&fixture::path("cars")), Some(Format::Cars));
        fixture::assert_no_split(&fixture::path("cars"), &[Split::Validation, Split::Unlabelled]);
    }

    #[test]
    fn the_labels_of_the_test_split_may_lie_in_the_devkit() {
        let root = fixture::copy("cars/stanford_cars");
        std::fs::rename(root.path().join(TEST[0]), root.path().join(TEST[1])).unwrap();
        fixture::assert_read_as(&open(root.path(), Split::Test).unwrap(), "cars", "test");
        std::fs::remove_file(root.path().join(TEST[1])).unwrap();
        let message = fixture::message(root.path(), Split::Test);
        assert!(message.contains("the test split needs") && message.contains(TEST[0]), "{message}");
    }

    #[test]
    fn the_older_form_keeps_both_splits_in_one_file() {
        let path = fixture::path("cars_single");
        assert_eq!(Format::recognise(&path), Some(Format::Cars));
        let (train, test) = (open(&path, Split::Train).unwrap(), open(&path, Split::Test).unwrap());
        assert_eq!(fixture::samples(&train), [(0, 210), (1, 220)]);
        assert_eq!(fixture::samples(&test), [(2, 215)]);
        assert_eq!(train.class_names()[2], "Ram C/V Cargo Van Minivan 2012");
        fixture::assert_no_split(&path, &[Split::Validation, Split::Unlabelled]);
    }

    #[test]
    fn damaged_annotations_are_named_with_the_cause() {
        let root = fixture::copy("cars_single");
        let file = root.path().join(SINGLE);
        let bytes = std::fs::read(&file).unwrap();
        for (split, from, to, problem) in [
            (Split::Train, &b"car_ims/000001.jpg"[..], &b"../secret/0001.jpg"[..], "inside the set"),
            (Split::Train, b"relative_im_path", b"relative_no_path", "no field `relative_im_path`"),
            (Split::Train, b"class_names", b"other_names", "variable `class_names`: it is not there"),
            // A small element of one byte: the class of the second image.
            (Split::Test, b"\x02\0\x01\0\x03", b"\x02\0\x01\0\x04", "000002.jpg: class 4 is not 1 to 3"),
        ] {
            let at = bytes.windows(from.len()).position(|window| window == from).unwrap();
            let mut damaged = bytes.clone();
            damaged[at..at + to.len()].copy_from_slice(to);
            std::fs::write(&file, damaged).unwrap();
            let message = fixture::message(root.path(), split);
            assert!(message.contains(problem) && message.contains(SINGLE), "{message}");
        }
    }
}
