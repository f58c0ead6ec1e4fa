//! Commands write what they were asked for, and nothing over what is somebody's.

#![allow(clippy::unwrap_used)]

mod fixture;

use std::path::Path;

use fixture::{lejepa, lejepa_succeeds, workspace};

fn exported() -> tempfile::TempDir {
    let folder = workspace();
    lejepa_succeeds(folder.path(), &["train", "--config", "train.toml", "--out", "run", "--epochs", "1"]);
    lejepa_succeeds(folder.path(), &["export", "run"]);
    folder
}

fn refused(folder: &Path, arguments: &[&str]) -> String {
    let output = lejepa(folder, arguments);
    assert_eq!(output.status.code(), Some(1), "{arguments:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn vectors_and_what_lies_beside_them_replace_nothing_unless_told() {
    let folder = exported();
    let path = folder.path();
    let embed = ["embed", "data", "--encoder", "encoder.onnx", "--out", "mine.npy"];
    for theirs in ["mine.npy", "mine.csv", "mine.npy.json", "mine.npy.broken.jsonl"] {
        std::fs::write(path.join(theirs), "mine").unwrap();
        let said = refused(path, &embed);
        assert!(said.contains(&format!("replaced only with --overwrite: {theirs}")), "{said}");
        assert_eq!(std::fs::read_to_string(path.join(theirs)).unwrap(), "mine");
        assert!(!path.join("mine.npy.parts").exists());
        std::fs::remove_file(path.join(theirs)).unwrap();
    }
    std::fs::write(path.join("mine.csv"), "mine").unwrap();
    lejepa_succeeds(path, &[&embed[..], &["--overwrite"]].concat());
    assert!(std::fs::read_to_string(path.join("mine.csv")).unwrap().starts_with("row,id"));
    // A table of its own is no part of a file that holds ids itself.
    let parquet = ["embed", "data", "--encoder", "encoder.onnx", "--out", "mine.parquet"];
    lejepa_succeeds(path, &parquet);

    // What else lies in the folder of the parts stays.
    std::fs::create_dir(path.join("other.npy.parts")).unwrap();
    std::fs::write(path.join("other.npy.parts/notes.txt"), "mine").unwrap();
    lejepa_succeeds(path, &["embed", "data", "--encoder", "encoder.onnx", "--out", "other.npy"]);
    assert_eq!(std::fs::read_dir(path.join("other.npy.parts")).unwrap().count(), 1);
}

#[test]
fn a_description_of_another_encoder_is_neither_replaced_nor_believed() {
    let folder = exported();
    let path = folder.path();
    let shared = path.join("preprocessor_config.json");
    let theirs = std::fs::read_to_string(&shared).unwrap().replace("16", "24");
    std::fs::write(&shared, theirs.replace("\"encoder_file\": \"encoder.onnx\"", "\"note\": \"clip\""))
        .unwrap();
    let before = std::fs::read(&shared).unwrap();
    let output = lejepa_succeeds(path, &["export", "run", "--out", "second.onnx"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("for other tools: second.preprocessor_config.json"), "{said}");
    assert_eq!(std::fs::read(&shared).unwrap(), before);

    // An encoder of another project beside a description that names its own encoder.
    std::fs::remove_file(&shared).unwrap();
    lejepa_succeeds(path, &["export", "run", "--outputs", "embedding"]);
    assert!(shared.exists());
    let bytes = std::fs::read(path.join("encoder.onnx")).unwrap();
    let foreign = nameless(&bytes);
    std::fs::write(path.join("clip.onnx"), &foreign).unwrap();
    let eval = ["eval", "clip.onnx", "--suite", "knn", "--data", "data", "--out", "report"];
    let output = lejepa(path, &eval);
    assert!(!output.status.success());
    std::fs::copy(&shared, path.join("clip.preprocessor_config.json")).unwrap();
    let said = String::from_utf8(lejepa_succeeds(path, &eval).stderr).unwrap();
    let note = "note: images for clip.onnx are prepared as clip.preprocessor_config.json says";
    assert!(said.contains(note), "{said}");
}

/// The file as one of another project: without its card.
fn nameless(bytes: &[u8]) -> Vec<u8> {
    let mut changed = bytes.to_vec();
    let name = b"lejepa.card";
    let start = bytes.windows(name.len()).position(|window| window == name).unwrap();
    changed[start..start + name.len()].copy_from_slice(b"somebody.s.");
    lejepa_onnx::with_checksum(changed)
}
