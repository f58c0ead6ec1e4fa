//! Oxford flowers: `jpg/image_00001.jpg`, the splits as image numbers in `setid.mat` and the class of
//! every image in `imagelabels.mat`, both counted from one.

use std::path::{Path, PathBuf};

use super::mat::{Array, MatFile};
use super::{ImageFile, ImageFiles, Split, classes, layout_root, split_file};
use crate::{Error, Result};

/// The names that torchvision gives; the set itself has numbers.
const CLASS_NAMES: &str = include_str!("flowers102_classes.txt");

pub(super) fn is_at(path: &Path) -> bool {
    find_root(path).is_some()
}

fn find_root(path: &Path) -> Option<PathBuf> {
    layout_root::find(path, &["flowers-102"], &["setid.mat", "imagelabels.mat"])
}

pub(super) fn open(path: &Path, split: Split) -> Result<ImageFiles> {
    let root = find_root(path).unwrap_or_else(|| path.into());
    let variable = match split {
        Split::Train => "trnid",
        Split::Validation => "valid",
        Split::Test => "tstid",
        Split::Unlabelled => return Err(Error::NoSplit { split: split.name(), path: root }),
    };
    let class_names: Vec<String> = CLASS_NAMES.lines().map(String::from).collect();
    let sets = MatFile::open(&split_file::required(root.join("setid.mat"), split)?)?;
    let labels_file = MatFile::open(&split_file::required(root.join("imagelabels.mat"), split)?)?;
    let labels = labels_file.read("labels", Array::whole_numbers)?;
    let mut files = Vec::new();
    for image in sets.read(variable, Array::whole_numbers)? {
        let class = image.checked_sub(1).and_then(|index| labels.get(index)).copied();
        let class =
            class.ok_or_else(|| sets.invalid(format!("image {image} is not 1 to {}", labels.len())))?;
        let label = classes::from_one(class, class_names.len())
            .map_err(|problem| labels_file.invalid(format!("image {image}: {problem}")))?;
        files.push(ImageFile { path: format!("jpg/image_{image:05}.jpg").into(), label: Some(label) });
    }
    ImageFiles::new(&root, split, files, class_names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::{Dataset, Format, fixture};

    #[test]
    fn the_official_splits_are_read_as_torchvision_reads_them() {
        let all = [Split::Train, Split::Validation, Split::Test];
        fixture::assert_as_torchvision("flowers102", "flowers-102", &all);
        assert_eq!(Format::recognise(&fixture::path("flowers102")), Some(Format::Flowers102));
        fixture::assert_no_split(&fixture::path("flowers102"), &[Split::Unlabelled]);
    }

    #[test]
    fn listed_images_that_are_not_there_are_left_out_and_counted() {
        let root = fixture::copy("flowers102/flowers-102");
        std::fs::remove_file(root.path().join("jpg/image_00005.jpg")).unwrap();
        let test = open(root.path(), Split::Test).unwrap();
        assert_eq!(fixture::samples(&test), [(49, 80), (2, 75)]);
        assert!(test.notes()[0].starts_with("1 of 3 listed test images are not there"), "{:?}", test.notes());
    }

    #[test]
    fn a_missing_file_is_named_with_the_split() {
        for file in ["setid.mat", "imagelabels.mat"] {
            let root = fixture::copy("flowers102/flowers-102");
            std::fs::remove_file(root.path().join(file)).unwrap();
            let message = fixture::message(root.path(), Split::Test);
            assert!(message.contains("the test split needs") && message.contains(file), "{message}");
        }
    }

    #[test]
    fn numbers_that_are_no_image_or_class_are_refused() {
        let root = fixture::copy("flowers102/flowers-102");
        let (sets, labels) = (root.path().join("setid.mat"), root.path().join("imagelabels.mat"));
        replace_in_unpacked(&labels, &[77, 1, 102], &[77, 1, 103]);
        let message = fixture::message(root.path(), Split::Train);
        assert!(message.contains("image 3: class 103 is not 1 to 102"), "{message}");
        replace_in_unpacked(&labels, &[77, 1, 103], &[0, 1, 102]);
        let message = fixture::message(root.path(), Split::Train);
        assert!(message.contains("image 1: class 0 is not 1 to 102"), "{message}");
        replace_in_unpacked(&sets, &[3, 0, 1, 0], &[3, 0, 8, 0]);
        let message = fixture::message(root.path(), Split::Train);
        assert!(message.contains("image 8 is not 1 to 7") && message.contains("setid.mat"), "{message}");
    }

    /// Unpacks the first variable of a file and replaces bytes in it.
    fn replace_in_unpacked(path: &Path, from: &[u8], to: &[u8]) {
        let mut bytes = std::fs::read(path).unwrap();
        if bytes[128] == 15 {
            let mut unpacked = bytes[..128].to_vec();
            std::io::Read::read_to_end(&mut flate2::read::ZlibDecoder::new(&bytes[136..]), &mut unpacked)
                .unwrap();
            bytes = unpacked;
        }
        let at = bytes[128..].windows(from.len()).position(|window| window == from).unwrap() + 128;
        bytes[at..at + to.len()].copy_from_slice(to);
        std::fs::write(path, bytes).unwrap();
    }
}
