//! Images of one size in one array of bytes, whichever kind of file holds it.
//!
//! ```text
//! (images, height, width)              grey
//! (images, height, width, channels)    1 or 3 channels
//! (images, channels, height, width)    1 or 3 channels, one plane after the other
//! ```

use std::fmt::Debug;
use std::path::PathBuf;

use super::Dataset;
use super::array_labels::numbered_classes;
use crate::{Error, Image, Result, Stored};

/// Images in an array, read one by one.
#[derive(Debug)]
pub(super) struct ImageArray {
    path: PathBuf,
    /// The array's name inside the file; empty if the file is the array.
    name: String,
    shape: ImageShape,
    source: Box<dyn ImageSource>,
    /// The images of the split, as rows of the array.
    rows: Vec<usize>,
    /// Of every row of the array.
    labels: Option<Vec<usize>>,
    class_names: Vec<String>,
    notes: Vec<String>,
}

/// Where the bytes of an image come from.
pub(super) trait ImageSource: Debug + Send + Sync {
    /// The bytes of one image in the order of the array.
    fn read(&self, row: usize) -> Result<Vec<u8>>;
}

/// What a reader has found in a file.
#[derive(Debug)]
pub(super) struct FoundArray {
    pub(super) path: PathBuf,
    /// The array's name inside the file; empty if the file is the array.
    pub(super) name: String,
    pub(super) shape: ImageShape,
    pub(super) source: Box<dyn ImageSource>,
    /// One for each image.
    pub(super) labels: Option<Vec<usize>>,
    /// The labels' name inside the file.
    pub(super) labels_name: Option<String>,
    pub(super) notes: Vec<String>,
}

impl FoundArray {
    /// All images, with numbers as the names of classes.
    pub(super) fn whole(self) -> Result<ImageArray> {
        let class_names = numbered_classes(self.labels.iter().flatten().copied());
        let rows = (0..self.shape.count).collect();
        self.part(rows, class_names)
    }

    /// Some of the images, with named classes.
    pub(super) fn part(self, rows: Vec<usize>, class_names: Vec<String>) -> Result<ImageArray> {
        let Self { path, name, shape, source, labels, notes, labels_name: _ } = self;
        let array = ImageArray { path, name, shape, source, rows, labels, class_names, notes };
        array.check_labels()?;
        Ok(array)
    }
}

impl ImageArray {
    fn check_labels(&self) -> Result<()> {
        let classes = self.class_names.len();
        match self.labels.iter().flatten().enumerate().find(|&(_row, &label)| label >= classes) {
            Some((row, &label)) => Err(Error::Label { name: self.row_name(row), label, classes }),
            None => Ok(()),
        }
    }

    fn row_name(&self, row: usize) -> String {
        let separator = if self.name.is_empty() { "" } else { " " };
        format!("{}{separator}{} image {row}", self.path.display(), self.name)
    }
}

impl Dataset for ImageArray {
    fn len(&self) -> usize {
        self.rows.len()
    }

    fn stored(&self, index: usize) -> Result<Stored> {
        let bytes = self.source.read(self.rows[index])?;
        Ok(Stored::Pixels(self.shape.image(bytes)?))
    }

    fn name(&self, index: usize) -> String {
        self.row_name(self.rows[index])
    }

    fn label(&self, index: usize) -> Option<usize> {
        self.labels.as_ref().map(|labels| labels[self.rows[index]])
    }

    fn class_names(&self) -> &[String] {
        &self.class_names
    }

    fn files(&self) -> Vec<PathBuf> {
        vec![self.path.clone()]
    }

    fn notes(&self) -> &[String] {
        &self.notes
    }
}

/// What the axes of an array mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ImageShape {
    pub(super) count: usize,
    pub(super) height: usize,
    pub(super) width: usize,
    pub(super) channels: usize,
    /// Whether the channels come before height and width.
    planar: bool,
}

impl ImageShape {
    /// Reads the sizes of an array's axes; the error says what is wrong with them.
    pub(super) fn of(axes: &[usize]) -> std::result::Result<Self, String> {
        let is_channels = |size| size == 1 || size == 3;
        let (count, height, width, channels, planar) = match *axes {
            [count, height, width] => (count, height, width, 1, false),
            [_, first, _, last] if is_channels(first) && is_channels(last) => {
                return Err(format!("in shape {axes:?} the channels may be first or last"));
            }
            [count, height, width, channels] if is_channels(channels) => {
                (count, height, width, channels, false)
            }
            [count, channels, height, width] if is_channels(channels) => {
                (count, height, width, channels, true)
            }
            _ => {
                return Err(format!(
                    "expected images of shape [images, height, width], or with 1 or 3 channels, got {axes:?}"
                ));
            }
        };
        if count == 0 {
            return Err(format!("no images: shape {axes:?}"));
        }
        Image::check_size(height, width).map_err(|error| error.to_string())?;
        if count.checked_mul(height * width * channels).is_none() {
            return Err(format!("sizes overflow: {axes:?}"));
        }
        Ok(Self { count, height, width, channels, planar })
    }

    /// Bytes of one image.
    pub(super) fn image_bytes(&self) -> usize {
        self.height * self.width * self.channels
    }

    /// Bytes of all images.
    pub(super) fn total_bytes(&self) -> usize {
        self.count * self.image_bytes()
    }

    fn image(&self, bytes: Vec<u8>) -> Result<Image> {
        let pixels = if self.planar { self.interleave(&bytes) } else { bytes };
        Image::from_pixels(self.height, self.width, self.channels, pixels)
    }

    fn interleave(&self, planes: &[u8]) -> Vec<u8> {
        let mut pixels = vec![0; self.image_bytes()];
        for (channel, plane) in planes.chunks_exact(self.height * self.width).enumerate() {
            let values = pixels.iter_mut().skip(channel).step_by(self.channels);
            values.zip(plane).for_each(|(value, &byte)| *value = byte);
        }
        pixels
    }
}

/// What to tell people whose images are no bytes.
pub(super) fn wrong_image_type(kind: &str) -> String {
    format!("images are {kind}, expected uint8: write them as bytes from 0 to 255")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_are_images_height_width_with_channels_first_or_last() {
        let parts = |axes: &[usize]| {
            let shape = ImageShape::of(axes).unwrap();
            (shape.count, shape.height, shape.width, shape.channels, shape.planar)
        };
        assert_eq!(parts(&[9, 4, 5]), (9, 4, 5, 1, false));
        assert_eq!(parts(&[9, 4, 5, 1]), (9, 4, 5, 1, false));
        assert_eq!(parts(&[9, 4, 5, 3]), (9, 4, 5, 3, false));
        assert_eq!(parts(&[9, 1, 4, 5]), (9, 4, 5, 1, true));
        assert_eq!(parts(&[9, 3, 4, 5]), (9, 4, 5, 3, true));
    }

    #[test]
    fn axes_that_mean_nothing_or_two_things_are_refused() {
        let problem = |axes: &[usize]| ImageShape::of(axes).unwrap_err();
        for axes in [&[][..], &[9], &[9, 4], &[9, 4, 5, 4], &[9, 4, 5, 3, 1]] {
            assert!(problem(axes).contains("expected images of shape"), "{axes:?}");
        }
        assert!(problem(&[9, 3, 5, 3]).contains("first or last"));
        assert!(problem(&[0, 4, 5]).contains("no images"));
        assert!(problem(&[9, 0, 5]).contains("pixels"));
        assert!(problem(&[9, 1 << 20, 1 << 20]).contains("pixels"));
        assert!(problem(&[usize::MAX, 4, 5]).contains("overflow"));
    }

    #[test]
    fn planes_become_interleaved_pixels() {
        let shape = ImageShape::of(&[1, 3, 1, 2]).unwrap();
        let image = shape.image(vec![1, 2, 11, 12, 21, 22]).unwrap();
        assert_eq!((image.height(), image.width(), image.channels()), (1, 2, 3));
        assert_eq!(image.pixels(), [1, 11, 21, 2, 12, 22]);
    }
}
