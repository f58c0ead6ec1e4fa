//! Describable textures (DTD): `images/<class>/<name>.jpg` and ten official ways to split them,
//! `labels/{train,val,test}<fold>.txt` with lines such as `banded/banded_0002.jpg`.

use std::path::{Path, PathBuf};

use super::classes::Classes;
use super::{ImageFile, ImageFiles, ReadOptions, Split, layout_root, split_file};
use crate::{Error, Result};

const FOLDS: std::ops::RangeInclusive<usize> = 1..=10;
const LISTS: [&str; 3] = ["train", "val", "test"];

pub(super) fn is_at(path: &Path) -> bool {
    find_root(path).is_some()
}

fn find_root(path: &Path) -> Option<PathBuf> {
    let lists: Vec<String> =
        FOLDS.flat_map(|fold| LISTS.map(|list| format!("labels/{list}{fold}.txt"))).collect();
    layout_root::find(path, &["dtd", "dtd/dtd"], &lists)
}

pub(super) fn open(path: &Path, split: Split, options: &ReadOptions) -> Result<ImageFiles> {
    let root = find_root(path).unwrap_or_else(|| path.into());
    let fold = options.fold.unwrap_or(1);
    if !FOLDS.contains(&fold) {
        return Err(Error::Setting {
            field: "data.options.fold",
            expected: "1 to 10".into(),
            got: fold.to_string(),
        });
    }
    let list = match split {
        Split::Train => "train",
        Split::Validation => "val",
        Split::Test => "test",
        Split::Unlabelled => return Err(Error::NoSplit { split: split.name(), path: root }),
    };
    let file = |list: &str| root.join(format!("labels/{list}{fold}.txt"));
    let listed = split_file::read(file(list), split, parse)?;
    // A class that only one split has must not shift the numbers of the others.
    let mut everywhere = listed.clone();
    for other in LISTS.into_iter().filter(|&other| other != list && file(other).is_file()) {
        everywhere.extend(split_file::read(file(other), split, parse)?);
    }
    let classes = Classes::sorted(everywhere.iter().map(|(class, _path)| class.as_str()));
    let files =
        listed.into_iter().map(|(class, path)| ImageFile { path, label: classes.label(&class) }).collect();
    ImageFiles::new(&root, split, files, classes.into_names())
}

/// The class and the path of an image.
fn parse(line: &str) -> std::result::Result<(String, PathBuf), String> {
    Ok((split_file::class_of(line)?.into(), split_file::image_path("images", line)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::{Format, fixture};

    const ALL: [Split; 3] = [Split::Train, Split::Validation, Split::Test];

    fn fold(number: usize) -> ReadOptions {
        ReadOptions { fold: Some(number), ..Default::default() }
    }

    #[test]
    fn the_official_splits_are_read_as_torchvision_reads_them() {
        fixture::assert_as_torchvision("dtd", "dtd/dtd", &ALL);
        fixture::assert_as_torchvision("dtd", "dtd", &ALL);
        assert_eq!(Format::recognise(&fixture::path("dtd")), Some(Format::Dtd));
        fixture::assert_no_split(&fixture::path("dtd"), &[Split::Unlabelled]);
    }

    #[test]
    fn a_fold_is_one_of_ten() {
        let path = fixture::path("dtd");
        fixture::assert_read_as(&open(&path, Split::Train, &fold(2)).unwrap(), "dtd", "fold 2");
        for wrong in [0, 11] {
            let message = open(&path, Split::Train, &fold(wrong)).unwrap_err().to_string();
            assert_eq!(message, format!("`data.options.fold` must be 1 to 10, got: {wrong}"));
        }
        let message = open(&path, Split::Validation, &fold(3)).unwrap_err().to_string();
        assert!(message.contains("validation split") && message.contains("labels/val3.txt"), "{message}");
    }

    #[test]
    fn a_class_that_only_one_split_has_does_not_shift_the_others() {
        let root = fixture::copy("dtd/dtd/dtd");
        std::fs::write(root.path().join("labels/train1.txt"), "zigzagged/zigzagged_0002.jpg\n").unwrap();
        assert_eq!(crate::open(root.path(), Split::Train).unwrap().label(0), Some(2));
        std::fs::remove_file(root.path().join("labels/val1.txt")).unwrap();
        assert_eq!(crate::open(root.path(), Split::Train).unwrap().label(0), Some(2));
        let message = fixture::message(root.path(), Split::Validation);
        assert!(message.contains("validation split") && message.contains("val1.txt"), "{message}");
    }

    #[test]
    fn lines_that_name_no_image_of_the_set_are_refused() {
        let root = fixture::copy("dtd/dtd/dtd");
        for line in ["banded_0002.jpg", "../secret.jpg", "a/b/c.jpg", "/banded.jpg"] {
            let content = format!("banded/banded_0002.jpg\n{line}\n");
            std::fs::write(root.path().join("labels/train1.txt"), content).unwrap();
            let message = fixture::message(root.path(), Split::Train);
            assert!(message.contains("line 2: expected") && message.contains("train1.txt"), "{message}");
        }
    }
}
