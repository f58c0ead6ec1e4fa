//! What decides every number of an extraction.

use lejepa_embed::Computation;
use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// Extractions with the same key give the same rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Key {
    /// [`Key::FORMAT`] of the program that wrote it; others are not trusted.
    pub format: u32,
    /// What computes.
    pub computation: Computation,
    /// The fingerprint of the images.
    pub data: String,
    /// Their number.
    pub images: usize,
}

impl Key {
    /// Counts changes of what a part holds and of what a key says.
    pub const FORMAT: u32 = 4;

    /// A short hash.
    pub fn name(&self) -> Result<String> {
        let json = serde_json::to_vec(self).map_err(Error::Json)?;
        Ok(blake3::hash(&json).to_hex()[..24].to_string())
    }

    /// What another one has otherwise, in words; nothing if they are equal.
    pub(super) fn differences(&self, other: &Self) -> Vec<&'static str> {
        let (own, others) = (&self.computation, &other.computation);
        let mut differences = self.differences_of_content(other);
        differences
            .extend([("batch", own.batch != others.batch)].iter().filter(|(_, new)| *new).map(|f| f.0));
        let machine = [
            ("device", own.provider != others.provider),
            ("version of ONNX Runtime", own.runtime != others.runtime),
        ];
        differences.extend(machine.iter().filter(|(_, other)| *other).map(|(name, _)| name));
        differences
    }

    /// The same without where and in what portions it was computed.
    pub(super) fn differences_of_content(&self, other: &Self) -> Vec<&'static str> {
        let (own, others) = (&self.computation, &other.computation);
        let version =
            (self.format, own.version, own.decoding) != (other.format, others.version, others.decoding);
        let content = [
            ("version of this program", version),
            ("encoder", own.encoder != others.encoder),
            ("output", own.output != others.output),
            ("preprocessing", own.preprocess != others.preprocess),
            ("--normalise", own.normalised != others.normalised),
            ("images", (&self.data, self.images) != (&other.data, other.images)),
        ];
        content.iter().filter(|(_, other)| *other).map(|(name, _)| *name).collect()
    }
}
