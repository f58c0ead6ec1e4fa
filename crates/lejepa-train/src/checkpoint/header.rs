//! What a checkpoint says about itself, in the metadata of the safetensors file.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use lejepa_data::SeenImages;
use serde::{Deserialize, Serialize};

use crate::TrainConfig;

pub(super) const FORMAT: u32 = 1;
pub(super) const KEY: &str = "lejepa";

#[derive(Serialize, Deserialize)]
pub(super) struct Header {
    pub(super) format: u32,
    pub(super) step: u64,
    /// Mean over the steps since the checkpoint before; nothing before the first step.
    pub(super) loss: Option<f64>,
    pub(super) data_fingerprint: String,
    /// Absent in files of versions that did not write it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) seen: Option<SeenImages>,
    /// Of all tensors, see [`digest`].
    pub(super) blake3: String,
    pub(super) config: TrainConfig,
}

/// The beginning of any safetensors file, but for the places of its tensors.
#[derive(Deserialize)]
struct SafetensorsHeader {
    #[serde(rename = "__metadata__", default)]
    metadata: HashMap<String, String>,
}

impl Header {
    /// Reads the header at the start of a file; the tensors need not be there.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, String> {
        let (length, rest) = bytes.split_first_chunk::<8>().ok_or("it is empty")?;
        let length = usize::try_from(u64::from_le_bytes(*length)).map_err(|error| error.to_string())?;
        let text = rest.get(..length).ok_or("its header is cut off")?;
        let header: SafetensorsHeader = serde_json::from_slice(text).map_err(|error| error.to_string())?;
        let text = header.metadata.get(KEY).ok_or(format!("no `{KEY}` metadata"))?;
        let header: Self = serde_json::from_str(text).map_err(|error| error.to_string())?;
        if header.format == FORMAT {
            Ok(header)
        } else {
            Err(format!("format {} is not known, expected {FORMAT}", header.format))
        }
    }
}

/// A fingerprint of tensors by name, whatever their order.
pub(super) fn digest<'a>(tensors: impl Iterator<Item = (String, Cow<'a, [u8]>)>) -> String {
    let digests: BTreeMap<String, blake3::Hash> =
        tensors.map(|(name, bytes)| (name, blake3::hash(&bytes))).collect();
    let mut all = blake3::Hasher::new();
    for (name, digest) in &digests {
        all.update(&(name.len() as u64).to_le_bytes()).update(name.as_bytes()).update(digest.as_bytes());
    }
    all.finalize().to_hex().to_string()
}
