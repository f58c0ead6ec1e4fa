//! `preprocessor_config.json`, which says how images are prepared for an encoder, and to which one it belongs.
//!
//! The Hugging Face hub has one for a folder. Where several encoders lie in one, that of `clip.onnx` is
//! `clip.preprocessor_config.json`; and one that `lejepa export` has written names its encoder, so that it is
//! never taken for that of another one.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use lejepa_data::{Claim, Job, Overwrite};
use lejepa_embed::Preprocess;
use serde_json::Value;

/// What the hub calls it.
const NAME: &str = "preprocessor_config.json";
/// Names the file of the encoder inside.
const ENCODER: &str = "encoder_file";

/// How images are prepared.
pub(crate) fn read(path: &Path) -> Result<Preprocess> {
    let unreadable = || format!("cannot read: {}", path.display());
    Preprocess::from_hub(&parse(path)?).with_context(unreadable)
}

/// The description of an encoder beside it, if there is one.
pub(crate) fn find(encoder: &Path) -> Result<Option<PathBuf>> {
    let (own, shared) = (own(encoder), encoder.with_file_name(NAME));
    if own.is_file() {
        return Ok(Some(own));
    }
    let belongs = shared.is_file() && belongs_to(&parse(&shared)?, encoder);
    Ok(belongs.then_some(shared))
}

/// Writes a description beside an encoder, and nowhere over that of another one; says where.
pub(crate) fn write(encoder: &Path, description: &Value, overwrite: Overwrite) -> Result<PathBuf> {
    let mut description = description.clone();
    let shared = encoder.with_file_name(NAME);
    let is_free = |path: &Path| {
        let is_its_own = |found: Value| {
            (found.get(ENCODER).is_some() && belongs_to(&found, encoder)) || found == description
        };
        path.symlink_metadata().is_err() || parse(path).is_ok_and(is_its_own)
    };
    let path = if is_free(&shared) { shared } else { own(encoder) };
    let overwrite = if is_free(&path) { Overwrite::Always } else { overwrite };
    if let Some(fields) = description.as_object_mut() {
        fields.insert(ENCODER.into(), file_name(encoder).into());
    }
    let text = serde_json::to_string_pretty(&description)?;
    let claim = Claim::of_files(std::slice::from_ref(&path), Job::new("export", [encoder]), overwrite)?;
    claim.write(&path, format!("{text}\n").as_bytes())?;
    Ok(path)
}

/// One that names no encoder is that of its whole folder.
fn belongs_to(description: &Value, encoder: &Path) -> bool {
    description.get(ENCODER).is_none_or(|name| *name == *file_name(encoder))
}

fn parse(path: &Path) -> Result<Value> {
    let unreadable = || format!("cannot read: {}", path.display());
    let text = std::fs::read_to_string(path).with_context(unreadable)?;
    serde_json::from_str(&text).with_context(unreadable)
}

fn own(encoder: &Path) -> PathBuf {
    let stem = encoder.file_stem().unwrap_or_default().to_string_lossy();
    encoder.with_file_name(format!("{stem}.{NAME}"))
}

fn file_name(encoder: &Path) -> String {
    encoder.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_description_is_never_that_of_another_encoder() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let (first, second) = (at("first.onnx"), at("second.onnx"));
        assert_eq!(write(&first, &json!({ "size": 1 }), Overwrite::Never).unwrap(), at(NAME));
        assert_eq!(find(&first).unwrap(), Some(at(NAME)));
        assert_eq!(find(&second).unwrap(), None);
        assert_eq!(
            write(&second, &json!({ "size": 2 }), Overwrite::Never).unwrap(),
            at("second.preprocessor_config.json")
        );
        assert_eq!(find(&second).unwrap(), Some(at("second.preprocessor_config.json")));
        // Again, with another content: its own file.
        assert_eq!(write(&first, &json!({ "size": 3 }), Overwrite::Never).unwrap(), at(NAME));
        assert_eq!(parse(&at(NAME)).unwrap()["size"], 3);
    }

    #[test]
    fn a_description_of_somebody_else_stays() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for theirs in ["{\"size\": 7}", "no json"] {
            std::fs::write(at(NAME), theirs).unwrap();
            let written = write(&at("encoder.onnx"), &json!({ "size": 1 }), Overwrite::Never).unwrap();
            assert_eq!(written, at("encoder.preprocessor_config.json"));
            assert_eq!(std::fs::read_to_string(at(NAME)).unwrap(), theirs);
        }
        let own = at("encoder.preprocessor_config.json");
        std::fs::write(&own, "{\"size\": 8}").unwrap();
        let refused = write(&at("encoder.onnx"), &json!({ "size": 1 }), Overwrite::Never).unwrap_err();
        assert!(refused.to_string().ends_with("encoder.preprocessor_config.json"), "{refused}");
        assert_eq!(std::fs::read_to_string(&own).unwrap(), "{\"size\": 8}");
        write(&at("encoder.onnx"), &json!({ "size": 1 }), Overwrite::Always).unwrap();
        std::fs::write(at(NAME), "{\"size\": 7}").unwrap();
        assert_eq!(find(&at("clip.onnx")).unwrap(), Some(at(NAME)));
    }
}
