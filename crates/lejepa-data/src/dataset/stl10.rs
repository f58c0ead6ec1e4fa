//! STL-10: colour images of 96x96 as raw bytes, mapped into memory, since the unlabelled split has
//! 2.7 GB of them.
//!
//! ```text
//! {train,test,unlabeled}_X.bin    per image three planes, each column by column
//! {train,test}_y.bin              one byte per image, classes from one
//! class_names.txt                 one per line
//! ```

use std::io::Read;
use std::path::{Path, PathBuf};

use bytes::Bytes;

use super::classes::{self, Classes};
use super::{Dataset, Split, layout_root, mapped_file, split_file};
use crate::{Error, Image, Result, Stored, regular_file};

const CLASS_COUNT: usize = 10;
const SIDE: usize = 96;
const PLANE_BYTES: usize = SIDE * SIDE;
const IMAGE_BYTES: usize = 3 * PLANE_BYTES;
const IMAGE_FILES: [&str; 3] = ["train_X.bin", "test_X.bin", "unlabeled_X.bin"];

/// One split of STL-10.
#[derive(Debug)]
pub(super) struct Stl10 {
    file: PathBuf,
    images: Bytes,
    labels: Option<Vec<u8>>,
    class_names: Vec<String>,
}

impl Stl10 {
    pub(super) fn is_at(path: &Path) -> bool {
        find_root(path).is_some()
    }

    pub(super) fn open(path: &Path, split: Split) -> Result<Self> {
        let root = find_root(path).unwrap_or_else(|| path.into());
        let (images, labels) = match split {
            Split::Train => ("train_X.bin", Some("train_y.bin")),
            Split::Test => ("test_X.bin", Some("test_y.bin")),
            Split::Unlabelled => ("unlabeled_X.bin", None),
            Split::Validation => return Err(Error::NoSplit { split: split.name(), path: root }),
        };
        let file = split_file::required(root.join(images), split)?;
        let images = mapped_file::map(&file)?;
        if images.is_empty() || !images.len().is_multiple_of(IMAGE_BYTES) {
            let problem = format!("{} bytes are not images of {IMAGE_BYTES} bytes", images.len());
            return Err(invalid(&file, problem));
        }
        let (mut class_names, mut labels_of_images) = (Vec::new(), None);
        if let Some(labels) = labels {
            class_names = read_class_names(root.join("class_names.txt"), split)?;
            let labels = split_file::required(root.join(labels), split)?;
            let labels = read_labels(&labels, images.len() / IMAGE_BYTES, class_names.len())?;
            labels_of_images = Some(labels);
        }
        Ok(Self { file, images, labels: labels_of_images, class_names })
    }
}

impl Dataset for Stl10 {
    fn len(&self) -> usize {
        self.images.len() / IMAGE_BYTES
    }

    fn stored(&self, index: usize) -> Result<Stored> {
        let planes = &self.images[index * IMAGE_BYTES..(index + 1) * IMAGE_BYTES];
        let mut pixels = Vec::with_capacity(IMAGE_BYTES);
        for row in 0..SIDE {
            for column in 0..SIDE {
                pixels.extend((0..3).map(|channel| planes[channel * PLANE_BYTES + column * SIDE + row]));
            }
        }
        Ok(Stored::Pixels(Image::from_pixels(SIDE, SIDE, 3, pixels)?))
    }

    fn name(&self, index: usize) -> String {
        format!("{} image {index}", self.file.display())
    }

    fn label(&self, index: usize) -> Option<usize> {
        self.labels.as_ref().map(|labels| usize::from(labels[index]))
    }

    fn class_names(&self) -> &[String] {
        &self.class_names
    }

    fn files(&self) -> Vec<PathBuf> {
        vec![self.file.clone()]
    }
}

fn find_root(path: &Path) -> Option<PathBuf> {
    layout_root::find(path, &["stl10_binary"], &IMAGE_FILES)
}

/// Labels from zero, one per image.
fn read_labels(path: &Path, images: usize, class_count: usize) -> Result<Vec<u8>> {
    let failed = |source| Error::Io { action: "read", path: path.into(), source };
    let mut classes = Vec::new();
    let file = regular_file::open(path).map_err(failed)?;
    file.take(images as u64 + 1).read_to_end(&mut classes).map_err(failed)?;
    if classes.len() != images {
        let got = if classes.len() > images { "more".into() } else { classes.len().to_string() };
        return Err(invalid(path, format!("expected {images} labels, one per image, got {got}")));
    }
    for (image, class) in classes.iter_mut().enumerate() {
        classes::from_one(usize::from(*class), class_count)
            .map_err(|problem| invalid(path, format!("image {image}: {problem}")))?;
        *class -= 1;
    }
    Ok(classes)
}

/// Without their file, classes are called by their labels.
fn read_class_names(path: PathBuf, split: Split) -> Result<Vec<String>> {
    if path.is_file() {
        Ok(Classes::read(path, split)?.into_names())
    } else {
        Ok((0..CLASS_COUNT).map(|label| label.to_string()).collect())
    }
}

fn invalid(path: &Path, problem: String) -> Error {
    Error::Invalid { format: "STL-10", path: path.into(), problem }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::{Format, fixture};

    /// The fixture with its images unpacked.
    fn unpacked() -> tempfile::TempDir {
        let root = fixture::copy("stl10/stl10_binary");
        for name in IMAGE_FILES {
            let packed = std::fs::read(root.path().join(format!("{name}.gz"))).unwrap();
            let mut images = Vec::new();
            flate2::read::GzDecoder::new(&packed[..]).read_to_end(&mut images).unwrap();
            std::fs::write(root.path().join(name), images).unwrap();
        }
        root
    }

    /// The image that the script wrote.
    fn expected(number: usize) -> Image {
        let pixel = |place: usize| {
            let (row, column, channel) = (place / 3 / SIDE, place / 3 % SIDE, place % 3);
            (60 * number + 20 * channel + row + 2 * column) as u8
        };
        Image::from_pixels(SIDE, SIDE, 3, (0..IMAGE_BYTES).map(pixel).collect()).unwrap()
    }

    #[test]
    fn planes_stored_column_by_column_become_upright_images() {
        let root = unpacked();
        assert_eq!(Format::recognise(root.path()), Some(Format::Stl10));
        let train = crate::open(root.path(), Split::Train).unwrap();
        assert_eq!((train.len(), train.label(0), train.label(1)), (2, Some(9), Some(0)));
        assert_eq!((train.class_names().len(), train.class_names()[9].as_str()), (10, "truck"));
        assert_eq!(train.image(0).unwrap(), expected(0));
        assert_eq!(train.image(1).unwrap(), expected(1));
        let test = crate::open(root.path(), Split::Test).unwrap();
        assert_eq!((test.len(), test.image(0).unwrap(), test.label(0)), (1, expected(2), Some(9)));
        fixture::assert_no_split(root.path(), &[Split::Validation]);
    }

    #[test]
    fn the_unlabelled_split_has_no_classes() {
        let root = unpacked();
        let images = crate::open(root.path(), Split::Unlabelled).unwrap();
        assert_eq!((images.len(), images.label(0), images.class_names().len()), (1, None, 0));
        assert_eq!(images.image(0).unwrap(), expected(3));
    }

    #[test]
    fn the_folder_above_and_absent_names_are_fine() {
        let parent = tempfile::tempdir().unwrap();
        std::fs::rename(unpacked().keep(), parent.path().join("stl10_binary")).unwrap();
        std::fs::remove_file(parent.path().join("stl10_binary/class_names.txt")).unwrap();
        let train = crate::open(parent.path(), Split::Train).unwrap();
        assert_eq!((train.class_names().len(), train.class_names()[9].as_str()), (10, "9"));
    }

    #[test]
    fn damaged_files_are_named_with_the_cause() {
        let root = unpacked();
        let (images, labels) = (root.path().join("train_X.bin"), root.path().join("train_y.bin"));
        for (content, problem) in [
            (vec![0, 1], "image 0: class 0 is not 1 to 10"),
            (vec![1, 11], "image 1: class 11 is not 1 to 10"),
            (vec![1], "expected 2 labels, one per image, got 1"),
            (vec![1, 2, 3], "expected 2 labels, one per image, got more"),
        ] {
            std::fs::write(&labels, content).unwrap();
            let message = fixture::message(root.path(), Split::Train);
            assert!(message.contains(problem) && message.contains("train_y.bin"), "{message}");
        }
        for length in [0, IMAGE_BYTES - 1, IMAGE_BYTES + 1] {
            std::fs::write(&images, vec![0; length]).unwrap();
            let message = fixture::message(root.path(), Split::Train);
            assert!(message.contains(&format!("{length} bytes are not images of 27648 bytes")), "{message}");
        }
        for (split, missing) in [
            (Split::Train, "train_X.bin"),
            (Split::Test, "test_y.bin"),
            (Split::Unlabelled, "unlabeled_X.bin"),
        ] {
            std::fs::remove_file(root.path().join(missing)).unwrap();
            let message = fixture::message(root.path(), split);
            assert!(message.contains(split.name()) && message.contains(missing), "{message}");
        }
    }
}
