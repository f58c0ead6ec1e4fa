//! Matrices of features as numpy and safetensors store them.
//!
//! Files are untrusted: sizes that a header promises are compared with the bytes that are there before
//! anything is allocated.

use std::path::Path;

use bytes::Bytes;
use half::{bf16, f16};
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};

use super::mapped_file;
use super::npy_header::{Float, MAGIC, NpyHeader};
use crate::{Error, Result};

/// A matrix in memory, row after row.
#[derive(Debug, Clone, PartialEq)]
pub struct Matrix {
    /// Number of rows: samples.
    pub rows: usize,
    /// Number of columns: dimensions.
    pub columns: usize,
    /// `rows * columns` values.
    pub values: MatrixValues,
}

/// Values in the precision they were stored in; 16 bits become 32.
#[derive(Debug, Clone, PartialEq)]
pub enum MatrixValues {
    /// Single precision.
    Single(Vec<f32>),
    /// Double precision.
    Double(Vec<f64>),
}

/// How many names an error lists.
const LISTED: usize = 20;

/// Reads a `.npy` or `.safetensors` file with floating-point numbers on two axes.
///
/// `tensor` names one of several tensors of a safetensors file.
pub fn read_matrix(path: &Path, tensor: Option<&str>) -> Result<Matrix> {
    if !path.exists() {
        return Err(Error::NotFound { path: path.into() });
    }
    let bytes = mapped_file::map(path)?;
    let has_extension =
        |extension: &str| path.extension().is_some_and(|found| found.eq_ignore_ascii_case(extension));
    if bytes.starts_with(MAGIC) || has_extension("npy") {
        if let Some(got) = tensor {
            return Err(Error::Setting {
                field: "tensor",
                expected: "absent for a .npy file".into(),
                got: got.into(),
            });
        }
        return npy(&bytes).map_err(|problem| Error::Invalid { format: "npy", path: path.into(), problem });
    }
    let invalid = |problem| Error::Invalid { format: "safetensors", path: path.into(), problem };
    if !has_extension("safetensors") {
        let problem = "its name ends in neither .npy nor .safetensors".into();
        return Err(Error::Invalid { format: "features", path: path.into(), problem });
    }
    let file = SafeTensors::deserialize(&bytes).map_err(|error| invalid(error.to_string()))?;
    stored_tensor(&choose(&file, tensor)?).map_err(invalid)
}

/// The named tensor, or the only one that can be meant.
fn choose<'a>(file: &SafeTensors<'a>, name: Option<&str>) -> Result<TensorView<'a>> {
    let mut matrices: Vec<_> = file.iter().filter(|(_, tensor)| tensor.shape().len() == 2).collect();
    matrices.sort_by_key(|(name, _)| *name);
    match (name, &matrices[..]) {
        (None, [(_, only)]) => return Ok(only.clone()),
        (Some(name), _) if file.names().contains(&name) => {
            if let Ok(tensor) = file.tensor(name) {
                return Ok(tensor);
            }
        }
        _ => (),
    }
    let names = matrices.iter().take(LISTED).map(|(name, tensor)| {
        let shape = tensor.shape().iter().map(usize::to_string).collect::<Vec<_>>().join("x");
        format!("{name} ({shape})")
    });
    let mut names: Vec<String> = names.collect();
    if matrices.len() > LISTED {
        names.push(format!("{} more", matrices.len() - LISTED));
    }
    let expected = if names.is_empty() {
        "a tensor with two axes, of which the file has none".into()
    } else {
        format!("one of {}", names.join(", "))
    };
    Err(Error::Setting { field: "tensor", expected, got: name.unwrap_or("nothing").into() })
}

fn stored_tensor(tensor: &TensorView<'_>) -> std::result::Result<Matrix, String> {
    let float = |size| Float { size, big_endian: false };
    let kind = match tensor.dtype() {
        Dtype::F16 => Kind::Float(float(2)),
        Dtype::BF16 => Kind::Brain,
        Dtype::F32 => Kind::Float(float(4)),
        Dtype::F64 => Kind::Float(float(8)),
        other => return Err(wrong_type(&format!("of type {other:?}"))),
    };
    Values { kind, shape: tensor.shape(), fortran_order: false, bytes: tensor.data() }.read()
}

fn npy(bytes: &Bytes) -> std::result::Result<Matrix, String> {
    let header = NpyHeader::parse(bytes)?;
    let kind = Kind::Float(header.float().ok_or_else(|| wrong_type(&header.type_name()))?);
    let NpyHeader { fortran_order, start, ref shape, .. } = header;
    Values { kind, shape, fortran_order, bytes: bytes.get(start..).unwrap_or_default() }.read()
}

fn wrong_type(got: &str) -> String {
    format!("values are {got}, expected float16, bfloat16, float32 or float64")
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    Float(Float),
    /// bfloat16
    Brain,
}

/// Values as they lie in a file.
struct Values<'a> {
    kind: Kind,
    shape: &'a [usize],
    fortran_order: bool,
    bytes: &'a [u8],
}

impl Values<'_> {
    fn read(&self) -> std::result::Result<Matrix, String> {
        let &[rows, columns] = self.shape else {
            return Err(format!("expected two axes, samples and dimensions, got shape {:?}", self.shape));
        };
        let size = match self.kind {
            Kind::Float(float) => float.size,
            Kind::Brain => 2,
        };
        let length = rows.checked_mul(columns).and_then(|count| count.checked_mul(size));
        if length != Some(self.bytes.len()) {
            let (shape, got) = (self.shape, self.bytes.len());
            let expected = length.map_or("too many".into(), |length| length.to_string());
            return Err(format!("expected {expected} bytes for shape {shape:?}, got {got}"));
        }
        let big_endian = matches!(self.kind, Kind::Float(Float { big_endian: true, .. }));
        let values = match (self.kind, size) {
            (Kind::Brain, _) => {
                MatrixValues::Single(self.rows(|bytes| bf16::from_le_bytes(bytes).to_f32(), big_endian))
            }
            (_, 2) => MatrixValues::Single(self.rows(|bytes| f16::from_le_bytes(bytes).to_f32(), big_endian)),
            (_, 4) => MatrixValues::Single(self.rows(f32::from_le_bytes, big_endian)),
            _ => MatrixValues::Double(self.rows(f64::from_le_bytes, big_endian)),
        };
        Ok(Matrix { rows, columns, values })
    }

    /// All values row after row; `value` takes little-endian bytes.
    fn rows<T, const SIZE: usize>(&self, value: fn([u8; SIZE]) -> T, big_endian: bool) -> Vec<T> {
        let (stored, _rest) = self.bytes.as_chunks::<SIZE>();
        let value = |bytes: &[u8; SIZE]| {
            let mut bytes = *bytes;
            if big_endian {
                bytes.reverse();
            }
            value(bytes)
        };
        match *self.shape {
            [rows, columns] if self.fortran_order => {
                let column = |row: usize| (0..columns).map(move |column| column * rows + row);
                (0..rows).flat_map(column).map(|index| value(&stored[index])).collect()
            }
            _ => stored.iter().map(value).collect(),
        }
    }
}
