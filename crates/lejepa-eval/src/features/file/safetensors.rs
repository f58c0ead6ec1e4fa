//! The safetensors format: the length of a JSON header, the header, and the values one tensor after the
//! other. The library wants all of them in memory; here they pass by.

use std::io::{Read, Write};
use std::path::Path;

use lejepa_data::regular_file;
use serde_json::json;

use super::{FeaturePrecision, write_rows};
use crate::features::Extracted;
use crate::sets::ImageList;
use crate::{Error, Result};

/// What a file says of itself, as JSON.
pub(super) fn description(path: &Path) -> Option<Vec<u8>> {
    /// Those that are written here are far shorter.
    const LONGEST: u64 = 1 << 20;
    let mut file = regular_file::open(path).ok()?;
    let mut length = [0; 8];
    file.read_exact(&mut length).ok()?;
    let mut header = Vec::new();
    file.take(u64::from_le_bytes(length).min(LONGEST)).read_to_end(&mut header).ok()?;
    let header: serde_json::Value = serde_json::from_slice(&header).ok()?;
    serde_json::to_vec(header.get("__metadata__")?).ok()
}

pub(super) fn write(
    file: &mut dyn Write,
    features: &Extracted,
    images: &ImageList,
    precision: FeaturePrecision,
    about: &[(&str, String)],
) -> Result<()> {
    let rows = features.indices.len();
    let (values, labels) = (precision.bytes() * rows * features.dim, 8 * rows);
    let about: serde_json::Map<_, _> =
        about.iter().map(|(name, value)| (name.to_string(), value.as_str().into())).collect();
    // Labels first: features of two bytes might leave them at an odd place.
    let header = json!({
        "__metadata__": about,
        "labels": { "dtype": "I64", "shape": [rows], "data_offsets": [0, labels] },
        "features": { "dtype": precision.name().to_uppercase(), "shape": [rows, features.dim], "data_offsets": [labels, labels + values] },
    })
    .to_string();
    // Padded with spaces: values start at a multiple of eight bytes.
    let length = header.len().next_multiple_of(8);
    file.write_all(&(length as u64).to_le_bytes()).map_err(Error::Write)?;
    file.write_all(format!("{header:<length$}").as_bytes()).map_err(Error::Write)?;
    for &index in &features.indices {
        let label = images.info(index).label.map_or(-1, |label| label as i64);
        file.write_all(&label.to_le_bytes()).map_err(Error::Write)?;
    }
    write_rows(file, features, precision)
}
