//! Folders of images: `class/image.png`, or images side by side without labels; with splits as `train/`, `test/`
//! and `val/` (or `valid/`, `validation/`) above the classes, in capitals too. Without `train/`, such folders, and
//! `training/` and `testing/`, are splits if there is nothing else, and classes of the training split otherwise.
//! What lies beside `train/` and is no split is left out, with a note, and so is a second folder of the same split,
//! as `valid/` beside `val/`.
//!
//! A test folder without classes, as ImageNet's, or with one folder that is no class of the training split, as
//! `test/unknown`, holds images without labels: where there is a validation split with classes, it is no test
//! split at all.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::listing::{Listing, folders_of_images, has_images};
use super::{ImageFile, ImageFiles, Split, listing};
use crate::{Error, Result};

/// Opens image files in a folder.
#[derive(Debug)]
pub(super) struct ImageFolder;

const VALIDATION_FOLDERS: [&str; 3] = ["val", "valid", "validation"];
const UNLABELLED_FOLDERS: [&str; 2] = ["unlabelled", "unlabeled"];
const TEST_FOLDERS: [&str; 2] = ["test", "testing"];
/// Beside anything; the others only where nothing but splits is there.
const TRAIN_FOLDER: &str = "train";
const TRAIN_FOLDERS: [&str; 2] = [TRAIN_FOLDER, "training"];

impl ImageFolder {
    /// Lists the images of a split.
    pub(super) fn open(root: &Path, split: Split) -> Result<ImageFiles> {
        let splits = SplitFolders::find(root)?;
        let mut notes = Vec::new();
        let own = match split {
            Split::Train => splits.train.as_ref(),
            Split::Validation => splits.validation.as_ref(),
            Split::Test => splits.test.as_ref(),
            Split::Unlabelled => splits.unlabelled.as_ref(),
        };
        let own = own.ok_or_else(|| Error::NoSplit { split: split.name(), path: root.into() })?;
        if let (Split::Validation, Some(instead)) = (split, &splits.unlabelled_test) {
            notes.push(format!("the images of {} have no labels: they are no test split", instead.display()));
        }
        if !splits.neighbours.is_empty() {
            notes.push(format!(
                "folders beside `train` that are called like no split are left out: {}",
                splits.neighbours.join(", ")
            ));
        }
        if !splits.doubles.is_empty() {
            notes.push(format!(
                "of several folders for the same split one is read, and left out are: {}",
                splits.doubles.join(", ")
            ));
        }
        if let (Split::Train, [first, ..]) = (split, &splits.classes_like_splits[..]) {
            notes.push(format!(
                "without a folder `train`, `{first}` is a class as its neighbours are, and no split"
            ));
        }
        if let Some(stranger) = &own.stranger {
            notes.push(format!(
                "{} is no class of the training split: its images have no labels",
                own.path.join(stranger).display()
            ));
        }
        // A class that only one split has must not shift the numbers of the others.
        let labelled = [&splits.train, &splits.validation, &splits.test];
        let class_names: BTreeSet<&String> = if split == Split::Unlabelled {
            BTreeSet::new()
        } else {
            labelled.into_iter().flatten().flat_map(|folder| &folder.classes).collect()
        };
        let class_names: Vec<String> = class_names.into_iter().cloned().collect();

        let mut listing = Listing::of(&own.path)?;
        notes.extend(listing.notes(&own.path));
        let files = std::mem::take(&mut listing.files).into_iter().map(|path| {
            let label = class_of(&path).and_then(|class| class_names.binary_search(&class).ok());
            ImageFile { path, label }
        });
        let files: Vec<ImageFile> = files.collect();
        if files.is_empty() {
            return Err(Error::NoImages { path: own.path.clone() });
        }
        Ok(ImageFiles::found(&own.path, files, class_names, notes))
    }
}

/// The first training images of a folder, without a list of all.
pub(super) fn first_images(root: &Path, count: usize) -> Vec<PathBuf> {
    let train = SplitFolders::find(root).ok().and_then(|splits| splits.train);
    train.map_or_else(Vec::new, |train| listing::first_images(&train.path, count))
}

/// The folders of a set's splits.
#[derive(Default)]
struct SplitFolders {
    train: Option<SplitFolder>,
    validation: Option<SplitFolder>,
    test: Option<SplitFolder>,
    unlabelled: Option<SplitFolder>,
    /// A folder that is called `test` and is none.
    unlabelled_test: Option<PathBuf>,
    /// Folders that are called like splits and are none.
    classes_like_splits: Vec<String>,
    /// Folders with images beside the splits.
    neighbours: Vec<String>,
    /// Further folders that are called like one of the splits.
    doubles: Vec<String>,
}

struct SplitFolder {
    path: PathBuf,
    /// Folders that hold images.
    classes: Vec<String>,
    /// The only one, if no training image has such a class.
    stranger: Option<String>,
}

impl SplitFolders {
    fn find(root: &Path) -> Result<Self> {
        let whole = SplitFolder::look(root.into())?;
        let has_train = root.join(TRAIN_FOLDER).is_dir();
        let mut doubles = Vec::new();
        let mut named = |names: &[&str]| {
            let is_called = |folder: &&str| names.contains(&folder.to_lowercase().as_str());
            let called: Vec<&str> = whole.classes.iter().map(String::as_str).filter(is_called).collect();
            // Of several the one in small letters.
            let folder = match has_train && names == TRAIN_FOLDERS {
                true => Some(TRAIN_FOLDER),
                false => called.iter().copied().max(),
            };
            doubles.extend(called.into_iter().filter(|&other| Some(other) != folder).map(String::from));
            folder.map(|folder| SplitFolder::look(root.join(folder))).transpose()
        };
        let (like_splits, others): (Vec<String>, Vec<String>) =
            whole.classes.iter().cloned().partition(|name| is_split(name));
        if !has_train && (like_splits.is_empty() || !others.is_empty() || has_images(root)?) {
            return Ok(Self { train: Some(whole), classes_like_splits: like_splits, ..Self::default() });
        }
        let train = named(&TRAIN_FOLDERS)?;
        let [mut validation, mut test] = [named(&VALIDATION_FOLDERS)?, named(&TEST_FOLDERS)?];
        let unlabelled = named(&UNLABELLED_FOLDERS)?;
        if let Some(train) = &train {
            [&mut validation, &mut test]
                .into_iter()
                .flatten()
                .for_each(|split| split.set_stranger_apart(train));
        }
        let has_classes = |split: &SplitFolder| !split.classes.is_empty();
        let unlabelled_test = test
            .take_if(|test| !has_classes(test) && validation.as_ref().is_some_and(has_classes))
            .map(|test| test.path);
        Ok(Self {
            train,
            validation,
            test,
            unlabelled,
            unlabelled_test,
            neighbours: others,
            doubles,
            ..Self::default()
        })
    }
}

impl SplitFolder {
    fn look(path: PathBuf) -> Result<Self> {
        let classes = folders_of_images(&path)?;
        Ok(Self { path, classes, stranger: None })
    }

    /// A single folder with a name of its own is where images lie, and not what they show.
    fn set_stranger_apart(&mut self, train: &Self) {
        if let [only] = &self.classes[..]
            && train.classes.len() > 1
            && !train.classes.contains(only)
        {
            self.stranger = self.classes.pop();
        }
    }
}

fn is_split(name: &str) -> bool {
    let name = name.to_lowercase();
    let names = [&TRAIN_FOLDERS[..], &TEST_FOLDERS, &VALIDATION_FOLDERS, &UNLABELLED_FOLDERS];
    names.iter().any(|names| names.contains(&name.as_str()))
}

/// The first folder of a path below the split; none for an image directly in it.
fn class_of(relative: &Path) -> Option<String> {
    let mut parts = relative.components();
    let first = parts.next()?;
    parts.next().map(|_file| first.as_os_str().to_string_lossy().into_owned())
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

        let validation = crate::open(root.path(), Split::Validation).unwrap();
        assert_eq!((validation.len(), validation.label(0)), (1, Some(1)), "classes keep their numbers");
        assert!(
            matches!(crate::open(root.path(), Split::Test), Err(Error::NoSplit { .. })),
            "is what it is called"
        );
    }

    #[test]
    fn a_test_folder_without_classes_is_no_test_split() {
        let root = tempfile::tempdir().unwrap();
        for (path, grey) in [("train/n01/a.png", 10), ("val/n01/b.png", 20), ("test/c.png", 30)] {
            write_image(root.path().join(path), grey);
        }
        let validation = crate::open(root.path(), Split::Validation).unwrap();
        assert_eq!((validation.len(), validation.label(0)), (1, Some(0)));
        assert!(validation.notes()[0].ends_with("test have no labels: they are no test split"));
        assert!(matches!(crate::open(root.path(), Split::Test), Err(Error::NoSplit { .. })));
        // Where nothing has classes, folders are what they are called.
        let flat = tempfile::tempdir().unwrap();
        for (path, grey) in [("train/a.png", 10), ("val/b.png", 20), ("test/c.png", 30)] {
            write_image(flat.path().join(path), grey);
        }
        let test = crate::open(flat.path(), Split::Test).unwrap();
        assert_eq!((test.label(0), test.image(0).unwrap().pixels()[0]), (None, 30));
    }

    #[test]
    fn a_folder_that_only_the_test_split_has_is_no_class() {
        let root = tempfile::tempdir().unwrap();
        for (path, grey) in [("train/cat/a.png", 10), ("train/dog/b.png", 20), ("test/unlabelled/c.png", 30)]
        {
            write_image(root.path().join(path), grey);
        }
        let test = crate::open(root.path(), Split::Test).unwrap();
        assert_eq!((test.label(0), test.class_names()), (None, &["cat".to_string(), "dog".to_string()][..]));
        assert!(
            test.notes()[0]
                .ends_with("unlabelled is no class of the training split: its images have no labels")
        );
        // Where the validation split has classes, it is left alone.
        write_image(root.path().join("val/dog/d.png"), 40);
        assert!(matches!(crate::open(root.path(), Split::Test), Err(Error::NoSplit { .. })));
        assert_eq!(crate::open(root.path(), Split::Validation).unwrap().label(0), Some(1));
        // One class of the training split, or several of its own, are what they are called.
        for path in ["test/dog/e.png", "test/fox/f.png"] {
            write_image(root.path().join(path), 50);
        }
        let test = crate::open(root.path(), Split::Test).unwrap();
        assert_eq!(test.class_names(), ["cat", "dog", "fox", "unlabelled"]);
        assert!(test.notes().is_empty());
    }

    #[test]
    fn no_image_is_in_two_splits_where_there_is_no_folder_of_training_images() {
        let root = tempfile::tempdir().unwrap();
        for path in ["val/cat/a.png", "val/dog/b.png", "test/cat/c.png"] {
            write_image(root.path().join(path), 10);
        }
        let images = |split| crate::open(root.path(), split).map(|data| data.len()).ok();
        assert_eq!([Split::Train, Split::Validation, Split::Test].map(images), [None, Some(2), Some(1)]);
        write_image(root.path().join("cat/d.png"), 10);
        assert_eq!([Split::Train, Split::Validation, Split::Test].map(images), [Some(4), None, None]);
        let train = crate::open(root.path(), Split::Train).unwrap();
        assert!(train.notes()[0].starts_with("without a folder `train`, `"), "{:?}", train.notes());
    }

    #[test]
    fn splits_may_be_in_capitals_and_what_lies_beside_them_is_said() {
        for (train, test) in
            [("Train", "Test"), ("TRAIN", "TEST"), ("Training", "Testing"), ("training", "test")]
        {
            let root = tempfile::tempdir().unwrap();
            for (path, grey) in [("cat/a.png", 10), ("dog/b.png", 20)] {
                write_image(root.path().join(train).join(path), grey);
                write_image(root.path().join(test).join(path), grey);
            }
            let [own, asked] =
                [Split::Train, Split::Test].map(|split| crate::open(root.path(), split).unwrap());
            assert_eq!(
                (own.len(), own.class_names()),
                (2, &["cat".to_string(), "dog".to_string()][..]),
                "{train}"
            );
            assert_eq!((asked.len(), asked.label(1)), (2, Some(1)), "{test}");
            let first = first_images(root.path(), 3);
            assert_eq!(first, ["cat/a.png", "dog/b.png"].map(|name| root.path().join(train).join(name)));
            // Beside other folders they are classes: trains, and what people test.
            write_image(root.path().join("bus/c.png"), 30);
            let own = crate::open(root.path(), Split::Train).unwrap();
            assert_eq!((own.len(), own.class_names().len()), (5, 3), "{train}");
            assert!(own.notes()[0].starts_with("without a folder `train`, `"), "{:?}", own.notes());
        }
        let root = tempfile::tempdir().unwrap();
        for path in ["train/cat/a.png", "train/dog/b.png", "eval/cat/c.png", "dev/cat/d.png"] {
            write_image(root.path().join(path), 10);
        }
        std::fs::create_dir(root.path().join("weights")).unwrap();
        let train = crate::open(root.path(), Split::Train).unwrap();
        let expected = "folders beside `train` that are called like no split are left out: dev, eval";
        assert_eq!((train.len(), train.notes()), (2, &[expected.to_string()][..]));
    }

    #[test]
    fn a_second_folder_of_the_same_split_is_named() {
        let cases = [
            (["train", "Train", "test"], "Train"),
            (["train", "training", "test"], "training"),
            (["train", "val", "valid"], "val"),
            (["train", "test", "testing"], "test"),
            (["Training", "training", "test"], "Training"),
            (["train", "unlabeled", "unlabelled"], "unlabeled"),
        ];
        for (folders, left_out) in cases {
            let root = tempfile::tempdir().unwrap();
            for (folder, class) in folders.iter().flat_map(|folder| [(folder, "cat"), (folder, "dog")]) {
                write_image(root.path().join(folder).join(class).join("a.png"), 10);
            }
            let train = crate::open(root.path(), Split::Train).unwrap();
            let said =
                format!("of several folders for the same split one is read, and left out are: {left_out}");
            assert_eq!((train.len(), train.notes()), (2, &[said][..]), "{folders:?}");
        }
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
        assert!(train.notes()[0].starts_with("1 hidden images and folders of images are left out, such as"));
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
