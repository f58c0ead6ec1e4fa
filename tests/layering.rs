//! Data flows one way through the crates: the dependencies between them are the drawn ones and no others.

#![allow(clippy::unwrap_used)]

mod fixture;

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// Each crate of the workspace with the crates of the workspace that it may use.
const ARROWS: [(&str, &[&str]); 14] = [
    ("lejepa-data", &[]),
    ("lejepa-kernels", &[]),
    ("lejepa-loss", &[]),
    ("lejepa-model", &["lejepa-kernels"]),
    ("lejepa-train", &["lejepa-data", "lejepa-kernels", "lejepa-loss", "lejepa-model", "lejepa-probe"]),
    ("lejepa-onnx", &["lejepa-data", "lejepa-model"]),
    ("lejepa-embed", &["lejepa-data"]),
    ("lejepa-probe", &["lejepa-data"]),
    ("lejepa-page", &[]),
    ("lejepa-picture", &["lejepa-data"]),
    ("lejepa-video", &["lejepa-data", "lejepa-embed", "lejepa-page", "lejepa-picture"]),
    (
        "lejepa-eval",
        &["lejepa-data", "lejepa-embed", "lejepa-page", "lejepa-picture", "lejepa-probe", "lejepa-video"],
    ),
    (
        "lejepa-cli",
        &[
            "lejepa-data",
            "lejepa-embed",
            "lejepa-eval",
            "lejepa-loss",
            "lejepa-model",
            "lejepa-onnx",
            "lejepa-picture",
            "lejepa-probe",
            "lejepa-train",
            "lejepa-video",
        ],
    ),
    ("embedding-service", &["lejepa-embed"]),
];

/// Libraries that must not be reached from a crate, directly or through others.
const FORBIDDEN: [(&str, &[&str]); 11] = [
    ("lejepa-data", &["candle-core", "ort", "anyhow"]),
    ("lejepa-kernels", &["ort", "image"]),
    ("lejepa-loss", &["ort", "image"]),
    ("lejepa-model", &["ort", "image"]),
    ("lejepa-embed", &["candle-core", "candle-nn", "hdf5-metno", "parquet", "clap"]),
    ("lejepa-probe", &["candle-core", "candle-nn", "ort", "hdf5-metno", "parquet", "clap"]),
    ("lejepa-page", &["serde", "image"]),
    ("lejepa-picture", &["candle-core", "ort", "clap"]),
    ("lejepa-video", &["candle-core", "candle-nn", "hdf5-metno", "clap"]),
    ("lejepa-eval", &["candle-core", "candle-nn", "clap"]),
    ("embedding-service", &["candle-core", "candle-nn", "hdf5-metno", "parquet"]),
];

fn cargo(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO"))
        .args(arguments)
        .args(["--offline", "--locked"])
        .current_dir(fixture::repository())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn crates_of_the_workspace_depend_on_each_other_as_drawn() {
    let metadata = cargo(&["metadata", "--no-deps", "--format-version", "1"]);
    let metadata: serde_json::Value = serde_json::from_str(&metadata).unwrap();
    let mut found = BTreeMap::new();
    for package in metadata["packages"].as_array().unwrap() {
        let dependencies: BTreeSet<&str> = package["dependencies"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|dependency| dependency["kind"].is_null())
            .map(|dependency| dependency["name"].as_str().unwrap())
            .filter(|name| name.starts_with("lejepa-"))
            .collect();
        found.insert(package["name"].as_str().unwrap(), dependencies);
    }
    let drawn: BTreeMap<&str, BTreeSet<&str>> =
        ARROWS.into_iter().map(|(name, arrows)| (name, arrows.iter().copied().collect())).collect();
    assert_eq!(found, drawn);
}

#[test]
fn no_crate_reaches_a_library_of_the_other_half() {
    for (name, forbidden) in FORBIDDEN {
        let tree = cargo(&["tree", "-p", name, "-e", "normal", "--prefix", "none", "--no-default-features"]);
        let reached: BTreeSet<&str> = tree.lines().filter_map(|line| line.split(' ').next()).collect();
        for library in forbidden {
            assert!(!reached.contains(library), "{name} reaches {library}");
        }
    }
}
