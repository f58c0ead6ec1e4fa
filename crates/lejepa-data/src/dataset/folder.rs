//! Folders of images: `class/image.png`, or images side by side without labels; with splits as
//! `train/` and `test/` (or `val/`, `valid/`) above the classes. A test folder without classes, as ImageNet's,
//! is no test split of labelled data.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use walkdir::WalkDir;

use super::{ImageFile, ImageFiles, Split};
use crate::{Error, Result};

/// Opens image files in a folder.
#[derive(Debug)]
pub(super) struct ImageFolder;

const ENDINGS: [&str; 8] = ["jpg", "jpeg", "png", "webp", "bmp", "tif", "tiff", "gif"];
const VALIDATION_FOLDERS: [&str; 3] = ["val", "valid", "validation"];

impl ImageFolder {
    /// Lists the images of a split. A folder without split folders is a training split; one with a
    /// validation folder only has that as its test split too.
    pub(super) fn open(root: &Path, split: Split) -> Result<ImageFiles> {
        let train = first_existing(root, &["train"]);
        let validation = first_existing(root, &VALIDATION_FOLDERS);
        let mut test = first_existing(root, &["test"]);
        let mut notes = Vec::new();
        if let (Some(folder), Some(instead)) = (&test, &validation)
            && class_folders(folder)?.is_empty()
            && !class_folders(instead)?.is_empty()
        {
            if split == Split::Test {
                let [folder, instead] = [folder, instead].map(|path| path.display());
                notes.push(format!("{folder} has no folders of classes: the test split is {instead}"));
            }
            test = None;
        }
        let unlabelled = first_existing(root, &["unlabelled", "unlabeled"]);
        let folder = match split {
            Split::Train => train.clone().or_else(|| Some(root.to_path_buf())),
            Split::Validation => test.as_ref().and(validation.clone()),
            Split::Test => test.clone().or_else(|| validation.clone()),
            Split::Unlabelled => unlabelled.clone(),
        };
        let folder = folder.ok_or_else(|| Error::NoSplit { split: split.name(), path: root.into() })?;
        // A class that only one split has must not shift the numbers of the others.
        let mut class_names = BTreeSet::new();
        if split != Split::Unlabelled {
            for labelled in [Some(&folder), train.as_ref(), validation.as_ref(), test.as_ref()] {
                class_names
                    .extend(labelled.map(|folder| class_folders(folder)).transpose()?.unwrap_or_default());
            }
        }
        let class_names: Vec<String> = class_names.into_iter().collect();

        let mut files = Vec::new();
        let visible = |entry: &walkdir::DirEntry| entry.depth() == 0 || !is_hidden_folder(entry.path());
        for entry in
            WalkDir::new(&folder).follow_links(true).sort_by_file_name().into_iter().filter_entry(visible)
        {
            let entry = entry.map_err(|error| {
                let path = error.path().unwrap_or(&folder).to_path_buf();
                Error::Io { action: "list", path, source: error.into() }
            })?;
            if !entry.file_type().is_file() || !is_image(entry.path()) {
                continue;
            }
            let relative = entry.path().strip_prefix(&folder).unwrap_or(entry.path());
            let label = class_of(relative).and_then(|class| class_names.binary_search(&class).ok());
            files.push(ImageFile { path: relative.to_path_buf(), label });
        }
        if files.is_empty() {
            return Err(Error::NoImages { path: folder });
        }
        Ok(ImageFiles::new(&folder, split, files, class_names)?.with_notes(notes))
    }
}

fn first_existing(root: &Path, names: &[&str]) -> Option<PathBuf> {
    names.iter().map(|name| root.join(name)).find(|path| path.is_dir())
}

/// The folders directly below, which name classes if they hold images.
fn class_folders(folder: &Path) -> Result<Vec<String>> {
    let failed = |source| Error::Io { action: "list", path: folder.into(), source };
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        if entry.path().is_dir() && !is_hidden_folder(&entry.path()) && holds_images(&entry.path()) {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    Ok(names)
}

/// Such as `.ipynb_checkpoints`: nobody's images.
fn is_hidden_folder(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b".")) && path.is_dir()
}

/// Whether there is an image anywhere in a folder.
fn holds_images(folder: &Path) -> bool {
    let mut entries = WalkDir::new(folder).follow_links(true).into_iter().flatten();
    entries.any(|entry| entry.file_type().is_file() && is_image(entry.path()))
}

/// The first folder of a path below the split; none for an image directly in it.
fn class_of(relative: &Path) -> Option<String> {
    let mut parts = relative.components();
    let first = parts.next()?;
    parts.next().map(|_file| first.as_os_str().to_string_lossy().into_owned())
}

pub(super) fn is_image(path: &Path) -> bool {
    path.extension()
        .and_then(|ending| ending.to_str())
        .is_some_and(|ending| ENDINGS.contains(&ending.to_ascii_lowercase().as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write_image(path: PathBuf, grey: u8) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        ::image::GrayImage::from_pixel(4, 3, ::image::Luma([grey])).save(path).unwrap();
    }

    #[test]
    fn class_folders_and_splits_are_recognised() {
        let root = tempfile::tempdir().unwrap();
        write_image(root.path().join("train/cat/a.png"), 10);
        write_image(root.path().join("train/dog/b.png"), 20);
        write_image(root.path().join("val/dog/c.JPG"), 30);
        std::fs::write(root.path().join("train/cat/notes.txt"), "no image").unwrap();

        let train = crate::open(root.path(), Split::Train).unwrap();
        assert_eq!((train.len(), train.class_names()), (2, &["cat".to_string(), "dog".to_string()][..]));
        assert_eq!((train.label(0), train.label(1)), (Some(0), Some(1)));
        let image = train.image(1).unwrap();
        assert_eq!((image.height(), image.width(), image.channels(), image.pixels()[0]), (3, 4, 1, 20));

        let test = crate::open(root.path(), Split::Test).unwrap();
        assert_eq!((test.len(), test.label(0)), (1, Some(1)), "classes keep their numbers");
    }

    #[test]
    fn a_test_folder_without_classes_is_no_test_split() {
        let root = tempfile::tempdir().unwrap();
        for (path, grey) in [("train/n01/a.png", 10), ("val/n01/b.png", 20), ("test/c.png", 30)] {
            write_image(root.path().join(path), grey);
        }
        let test = crate::open(root.path(), Split::Test).unwrap();
        assert_eq!((test.len(), test.label(0), test.image(0).unwrap().pixels()[0]), (1, Some(0), 20));
        assert!(test.notes()[0].contains("test has no folders of classes: the test split is"));
        assert!(test.notes()[0].ends_with("val"));
        assert!(crate::open(root.path(), Split::Validation).is_err(), "it is the test split");
        // Where nothing has classes, folders are what they are called.
        let flat = tempfile::tempdir().unwrap();
        for (path, grey) in [("train/a.png", 10), ("val/b.png", 20), ("test/c.png", 30)] {
            write_image(flat.path().join(path), grey);
        }
        let test = crate::open(flat.path(), Split::Test).unwrap();
        assert_eq!((test.label(0), test.image(0).unwrap().pixels()[0]), (None, 30));
    }

    #[test]
    fn folders_that_are_hidden_or_hold_no_image_are_no_classes() {
        let root = tempfile::tempdir().unwrap();
        for name in ["a.npy.parts/x.part", ".ipynb_checkpoints/b.png", "dog/c.png"] {
            write_image(root.path().join(name).with_extension("png"), 10);
        }
        let parts = root.path().join("a.npy.parts");
        std::fs::rename(parts.join("x.png"), parts.join("x.part")).unwrap();
        let train = crate::open(root.path(), Split::Train).unwrap();
        assert_eq!((train.len(), train.class_names()), (1, &["dog".to_string()][..]));
    }

    #[test]
    fn a_flat_folder_is_unlabelled_training_data() {
        let root = tempfile::tempdir().unwrap();
        write_image(root.path().join("a.png"), 10);
        let train = crate::open(root.path(), Split::Train).unwrap();
        assert_eq!((train.len(), train.label(0), train.class_names().len()), (1, None, 0));
        let message = crate::open(root.path(), Split::Test).err().unwrap().to_string();
        assert!(message.contains("no test split"), "{message}");
    }

    #[test]
    fn an_empty_folder_and_a_wrong_path_are_named() {
        let root = tempfile::tempdir().unwrap();
        let message = crate::open(root.path(), Split::Train).err().unwrap().to_string();
        assert!(message.contains("no images"), "{message}");
        let message = crate::open(&root.path().join("nowhere"), Split::Train).err().unwrap().to_string();
        assert!(message.contains("nowhere"), "{message}");
    }
}
