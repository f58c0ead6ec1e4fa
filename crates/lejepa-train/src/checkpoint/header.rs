//! What a checkpoint says about itself, in the metadata of the safetensors file.
//!
//! Three things can be wrong with it, and they are told apart: it is damaged (its checksum says so), it was written
//! in another format, or in this format by a version whose configuration has keys that this one does not know. Only
//! the first is a reason to do without the file.

use lejepa_data::SeenImages;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::understood::understood;
use crate::{Change, TrainConfig};

pub(super) const FORMAT: u32 = 1;
pub(super) const KEY: &str = "lejepa";
/// The entry with the hash of all others, as they stand in the file.
const CHECKSUM: &str = "checksum";

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Header {
    pub(super) format: u32,
    /// The version of the program; absent in files of versions that did not write it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) program: Option<String>,
    pub(super) step: u64,
    /// Mean over the steps since the checkpoint before; nothing before the first step.
    pub(super) loss: Option<f64>,
    pub(super) data_fingerprint: String,
    /// Absent in files of versions that did not write it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) seen: Option<SeenImages>,
    /// What was changed on the way.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) changes: Vec<Change>,
    /// Of all tensors, see [`super::tensors::Digest`].
    pub(super) blake3: String,
    pub(super) config: TrainConfig,
}

/// Why a header cannot be used.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unreadable {
    Damaged(String),
    /// It is what somebody wrote, but not what this version reads.
    OtherVersion(String),
}

impl Header {
    /// As the text of a metadata entry.
    pub(super) fn to_text(&self) -> serde_json::Result<String> {
        let mut entries = match serde_json::to_value(self)? {
            Value::Object(entries) => entries,
            _ => Map::new(),
        };
        let checksum = checksum_of(&entries);
        entries.insert(CHECKSUM.into(), checksum.into());
        serde_json::to_string(&entries)
    }

    /// Reads what this version has written, or another one that says the same.
    pub(super) fn parse(text: &str) -> Result<Self, Unreadable> {
        let entries = checked(text)?;
        let format = format_of(&entries)?;
        if format != u64::from(FORMAT) {
            let problem = format!("its format is {format}, this program reads {FORMAT}");
            let age = if format > u64::from(FORMAT) { "newer" } else { "older" };
            return Err(Unreadable::OtherVersion(format!("{age}: {problem}")));
        }
        let program = entries.get("program").and_then(Value::as_str).unwrap_or("not known").to_string();
        serde_json::from_value(Value::Object(entries))
            .map_err(|error| Unreadable::OtherVersion(format!("program version {program}: {error}")))
    }

    /// Reads as much as this version understands, whoever has written it, for its weights. Also the keys of the
    /// configuration that are left out.
    pub(super) fn parse_any(text: &str) -> Result<(Self, Vec<String>), Unreadable> {
        let entries = checked(text)?;
        let text_of = |name: &str| entries.get(name).and_then(Value::as_str).map(str::to_string);
        fn part<T: serde::de::DeserializeOwned>(entries: &Map<String, Value>, name: &str) -> Option<T> {
            serde_json::from_value(entries.get(name)?.clone()).ok()
        }
        let (config, left_out) = understood(entries.get("config").cloned().unwrap_or_default());
        let header = Self {
            format: format_of(&entries)?.try_into().unwrap_or(u32::MAX),
            program: text_of("program"),
            step: part(&entries, "step").unwrap_or_default(),
            loss: part(&entries, "loss"),
            data_fingerprint: text_of("data_fingerprint").unwrap_or_default(),
            seen: part(&entries, "seen"),
            changes: part(&entries, "changes").unwrap_or_default(),
            blake3: text_of("blake3").unwrap_or_default(),
            config,
        };
        Ok((header, left_out))
    }
}

/// The entries, unless they are not what was written. Versions before the checksum wrote none.
fn checked(text: &str) -> Result<Map<String, Value>, Unreadable> {
    let mut entries: Map<String, Value> =
        serde_json::from_str(text).map_err(|error| Unreadable::Damaged(error.to_string()))?;
    let changed = || Unreadable::Damaged("its header has changed since it was written".into());
    match entries.get(CHECKSUM).cloned() {
        Some(expected) => {
            // Not `remove`, which may change the order of the others.
            entries = entries.into_iter().filter(|(name, _)| name != CHECKSUM).collect();
            if expected != checksum_of(&entries) {
                return Err(changed());
            }
        }
        // Whoever writes the one writes the other.
        None if entries.contains_key("program") => return Err(changed()),
        None => {}
    }
    Ok(entries)
}

fn checksum_of(entries: &Map<String, Value>) -> String {
    let text = serde_json::to_string(entries).unwrap_or_default();
    blake3::hash(text.as_bytes()).to_hex()[..32].to_string()
}

fn format_of(entries: &Map<String, Value>) -> Result<u64, Unreadable> {
    entries
        .get("format")
        .and_then(Value::as_u64)
        .ok_or_else(|| Unreadable::Damaged("its header says no format".into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> Header {
        Header {
            format: FORMAT,
            program: Some("0.1.0".into()),
            step: 20,
            loss: Some(0.1 + 0.2),
            data_fingerprint: "data".into(),
            seen: None,
            changes: Vec::new(),
            blake3: "tensors".into(),
            config: TrainConfig::load(None, &[]).unwrap(),
        }
    }

    /// The text of a header that another version could have written.
    fn other(change: impl FnOnce(&mut Value)) -> String {
        let mut value = serde_json::to_value(header()).unwrap();
        change(&mut value);
        let mut entries = value.as_object().unwrap().clone();
        let checksum = checksum_of(&entries);
        entries.insert(CHECKSUM.into(), checksum.into());
        serde_json::to_string(&entries).unwrap()
    }

    #[test]
    fn a_header_survives_its_text_and_any_changed_letter_is_noticed() {
        let text = header().to_text().unwrap();
        let read = Header::parse(&text).unwrap();
        assert_eq!((read.step, read.loss, &read.config), (20, Some(0.1 + 0.2), &header().config));
        for place in (0..text.len()).step_by(7) {
            let mut bytes = text.clone().into_bytes();
            bytes[place] ^= 1;
            let Ok(changed) = String::from_utf8(bytes) else { continue };
            assert!(matches!(Header::parse(&changed), Err(Unreadable::Damaged(_))), "{place}: {changed}");
        }
    }

    #[test]
    fn another_version_is_not_damage() {
        let newer = other(|header| header["format"] = 2.into());
        let problem = "newer: its format is 2, this program reads 1";
        assert_eq!(Header::parse(&newer).unwrap_err(), Unreadable::OtherVersion(problem.into()));
        let unknown = other(|header| header["config"]["train"]["warp"] = 9.into());
        let problem = Header::parse(&unknown).unwrap_err();
        assert!(matches!(&problem, Unreadable::OtherVersion(text) if text.contains("`warp`")), "{problem:?}");
    }

    #[test]
    fn of_another_version_everything_is_read_that_is_understood() {
        let newer = other(|header| {
            header["format"] = 2.into();
            header["config"]["train"]["warp"] = 9.into();
            header["config"]["train"]["epochs"] = serde_json::json!({ "of": "another kind" });
            header["config"]["engine"] = serde_json::json!({ "kind": "impulse" });
            header["step"] = 33.into();
        });
        let (read, left_out) = Header::parse_any(&newer).unwrap();
        assert_eq!((read.step, read.format), (33, 2));
        assert_eq!(left_out, ["train.epochs", "train.warp", "engine"]);
        let mut expected = header().config;
        expected.train.epochs = None;
        assert_eq!(read.config, expected);
    }
}
