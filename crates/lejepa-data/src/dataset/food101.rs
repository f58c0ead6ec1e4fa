//! Food-101: `images/<class>/<id>.jpg`, `meta/{train,test}.txt` with lines such as
//! `apple_pie/1005649`, and the class names in `meta/classes.txt`.

use std::path::{Path, PathBuf};

use super::classes::Classes;
use super::{ImageFile, ImageFiles, Split, layout_root, split_file};
use crate::{Error, Result};

pub(super) fn is_at(path: &Path) -> bool {
    find_root(path).is_some()
}

fn find_root(path: &Path) -> Option<PathBuf> {
    let root = layout_root::find(path, &["food-101"], &["meta/train.txt", "meta/test.txt"])?;
    root.join("images").is_dir().then_some(root)
}

pub(super) fn open(path: &Path, split: Split) -> Result<ImageFiles> {
    let root = find_root(path).unwrap_or_else(|| path.into());
    let (list, other) = match split {
        Split::Train => ("meta/train.txt", "meta/test.txt"),
        Split::Test => ("meta/test.txt", "meta/train.txt"),
        Split::Validation | Split::Unlabelled => {
            return Err(Error::NoSplit { split: split.name(), path: root });
        }
    };
    let class_file = root.join("meta/classes.txt");
    let classes = if class_file.is_file() {
        Classes::read(class_file, split)?
    } else {
        let class = |line: &str| split_file::class_of(line).map(String::from);
        let mut names = split_file::read(root.join(list), split, class)?;
        if root.join(other).is_file() {
            names.extend(split_file::read(root.join(other), split, class)?);
        }
        Classes::sorted(names.iter().map(String::as_str))
    };
    let files = split_file::read(root.join(list), split, |line| {
        let class = split_file::class_of(line)?;
        let label = classes.label(class).ok_or_else(|| format!("unknown class `{class}`"))?;
        let path = split_file::image_path("images", &format!("{line}.jpg"))?;
        Ok(ImageFile { path, label: Some(label) })
    })?;
    ImageFiles::new(&root, split, files, classes.into_names())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::{Format, fixture};

    #[test]
    fn the_official_splits_are_read_as_torchvision_reads_them() {
        fixture::assert_as_torchvision("food101", "food-101", &[Split::Train, Split::Test]);
        assert_eq!(Format::recognise(&fixture::path("food101")), Some(Format::Food101));
        fixture::assert_no_split(&fixture::path("food101"), &[Split::Validation, Split::Unlabelled]);
    }

    #[test]
    fn without_their_file_the_classes_are_those_of_both_lists() {
        let root = fixture::copy("food101/food-101");
        std::fs::remove_file(root.path().join("meta/classes.txt")).unwrap();
        fixture::assert_read_as(&open(root.path(), Split::Train).unwrap(), "food101", "training");
        std::fs::remove_file(root.path().join("meta/test.txt")).unwrap();
        let train = open(root.path(), Split::Train).unwrap();
        assert_eq!(fixture::samples(&train), [(0, 85), (1, 90), (1, 95)]);
    }

    #[test]
    fn damaged_lists_are_named_with_the_cause() {
        let root = fixture::copy("food101/food-101");
        let list = root.path().join("meta/test.txt");
        for (line, problem) in [
            ("pizza/1", "line 1: unknown class `pizza`"),
            ("waffles", "line 1: expected `class/image`"),
            ("../waffles", "line 1: unknown class `..`"),
        ] {
            std::fs::write(&list, line).unwrap();
            let message = fixture::message(root.path(), Split::Test);
            assert!(message.contains(problem) && message.contains("test.txt"), "{message}");
        }
        std::fs::remove_file(list).unwrap();
        let message = fixture::message(root.path(), Split::Test);
        assert!(message.contains("the test split needs") && message.contains("meta/test.txt"), "{message}");
    }
}
