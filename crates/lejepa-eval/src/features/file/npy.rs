//! NumPy's format, version 1.0: a magic number, the length of a header, a Python dictionary padded to a
//! multiple of 64 bytes, and the values.

use std::io::Write;

use super::{FeaturePrecision, write_rows};
use crate::features::Extracted;
use crate::{Error, Result};

pub(super) fn write(file: &mut dyn Write, features: &Extracted, precision: FeaturePrecision) -> Result<()> {
    let shape = (features.indices.len(), features.dim);
    let kind = format!("<f{}", precision.bytes());
    let dictionary = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape:?}, }}");
    let length = (10 + dictionary.len() + 1).next_multiple_of(64) - 10;
    let mut header = b"\x93NUMPY\x01\x00".to_vec();
    header.extend((length as u16).to_le_bytes());
    header.extend(format!("{dictionary:<width$}\n", width = length - 1).bytes());
    file.write_all(&header).map_err(Error::Write)?;
    write_rows(file, features, precision)
}
