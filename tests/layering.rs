//! Data flows one way through the crates: the dependencies between them are the drawn ones and no others. And what
//! holds for the sources of all of them.

#![allow(clippy::unwrap_used)]

mod fixture;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
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

/// Files that read plainly what a user names (it may be a pipe: `<(...)`), what the kernel tells, or what was seen to
/// be a regular file just before; and one for tests.
const READ_PLAINLY: [&str; 16] = [
    "atomic_file.rs",
    "clip_set.rs",
    "config.rs",
    "external_file.rs",
    "fixture.rs",
    "grid.rs",
    "hub_file.rs",
    "interrupt.rs",
    "lock.rs",
    "memory.rs",
    "memory_limit.rs",
    "model.rs",
    "preset.rs",
    "program.rs",
    "suite/mod.rs",
    "weights_file.rs",
];

#[test]
fn files_of_the_program_are_read_without_waiting_for_pipes() {
    let plain = ["fs::read(", "fs::read_to_string(", "File::open("];
    let mut folders: Vec<PathBuf> = std::fs::read_dir(fixture::repository().join("crates"))
        .unwrap()
        .map(|entry| entry.unwrap().path().join("src"))
        .filter(|sources| sources.is_dir())
        .collect();
    let mut found = BTreeSet::new();
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()) {
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            if path.is_dir() {
                folders.push(path);
            } else if name.ends_with(".rs")
                && !name.ends_with("tests.rs")
                && !READ_PLAINLY.iter().any(|known| path.ends_with(known))
            {
                let source = std::fs::read_to_string(&path).unwrap();
                // Up to the tests.
                let parts = source.split("#[cfg(test)]").enumerate();
                let is_one_line = |part: &str| part.lines().nth(1).is_some_and(|line| line.ends_with(';'));
                let code: String = parts
                    .take_while(|(number, part)| *number == 0 || is_one_line(part))
                    .map(|(_, part)| part)
                    .collect();
                // `Hdf5File::open` is another one.
                let is_plain =
                    |start: usize| !code[..start].ends_with(|before: char| before.is_alphanumeric());
                let mut places = plain.iter().flat_map(|call| code.match_indices(*call));
                if places.any(|(start, _)| is_plain(start)) {
                    found.insert(path);
                }
            }
        }
    }
    assert!(found.is_empty(), "use lejepa_data::regular_file, or explain the exception above: {found:?}");
}
