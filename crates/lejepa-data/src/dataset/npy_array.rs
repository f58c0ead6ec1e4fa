//! An array as numpy stores it, from a mapped file or from memory.

use std::path::Path;

use memmap2::{Mmap, MmapOptions};

use super::array_labels::{check_label_shape, check_labels, wrong_label_type};
use super::image_array::{ImageShape, ImageSource, wrong_image_type};
use super::npy_header::NpyHeader;
use crate::{Error, Result};

/// Header and bytes; the bytes are checked when it is known what they mean.
#[derive(Debug)]
pub(super) struct NpyArray {
    header: NpyHeader,
    bytes: Bytes,
}

/// A whole `.npy` file.
#[derive(Debug)]
pub(super) enum Bytes {
    /// Read by the system when they are asked for.
    Mapped(Mmap),
    /// Decompressed.
    Memory(Vec<u8>),
}

/// Images of an array with known sizes.
#[derive(Debug)]
struct NpyImages {
    bytes: Bytes,
    start: usize,
    image_bytes: usize,
}

impl Bytes {
    /// Maps a part of a file, which must be inside it.
    pub(super) fn map(path: &Path, offset: u64, length: usize) -> Result<Self> {
        let failed = |source| Error::Io { action: "read", path: path.into(), source };
        let file = std::fs::File::open(path).map_err(failed)?;
        // SAFETY: the map is only read. Data that changes while it is in use is outside what this
        // crate can guard against, for this way of reading as for any other.
        #[allow(unsafe_code)]
        let map = unsafe { MmapOptions::new().offset(offset).len(length).map(&file) };
        map.map(Self::Mapped).map_err(failed)
    }

    fn as_slice(&self) -> &[u8] {
        match self {
            Self::Mapped(map) => map,
            Self::Memory(bytes) => bytes,
        }
    }
}

impl NpyArray {
    /// Reads the header; the error says what is wrong with it.
    pub(super) fn new(bytes: Bytes) -> std::result::Result<Self, String> {
        Ok(Self { header: NpyHeader::parse(bytes.as_slice())?, bytes })
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
        let values = self.bytes.as_slice().get(*start..).unwrap_or_default();
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
        Ok(self.bytes.as_slice()[start..start + self.image_bytes].to_vec())
    }
}
