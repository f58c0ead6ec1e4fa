//! An array as numpy stores it, from a mapped file or from memory.

use bytes::Bytes;

use super::array_labels::{check_label_shape, check_labels, wrong_label_type};
use super::image_array::{ImageShape, ImageSource, wrong_image_type};
use super::npy_header::NpyHeader;
use crate::Result;

/// Header and bytes; the bytes are checked when it is known what they mean.
#[derive(Debug)]
pub(super) struct NpyArray {
    header: NpyHeader,
    bytes: Bytes,
}

/// Images of an array with known sizes.
#[derive(Debug)]
struct NpyImages {
    bytes: Bytes,
    start: usize,
    image_bytes: usize,
}

impl NpyArray {
    /// Reads the header of a whole `.npy` file; the error says what is wrong with it.
    pub(super) fn new(bytes: Bytes) -> std::result::Result<Self, String> {
        Ok(Self { header: NpyHeader::parse(&bytes)?, bytes })
    }

    /// The array as images; the error says why it is none.
    pub(super) fn images(self) -> std::result::Result<(ImageShape, Box<dyn ImageSource>), String> {
        if !self.header.integer().is_some_and(|kind| kind.is_byte()) {
            return Err(wrong_image_type(&self.header.type_name()));
        }
        let shape = ImageShape::of(&self.header.shape)?;
        self.values(shape.total_bytes())?;
        let (start, image_bytes) = (self.header.start, shape.image_bytes());
        Ok((shape, Box::new(NpyImages { bytes: self.bytes, start, image_bytes })))
    }

    /// The array as labels; the error says why it is none.
    pub(super) fn labels(&self, images: usize) -> std::result::Result<Vec<usize>, String> {
        let kind = self.header.integer().ok_or_else(|| wrong_label_type(&self.header.type_name()))?;
        check_label_shape(&self.header.shape, images)?;
        let length = images.checked_mul(kind.size).ok_or("too many labels")?;
        check_labels(self.values(length)?.chunks_exact(kind.size).map(|bytes| kind.value(bytes)))
    }

    fn values(&self, expected: usize) -> std::result::Result<&[u8], String> {
        let NpyHeader { fortran_order, shape, start, .. } = &self.header;
        if *fortran_order && shape.len() > 1 {
            return Err("its axes are in Fortran order: save it with numpy.ascontiguousarray".into());
        }
        let values = self.bytes.get(*start..).unwrap_or_default();
        if values.len() != expected {
            let got = if values.len() > expected { "more".into() } else { values.len().to_string() };
            return Err(format!("expected {expected} bytes for shape {shape:?}, got {got}"));
        }
        Ok(values)
    }
}

impl ImageSource for NpyImages {
    fn read(&self, row: usize) -> Result<Vec<u8>> {
        let start = self.start + row * self.image_bytes;
        Ok(self.bytes[start..start + self.image_bytes].to_vec())
    }
}
