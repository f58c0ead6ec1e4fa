//! Folders of images: `class/image.png`, or images side by side without labels; with splits as
//! `train/` and `test/` (or `val/`, `valid/`) above the classes.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use walkdir::WalkDir;

use super::{Dataset, Split};
use crate::{Error, Image, Result};

/// Image files in a folder, decoded when they are asked for.
#[derive(Debug)]
pub struct ImageFolder {
    files: Vec<ImageFile>,
    class_names: Vec<String>,
    fingerprint: String,
}

#[derive(Debug)]
struct ImageFile {
    path: PathBuf,
    label: Option<usize>,
}

const ENDINGS: [&str; 8] = ["jpg", "jpeg", "png", "webp", "bmp", "tif", "tiff", "gif"];
const TRAIN_FOLDERS: [&str; 1] = ["train"];
const TEST_FOLDERS: [&str; 3] = ["test", "val", "valid"];

impl ImageFolder {
    /// Lists the images of a split. A folder without split folders is a training split.
    pub fn open(root: &Path, split: Split) -> Result<Self> {
        let train = first_existing(root, &TRAIN_FOLDERS);
        let test = first_existing(root, &TEST_FOLDERS);
        let folder = match (split, &train, &test) {
            (Split::Train, Some(folder), _) | (Split::Test, _, Some(folder)) => folder.clone(),
            (Split::Train, None, _) => root.to_path_buf(),
            (Split::Test, _, None) => return Err(Error::NoSplit { split: split.name(), path: root.into() }),
        };
        // A class that only one split has must not shift the numbers of the others.
        let mut class_names = BTreeSet::new();
        for split_folder in [Some(&folder), train.as_ref(), test.as_ref()].into_iter().flatten() {
            class_names.extend(class_folders(split_folder)?);
        }
        let class_names: Vec<String> = class_names.into_iter().collect();

        let mut files = Vec::new();
        let mut hasher = blake3::Hasher::new();
        for entry in WalkDir::new(&folder).follow_links(true).sort_by_file_name() {
            let entry = entry.map_err(|error| {
                let path = error.path().unwrap_or(&folder).to_path_buf();
                Error::Io { action: "list", path, source: error.into() }
            })?;
            if !entry.file_type().is_file() || !is_image(entry.path()) {
                continue;
            }
            let relative = entry.path().strip_prefix(&folder).unwrap_or(entry.path());
            let length = entry.metadata().map_or(0, |metadata| metadata.len());
            hasher.update(relative.as_os_str().as_encoded_bytes()).update(&length.to_le_bytes());
            let label = class_of(relative).and_then(|class| class_names.binary_search(&class).ok());
            files.push(ImageFile { path: entry.into_path(), label });
        }
        if files.is_empty() {
            return Err(Error::NoImages { path: folder });
        }
        let fingerprint = hasher.finalize().to_hex()[..16].to_string();
        Ok(Self { files, class_names, fingerprint })
    }
}

impl Dataset for ImageFolder {
    fn len(&self) -> usize {
        self.files.len()
    }

    fn image(&self, index: usize) -> Result<Image> {
        Image::open(&self.files[index].path)
    }

    fn label(&self, index: usize) -> Option<usize> {
        self.files[index].label
    }

    fn class_names(&self) -> &[String] {
        &self.class_names
    }

    /// Of the names and lengths of all files, not of their content: a large folder is not read twice.
    fn fingerprint(&self) -> &str {
        &self.fingerprint
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
        if entry.path().is_dir() {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    Ok(names)
}

/// The first folder of a path below the split; none for an image directly in it.
fn class_of(relative: &Path) -> Option<String> {
    let mut parts = relative.components();
    let first = parts.next()?;
    parts.next().map(|_file| first.as_os_str().to_string_lossy().into_owned())
}

fn is_image(path: &Path) -> bool {
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
        assert_ne!(train.fingerprint(), test.fingerprint());
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
