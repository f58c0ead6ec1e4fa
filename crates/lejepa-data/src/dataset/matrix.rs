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
    let not_features =
        |problem: &str| Error::Invalid { format: "features", path: path.into(), problem: problem.into() };
    if !path.is_file() {
        // A pipe would be waited for, for ever.
        return Err(not_features("it is not a regular file"));
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
        return Err(not_features("its name ends in neither .npy nor .safetensors"));
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

#[cfg(test)]
mod tests {
    use safetensors::serialize;

    use super::super::array_fixtures::{fixture, written};
    use super::*;

    /// A `.npy` file of version 1.
    fn npy_file(descr: &str, fortran_order: &str, shape: &str, values: &[u8]) -> Vec<u8> {
        let text = format!("{{'descr': '{descr}', 'fortran_order': {fortran_order}, 'shape': {shape}, }}\n");
        [b"\x93NUMPY\x01\x00", &(text.len() as u16).to_le_bytes()[..], text.as_bytes(), values].concat()
    }

    fn read(name: &str, bytes: &[u8], tensor: Option<&str>) -> Result<Matrix> {
        let (_folder, path) = written(name, bytes);
        read_matrix(&path, tensor)
    }

    fn problem(name: &str, bytes: &[u8], tensor: Option<&str>) -> String {
        read(name, bytes, tensor).unwrap_err().to_string()
    }

    fn bytes<const SIZE: usize>(value: impl Fn(u8) -> [u8; SIZE]) -> Vec<u8> {
        (1..=6).flat_map(value).collect()
    }

    const ROWS: [f32; 6] = [1., 2., 3., 4., 5., 6.];

    fn rows() -> Matrix {
        Matrix { rows: 2, columns: 3, values: MatrixValues::Single(ROWS.to_vec()) }
    }

    #[test]
    fn numpy_arrays_of_all_precisions_and_orders_are_the_same_matrix() {
        let half = bytes(|value| f16::from_f32(value.into()).to_le_bytes());
        let single = bytes(|value| f32::from(value).to_le_bytes());
        let reversed = bytes(|value| f32::from(value).to_be_bytes());
        for (descr, values) in [("<f2", half), ("<f4", single), (">f4", reversed)] {
            assert_eq!(read("a.npy", &npy_file(descr, "False", "(2, 3)", &values), None).unwrap(), rows());
        }
        let double = npy_file("<f8", "False", "(2, 3)", &bytes(|value| f64::from(value).to_le_bytes()));
        let values = MatrixValues::Double(ROWS.map(f64::from).to_vec());
        assert_eq!(read("a.npy", &double, None).unwrap(), Matrix { values, ..rows() });
        let columns: Vec<u8> =
            [1f32, 4., 2., 5., 3., 6.].iter().flat_map(|value| value.to_le_bytes()).collect();
        // The name does not matter where the content is clear.
        assert_eq!(read("a", &npy_file("<f4", "True", "(2, 3)", &columns), None).unwrap(), rows());
    }

    #[test]
    fn damaged_arrays_are_named_with_the_cause() {
        let values = bytes(|value| f32::from(value).to_le_bytes());
        let huge = format!("({}, 3)", u64::MAX / 2);
        for (file, cause) in [
            (npy_file("<f4", "False", "(2, 4)", &values), "expected 32 bytes for shape [2, 4], got 24"),
            (npy_file("<f4", "False", "(2, 2)", &values), "expected 16 bytes for shape [2, 2], got 24"),
            (npy_file("<f4", "False", "(1000000, 1000000)", &values), "expected 4000000000000 bytes"),
            (npy_file("<f4", "False", &huge, &values), "expected too many bytes"),
            (
                npy_file("<f4", "False", "(6,)", &values),
                "expected two axes, samples and dimensions, got shape [6]",
            ),
            (npy_file("<i4", "False", "(2, 3)", &values), "values are int32, expected float16"),
            (b"no array at all".to_vec(), "does not begin with"),
            (Vec::new(), "does not begin with"),
        ] {
            let message = problem("a.npy", &file, None);
            assert!(message.contains(cause) && message.contains("a.npy"), "{message}");
        }
        let whole = npy_file("<f4", "False", "(2, 3)", &values);
        for length in 0..whole.len() {
            assert!(read("a.npy", &whole[..length], None).is_err(), "{length}");
        }
        assert!(
            problem("a.npy", &whole, Some("x")).contains("`tensor` must be absent for a .npy file, got: x")
        );
        assert!(problem("a.bin", b"other", None).contains("neither .npy nor .safetensors"));
        let missing = read_matrix(Path::new("nowhere.npy"), None).unwrap_err();
        assert_eq!(missing.to_string(), "no such file or folder: nowhere.npy");
        let folder = read_matrix(&fixture("npy"), None).unwrap_err().to_string();
        assert!(folder.starts_with("not a valid features file (it is not a regular file)"), "{folder}");
    }

    fn safetensors_file(tensors: &[(&str, Dtype, &[usize], &[u8])]) -> Vec<u8> {
        let views = tensors.iter().map(|(name, kind, shape, values)| {
            (*name, TensorView::new(*kind, shape.to_vec(), values).unwrap())
        });
        serialize(views, None).unwrap()
    }

    #[test]
    fn the_only_matrix_of_a_safetensors_file_needs_no_name() {
        let half = bytes(|value| f16::from_f32(value.into()).to_le_bytes());
        let brain = bytes(|value| bf16::from_f32(value.into()).to_le_bytes());
        let single = bytes(|value| f32::from(value).to_le_bytes());
        for (kind, values) in [(Dtype::F16, half), (Dtype::BF16, brain), (Dtype::F32, single)] {
            let file = safetensors_file(&[
                ("features", kind, &[2, 3], &values),
                ("labels", Dtype::U8, &[2], &[0, 1]),
            ]);
            assert_eq!(read("a.safetensors", &file, None).unwrap(), rows());
        }
    }

    #[test]
    fn several_matrices_are_listed() {
        let single = bytes(|value| f32::from(value).to_le_bytes());
        let file = safetensors_file(&[
            ("test", Dtype::F32, &[3, 2], &single),
            ("train", Dtype::F32, &[2, 3], &single),
            ("labels", Dtype::U8, &[2], &[0, 1]),
        ]);
        assert_eq!(read("a.safetensors", &file, Some("train")).unwrap(), rows());
        let listed = "`tensor` must be one of test (3x2), train (2x3), got: ";
        assert_eq!(problem("a.safetensors", &file, None), format!("{listed}nothing"));
        assert_eq!(problem("a.safetensors", &file, Some("x")), format!("{listed}x"));
        let message = problem("a.safetensors", &file, Some("labels"));
        assert!(message.contains("values are of type U8"), "{message}");
        let none = safetensors_file(&[("labels", Dtype::U8, &[2], &[0, 1])]);
        assert!(problem("a.safetensors", &none, None).contains("of which the file has none"));
        for length in 0..file.len() {
            assert!(read("a.safetensors", &file[..length], Some("train")).is_err(), "{length}");
        }
        let message = problem("a.safetensors", &[0xff; 100], None);
        assert!(message.starts_with("not a valid safetensors file (") && message.ends_with("a.safetensors"));
    }
}
