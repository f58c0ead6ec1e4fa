//! FGVC aircraft: `data/images/<number>.jpg`, the classes in `data/variants.txt` and
//! `data/images_variant_{train,val,test}.txt` with lines such as `1025794 707-320`.

use std::path::{Path, PathBuf};

use super::classes::Classes;
use super::{ImageFile, ImageFiles, Split, layout_root, split_file};
use crate::{Error, Result};

pub(super) fn is_at(path: &Path) -> bool {
    find_root(path).is_some()
}

fn find_root(path: &Path) -> Option<PathBuf> {
    let lists = ["images_variant_train.txt", "images_variant_val.txt", "images_variant_test.txt"];
    layout_root::find(path, &["data", "fgvc-aircraft-2013b/data"], &lists)
}

pub(super) fn open(path: &Path, split: Split) -> Result<ImageFiles> {
    let root = find_root(path).unwrap_or_else(|| path.into());
    let list = match split {
        Split::Train => "images_variant_train.txt",
        Split::Validation => "images_variant_val.txt",
        Split::Test => "images_variant_test.txt",
        Split::Unlabelled => return Err(Error::NoSplit { split: split.name(), path: root }),
    };
    let classes = Classes::read(root.join("variants.txt"), split)?;
    let files = split_file::read(root.join(list), split, |line| {
        // Names such as `Boeing 717` have spaces of their own.
        let parts = line.split_once(' ');
        let (image, class) = parts.ok_or_else(|| format!("expected `number variant`, got `{line}`"))?;
        let label = classes.label(class).ok_or_else(|| format!("unknown class `{class}`"))?;
        let path = split_file::image_path("images", &format!("{image}.jpg"))?;
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
        let all = [Split::Train, Split::Validation, Split::Test];
        fixture::assert_as_torchvision("aircraft", "fgvc-aircraft-2013b", &all);
        fixture::assert_as_torchvision("aircraft", "fgvc-aircraft-2013b/data", &all);
        assert_eq!(Format::recognise(&fixture::path("aircraft")), Some(Format::Aircraft));
        fixture::assert_no_split(&fixture::path("aircraft"), &[Split::Unlabelled]);
    }

    #[test]
    fn damaged_lists_are_named_with_the_cause() {
        let root = fixture::copy("aircraft/fgvc-aircraft-2013b");
        let list = root.path().join("data/images_variant_val.txt");
        for (line, problem) in [
            ("1340192", "line 1: expected `number variant`"),
            ("1340192 Boeing", "line 1: unknown class `Boeing`"),
            ("../1340192 Boeing 717", "line 1: expected the path of an image inside the set"),
        ] {
            std::fs::write(&list, line).unwrap();
            let message = fixture::message(root.path(), Split::Validation);
            assert!(message.contains(problem) && message.contains("images_variant_val.txt"), "{message}");
        }
        for missing in ["images_variant_val.txt", "variants.txt"] {
            std::fs::remove_file(root.path().join("data").join(missing)).unwrap();
            let message = fixture::message(root.path(), Split::Validation);
            assert!(message.contains("validation split needs") && message.contains(missing), "{message}");
        }
    }

    #[test]
    fn a_class_is_listed_once() {
        let root = fixture::copy("aircraft/fgvc-aircraft-2013b");
        std::fs::write(root.path().join("data/variants.txt"), "707-320\nF/A-18\n707-320\n").unwrap();
        let message = fixture::message(root.path(), Split::Test);
        assert!(message.contains("line 3: class `707-320` for the second time"), "{message}");
    }
}
