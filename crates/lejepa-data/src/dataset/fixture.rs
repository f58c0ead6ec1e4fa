//! Small datasets in the official layouts, written by `tests/formats/make_layouts.py`.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::{Dataset, Error, Fingerprinter, Split};

pub(super) fn path(name: &str) -> PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/formats")).join(name)
}

/// A copy that a test may damage.
pub(super) fn copy(name: &str) -> tempfile::TempDir {
    let source = path(name);
    let target = tempfile::tempdir().unwrap();
    for entry in walkdir::WalkDir::new(&source) {
        let entry = entry.unwrap();
        let to = target.path().join(entry.path().strip_prefix(&source).unwrap());
        if entry.file_type().is_dir() {
            std::fs::create_dir_all(to).unwrap();
        } else {
            std::fs::copy(entry.path(), to).unwrap();
        }
    }
    target
}

/// Of the content, with nothing remembered.
pub(super) fn fingerprint(data: &dyn Dataset) -> String {
    data.fingerprint(&mut Fingerprinter::default()).unwrap()
}

/// Why a dataset cannot be opened.
pub(super) fn message(path: &Path, split: Split) -> String {
    crate::open(path, split).err().unwrap().to_string()
}

/// Label and grey value of every image.
pub(super) fn samples(data: &dyn Dataset) -> Vec<(usize, u8)> {
    let sample = |index| (data.label(index).unwrap(), data.image(index).unwrap().pixels()[0]);
    (0..data.len()).map(sample).collect()
}

/// Classes and samples are those that torchvision read from the same files; `folder` is where
/// torchvision's layout begins, which may be named too.
pub(super) fn assert_as_torchvision(format: &str, folder: &str, splits: &[Split]) {
    for split in splits {
        for place in [path(format), path(format).join(folder)] {
            let data = crate::open(&place, *split).unwrap();
            assert_read_as(data.as_ref(), format, split.name());
            assert!(data.notes().is_empty());
        }
    }
}

pub(super) fn assert_read_as(data: &dyn Dataset, format: &str, split: &str) {
    let all = std::fs::read_to_string(path("torchvision.json")).unwrap();
    let expected = &serde_json::from_str::<Value>(&all).unwrap()[format][split];
    assert_eq!(json!(samples(data)), expected["samples"], "{format} {split}");
    // torchvision respells the pets.
    let spelt = |name: &str| name.replace('_', " ").to_lowercase();
    let names: Vec<String> = data.class_names().iter().map(|name| spelt(name)).collect();
    let expected_names = expected["classes"].as_array().unwrap().iter();
    assert_eq!(names, expected_names.map(|name| spelt(name.as_str().unwrap())).collect::<Vec<_>>());
}

/// The set has no such parts.
pub(super) fn assert_no_split(path: &Path, splits: &[Split]) {
    for &split in splits {
        let error = crate::open(path, split).err().unwrap();
        assert!(matches!(error, Error::NoSplit { .. }), "{error}");
    }
}
