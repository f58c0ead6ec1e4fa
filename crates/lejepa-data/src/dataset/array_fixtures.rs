//! What `tests/formats/make_arrays.py` has written.

use std::path::{Path, PathBuf};

use crate::{Dataset, Image, ReadOptions, SourceConfig, Split, open_source};

/// A file or folder that Python has written.
pub(super) fn fixture(name: &str) -> PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/formats")).join(name)
}

/// The `image`-th image of 4 x 6 pixels.
pub(super) fn image(image: usize, channels: usize) -> Image {
    let places = (0..4).flat_map(|row| (0..6).map(move |column| (row, column)));
    let pixels = places.flat_map(|(row, column)| {
        (0..channels).map(move |channel| (image * 50 + row * 20 + column * 3 + channel * 7) as u8)
    });
    Image::from_pixels(4, 6, channels, pixels.collect()).unwrap()
}

/// Checks that a dataset holds the images from `first` on, with these labels.
pub(super) fn assert_holds(dataset: &dyn Dataset, first: usize, channels: usize, labels: &[usize]) {
    assert_eq!(dataset.len(), labels.len());
    for (index, &label) in labels.iter().enumerate() {
        assert_eq!(dataset.image(index).unwrap(), image(first + index, channels), "image {index}");
        assert_eq!(dataset.label(index), Some(label));
    }
}

/// Names of arrays inside a file.
pub(super) fn names(images: Option<&str>, labels: Option<&str>) -> ReadOptions {
    ReadOptions { images: images.map(Into::into), labels: labels.map(Into::into), ..Default::default() }
}

/// Opens a training split with options.
pub(super) fn open_with(path: &Path, options: ReadOptions) -> crate::Result<Box<dyn Dataset>> {
    open_source(&SourceConfig { path: path.into(), options, ..Default::default() }, Split::Train)
}

/// Why a training split cannot be opened.
pub(super) fn problem_with(path: &Path, options: ReadOptions) -> String {
    open_with(path, options).err().unwrap().to_string()
}

/// Writes bytes to a file of its own, which lives as long as the folder.
pub(super) fn written(name: &str, bytes: &[u8]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    (folder, path)
}
