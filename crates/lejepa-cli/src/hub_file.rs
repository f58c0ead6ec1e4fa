//! `preprocessor_config.json`, which says how images are prepared for an encoder, and to which one it belongs.
//!
//! The Hugging Face hub has one for a folder. Where several encoders lie in one, that of `clip.onnx` is
//! `clip.preprocessor_config.json`; and one that `lejepa export` has written names its encoder, so that it is
//! never taken for that of another one.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use lejepa_data::{Claim, Job, Overwrite, regular_file};
use lejepa_embed::Preprocess;
use serde_json::Value;

/// What the hub calls it.
const NAME: &str = "preprocessor_config.json";
/// Names the file of the encoder inside.
const ENCODER: &str = "encoder_file";

/// How images are prepared. The user may have named a pipe.
pub(crate) fn read(path: &Path) -> Result<Preprocess> {
    let unreadable = || format!("cannot read: {}", path.display());
    let text = std::fs::read_to_string(path).with_context(unreadable)?;
    Preprocess::from_hub(&serde_json::from_str(&text).with_context(unreadable)?).with_context(unreadable)
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

/// A description that may be written beside an encoder.
#[derive(Debug)]
pub(crate) struct Description {
    path: PathBuf,
    text: String,
    claim: Claim,
}

impl Description {
    /// Finds a place for it: never that of another encoder, and not over one that somebody has edited.
    pub(crate) fn prepare(encoder: &Path, description: &Value, overwrite: Overwrite) -> Result<Self> {
        let mut named = description.clone();
        if let Some(fields) = named.as_object_mut() {
            fields.insert(ENCODER.into(), file_name(encoder).into());
        }
        let shared = encoder.with_file_name(NAME);
        let found = parse(&shared).ok();
        let is_its_own = |found: &Value| found.get(ENCODER).is_some() && belongs_to(found, encoder);
        let is_same = |found: &Value| *found == named || found == description;
        let is_free = shared.symlink_metadata().is_err()
            || found.is_some_and(|found| is_its_own(&found) || is_same(&found));
        let path = if is_free { shared } else { own(encoder) };
        // The same once more is no loss.
        let is_there = !path.is_symlink() && parse(&path).is_ok_and(|found| is_same(&found));
        let overwrite = if is_there { Overwrite::Always } else { overwrite };
        let job = Job::new("export", []).with_content(&file_name(encoder));
        let claim = Claim::of_files(std::slice::from_ref(&path), job, overwrite)?;
        Ok(Self { text: serde_json::to_string_pretty(&named)? + "\n", path, claim })
    }

    /// Writes it; says where.
    pub(crate) fn write(self) -> Result<PathBuf> {
        self.claim.write(&self.path, self.text.as_bytes())?;
        Ok(self.path)
    }
}

/// One that names no encoder is that of its whole folder.
fn belongs_to(description: &Value, encoder: &Path) -> bool {
    description.get(ENCODER).is_none_or(|name| *name == *file_name(encoder))
}

fn parse(path: &Path) -> Result<Value> {
    let unreadable = || format!("cannot read: {}", path.display());
    let text = regular_file::read_to_string(path).with_context(unreadable)?;
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

    fn write(encoder: &Path, description: &Value, overwrite: Overwrite) -> Result<PathBuf> {
        Description::prepare(encoder, description, overwrite)?.write()
    }

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
    fn a_description_that_somebody_has_edited_stays() {
        let folder = tempfile::tempdir().unwrap();
        let (encoder, path) = (folder.path().join("encoder.onnx"), folder.path().join(NAME));
        let put = |size: u8, overwrite| write(&encoder, &json!({ "size": size }), overwrite);
        put(1, Overwrite::Never).unwrap();
        let edited = std::fs::read_to_string(&path).unwrap().replace('1', "7");
        std::fs::write(&path, &edited).unwrap();
        assert!(put(1, Overwrite::Never).unwrap_err().to_string().contains("replaced only with --overwrite"));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), edited);
        put(1, Overwrite::Always).unwrap();
        // Of an earlier version, which kept no ledger: the same is no loss.
        std::fs::remove_file(folder.path().join(".made-by.jsonl")).unwrap();
        put(1, Overwrite::Never).unwrap();
        put(2, Overwrite::Never).unwrap();
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
