//! HDF5 files: images in one dataset, labels in another.
//!
//! The images are `images`, `image`, `x` or `data`, the labels beside them `ans`, `labels`, `label` or
//! `y`, unless the options name them. A file is a training split.

use std::path::{Path, PathBuf};

use super::galaxy10::Galaxy10;
#[cfg(feature = "hdf5")]
pub(super) use super::hdf5_file::read;
use super::npy::begins_with;
use super::{ImageArray, ReadOptions, Split, listing};
use crate::{Error, Result};

const MAGIC: &[u8] = b"\x89HDF\r\n\x1a\n";

/// Opens HDF5 files.
#[derive(Debug)]
pub(super) struct Hdf5;

impl Hdf5 {
    /// Whether the path is an HDF5 file, whatever its name, or a folder with one and nothing else to
    /// read.
    pub(super) fn is_at(path: &Path) -> bool {
        Self::find(path).is_some()
    }

    /// Opens the images and reads their labels.
    pub(super) fn open(path: &Path, split: Split, options: &ReadOptions) -> Result<ImageArray> {
        let path = Self::file(path)?;
        if split != Split::Train {
            return Err(Error::NoSplit { split: split.name(), path });
        }
        let mut found = read(&path, options)?;
        found.notes.extend(Galaxy10::note(&found));
        found.whole()
    }

    /// The HDF5 file at a path.
    pub(super) fn file(path: &Path) -> Result<PathBuf> {
        let problem = if path.is_dir() {
            "expected a folder with one .h5 or .hdf5 file, without images and folders"
        } else {
            "it does not begin with \\x89HDF"
        };
        Self::find(path).ok_or_else(|| invalid(path, problem))
    }

    pub(super) fn find(path: &Path) -> Option<PathBuf> {
        let file = if path.is_dir() { only_file(path)? } else { path.into() };
        begins_with(&file, MAGIC).then_some(file)
    }
}

fn only_file(folder: &Path) -> Option<PathBuf> {
    let mut found = None;
    for entry in std::fs::read_dir(folder).ok()? {
        let path = entry.ok()?.path();
        if path.is_dir() || listing::is_image(&path) {
            return None;
        }
        if path.extension().is_some_and(|ending| ending == "h5" || ending == "hdf5") {
            match found {
                None => found = Some(path),
                Some(_) => return None,
            }
        }
    }
    found
}

pub(super) fn invalid(path: &Path, problem: impl Into<String>) -> Error {
    Error::Invalid { format: "HDF5", path: path.into(), problem: problem.into() }
}

#[cfg(not(feature = "hdf5"))]
pub(super) fn read(path: &Path, _options: &ReadOptions) -> Result<super::image_array::FoundArray> {
    Err(Error::BuiltWithout { what: "HDF5", feature: "hdf5", path: path.into() })
}

#[cfg(test)]
#[cfg(not(feature = "hdf5"))]
mod tests {
    use super::super::array_fixtures::{fixture, names, problem_with};

    #[test]
    fn the_missing_library_is_named() {
        for name in ["hdf5/contiguous.h5", "galaxy10/small.h5"] {
            let message = problem_with(&fixture(name), names(None, None));
            assert!(message.contains("built without HDF5") && message.contains("`hdf5`"), "{message}");
        }
    }
}

#[cfg(test)]
#[cfg(feature = "hdf5")]
mod file_tests {
    use super::super::array_fixtures::{assert_holds, fixture, names, open_with, problem_with, written};
    use super::*;
    use crate::Dataset;

    const LABELS: [usize; 5] = [0, 2, 1, 2, 0];

    fn open(name: &str) -> Box<dyn Dataset> {
        crate::open(&fixture(name), Split::Train).unwrap()
    }

    fn odd(images: Option<&str>, labels: Option<&str>) -> String {
        problem_with(&fixture("hdf5/odd.h5"), names(images, labels))
    }

    #[test]
    fn contiguous_chunked_and_compressed_datasets_hold_the_same_images() {
        assert_holds(&*open("hdf5/contiguous.h5"), 0, 3, &LABELS);
        assert_holds(&*open("hdf5/chunked.h5"), 0, 1, &LABELS);
        assert_holds(&*open("hdf5/gzip.h5"), 0, 3, &LABELS);
        let unlabelled = open("hdf5/unlabelled.h5");
        assert_eq!((unlabelled.len(), unlabelled.label(0), unlabelled.class_names().len()), (5, None, 0));
        assert_eq!(open("hdf5/gzip.h5").class_names(), ["0", "1", "2"]);
        assert!(open("hdf5/gzip.h5").name(3).ends_with("gzip.h5 x image 3"));
        assert!(open("hdf5/gzip.h5").notes().is_empty());
    }

    #[test]
    fn images_that_are_packed_together_are_worth_a_note() {
        let together = open("hdf5/together.h5");
        assert_eq!(together.image(8).unwrap().pixels()[..3], [8; 3]);
        let [note] = together.notes() else { panic!("one note") };
        assert!(note.contains("9 MB") && note.contains("images:CHUNK=1x1024x1024"), "{note}");
    }

    #[test]
    fn options_name_datasets_in_groups() {
        let path = fixture("hdf5/odd.h5");
        // Labels are looked for beside the images.
        assert_holds(&*open_with(&path, names(Some("train/images"), None)).unwrap(), 0, 1, &LABELS);
        let options = names(Some("/train/images"), Some("/train/labels"));
        assert_holds(&*open_with(&path, options).unwrap(), 0, 1, &LABELS);
    }

    #[test]
    fn what_is_not_there_is_named_with_what_is() {
        for message in [odd(None, None), odd(Some("images"), None), odd(Some("train/images"), Some("train"))]
        {
            assert!(message.contains("train/images [5, 4, 6, 1] uint8"), "{message}");
            assert!(message.contains("labels/float [5] float64"), "{message}");
        }
        assert!(odd(Some("train/x"), None).contains("no dataset train/x"));
        let message = crate::open(&fixture("hdf5/gzip.h5"), Split::Test).err().unwrap().to_string();
        assert!(message.contains("no test split"), "{message}");
        let fold = ReadOptions { fold: Some(2), ..Default::default() };
        assert!(problem_with(&fixture("hdf5/gzip.h5"), fold).contains("`data.options.fold` must be absent"));
    }

    #[test]
    fn datasets_that_are_no_images_are_named_with_the_cause() {
        for (name, cause) in [
            ("float", "images are float32, expected uint8"),
            ("wide", "images are uint16, expected uint8"),
            ("flat", "expected images of shape"),
            ("rgba", "expected images of shape"),
            ("promised", "does not fit into a file"),
            ("outside", "lie in another file"),
            ("virtual", "virtual dataset"),
        ] {
            let message = odd(Some(name), None);
            assert!(message.contains(&format!("{name}: ")) && message.contains(cause), "{message}");
        }
    }

    #[test]
    fn datasets_that_are_no_labels_are_named_with_the_cause() {
        for (name, cause) in [
            ("short", "4 labels for 5 images"),
            ("several", "one label for each"),
            ("negative", "got -2 for image 1"),
            ("enormous", "labels from 0 to 1000000"),
            ("float", "labels are float64, expected integers"),
            ("names", "labels are unicode (var len), expected integers"),
        ] {
            let message = odd(Some("train/images"), Some(&format!("labels/{name}")));
            let found = message.contains(&format!("labels/{name}: ")) && message.contains(cause);
            assert!(found, "{message}");
        }
    }

    #[test]
    fn a_link_to_another_file_is_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::copy(fixture("hdf5/contiguous.h5"), folder.path().join("other.h5")).unwrap();
        let path = folder.path().join("links.h5");
        for (images, labels) in [("images", "none"), ("none", "labels")] {
            let file = ::hdf5::File::create(&path).unwrap();
            let pixels = ndarray::Array4::<u8>::zeros((5, 4, 6, 3));
            if images == "images" {
                file.link_external("other.h5", "images", "images").unwrap();
            } else {
                file.new_dataset_builder().with_data(&pixels).create("images").unwrap();
                file.link_external("other.h5", "labels", labels).unwrap();
            }
            file.close().unwrap();
            let message = problem_with(&path, names(None, None));
            assert!(message.contains("is in another file, by an external link: "), "{message}");
            assert!(message.contains("other.h5") && message.ends_with("links.h5"), "{message}");
        }
    }

    #[test]
    fn a_folder_with_one_file_is_that_file() {
        let bytes = std::fs::read(fixture("hdf5/contiguous.h5")).unwrap();
        let (folder, path) = written("data.hdf5", &bytes);
        std::fs::write(folder.path().join("README"), "text").unwrap();
        assert_holds(&*crate::open(folder.path(), Split::Train).unwrap(), 0, 3, &LABELS);
        std::fs::write(folder.path().join("image.png"), "").unwrap();
        assert!(!Hdf5::is_at(folder.path()), "an image beside it");
        let message = Hdf5::open(folder.path(), Split::Train, &ReadOptions::default()).unwrap_err();
        assert!(message.to_string().contains("expected a folder with one"), "{message}");
        std::fs::rename(folder.path().join("image.png"), folder.path().join("other.h5")).unwrap();
        assert!(!Hdf5::is_at(folder.path()), "two files");
        assert!(Hdf5::is_at(&path), "each of them by its own name");
    }

    #[test]
    fn damaged_files_are_errors() {
        for name in ["contiguous", "gzip"] {
            let whole = std::fs::read(fixture(&format!("hdf5/{name}.h5"))).unwrap();
            for length in (8..whole.len()).step_by(97) {
                let (_folder, path) = written("cut.h5", &whole[..length]);
                let message = problem_with(&path, names(None, None));
                assert!(message.contains("not a valid HDF5 file") && message.contains("cut.h5"), "{message}");
            }
        }
        let (_folder, path) = written("text.h5", b"no HDF5 file");
        let message = Hdf5::open(&path, Split::Train, &ReadOptions::default()).unwrap_err().to_string();
        assert!(message.contains("does not begin with"), "{message}");
    }

    #[test]
    fn a_damaged_chunk_is_an_error_that_names_the_image() {
        let mut bytes = std::fs::read(fixture("hdf5/gzip.h5")).unwrap();
        // The third of five compressed images; the first and the last are read when the file is opened.
        let starts: Vec<_> = (0..bytes.len() - 1).filter(|&at| bytes[at..at + 2] == [0x78, 0x5e]).collect();
        bytes[starts[2]..][..8].fill(0xff);
        let (_folder, path) = written("chunk.h5", &bytes);
        let dataset = crate::open(&path, Split::Train).unwrap();
        let damaged: Vec<_> = (0..5).filter_map(|index| dataset.image(index).err()).collect();
        assert_eq!(damaged.len(), 1);
        assert!(damaged[0].to_string().contains("chunk.h5 x image"), "{}", damaged[0]);
    }

    #[test]
    fn the_library_writes_nothing_about_errors_itself() {
        const AGAIN: &str = "LEJEPA_TEST_DAMAGED_HDF5";
        if std::env::var_os(AGAIN).is_some() {
            let odd = || assert!(odd(Some("nothing/there"), None).contains("no dataset"));
            let whole = std::fs::read(fixture("hdf5/gzip.h5")).unwrap();
            let (_folder, path) = written("cut.h5", &whole[..whole.len() / 2]);
            let cut = || assert!(Hdf5::open(&path, Split::Train, &ReadOptions::default()).is_err());
            std::thread::scope(|scope| {
                scope.spawn(|| (odd(), cut()));
                scope.spawn(|| (cut(), odd()));
            });
            return;
        }
        let name = "the_library_writes_nothing_about_errors_itself";
        let output = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--nocapture", name])
            .env(AGAIN, "1")
            .output()
            .unwrap();
        assert!(output.status.success());
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    }
}
