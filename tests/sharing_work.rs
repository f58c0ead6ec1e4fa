//! Several processes over one folder: shares of an embedding, evaluations with one cache, and locks.

#![allow(clippy::unwrap_used)]

mod fixture;

use std::path::Path;
use std::process::{Command, Stdio};

use fixture::{LEJEPA, lejepa, lejepa_succeeds, workspace};
use lejepa_data::read_matrix;

fn exported() -> tempfile::TempDir {
    let folder = workspace();
    lejepa_succeeds(folder.path(), &["train", "--config", "train.toml", "--out", "run", "--epochs", "1"]);
    lejepa_succeeds(folder.path(), &["export", "run"]);
    folder
}

fn fails(folder: &Path, arguments: &[&str]) -> String {
    let output = lejepa(folder, arguments);
    assert!(!output.status.success(), "{arguments:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn vectors(path: &Path) -> Vec<f32> {
    let matrix = read_matrix(path, None).unwrap();
    let lejepa_data::MatrixValues::Single(values) = matrix.values else { unreachable!("features are f32") };
    values
}

const EMBED: [&str; 4] = ["embed", "data", "--encoder", "encoder.onnx"];

#[test]
fn shares_are_computed_apart_and_merged_when_all_are_there() {
    let folder = exported();
    let path = folder.path();
    lejepa_succeeds(path, &[&EMBED[..], &["--out", "whole.npy"]].concat());
    let share =
        |number: &'static str| [&EMBED[..], &["--out", "f.npy", "--json", "--shard", number]].concat();
    let merge = [&EMBED[..], &["--out", "f.npy", "--json", "--merge"]].concat();
    lejepa_succeeds(path, &share("3/3"));
    let first = lejepa_succeeds(path, &share("1/3"));
    let said: serde_json::Value = serde_json::from_slice(&first.stdout).unwrap();
    assert_eq!((&said["shard"], &said["images"]), (&"1/3".into(), &serde_json::json!([0, 72])));
    let missing = fails(path, &merge);
    assert!(missing.contains("72 images are missing, the first is number 72: f.npy.parts"), "{missing}");

    // Another encoder, or other options, cannot put anything between them.
    let other = fails(path, &[&share("2/3")[..], &["--normalise"]].concat());
    assert!(other.contains("holds parts of another extraction (other: --normalise): f.npy.parts"), "{other}");
    lejepa_succeeds(path, &share("2/3"));
    // A share that is there is not computed again.
    let again = lejepa_succeeds(path, &share("2/3"));
    assert!(String::from_utf8_lossy(&again.stderr).contains("(0 images/s)"));
    let merged = lejepa_succeeds(path, &merge);
    let said: serde_json::Value = serde_json::from_slice(&merged.stdout).unwrap();
    assert_eq!((&said["images"], &said["dim"], &said["computed"]), (&220.into(), &16.into(), &0.into()));
    assert_eq!(vectors(&path.join("f.npy")), vectors(&path.join("whole.npy")));
    assert!(!path.join("f.npy.parts").exists());
}

#[test]
fn parts_that_do_not_say_what_computed_them_are_refused_and_a_folder_has_one_worker() {
    let folder = exported();
    let path = folder.path();
    let embed = [&EMBED[..], &["--out", "f.npy"]].concat();
    let parts = path.join("f.npy.parts");
    std::fs::create_dir(&parts).unwrap();
    std::fs::write(parts.join("00000000.part"), b"of another encoder").unwrap();
    assert!(fails(path, &embed).contains("holds parts without their key.json: f.npy.parts"));
    std::fs::remove_file(parts.join("00000000.part")).unwrap();

    let lock = std::fs::File::create(parts.join("lock")).unwrap();
    lock.try_lock().unwrap();
    assert!(fails(path, &embed).starts_with("error: another process is at work in: f.npy.parts\nhint: "));
    drop(lock);
    // That of a process that is gone is free.
    lejepa_succeeds(path, &embed);
}

#[test]
fn features_of_sixteen_bits_say_what_computed_them() {
    let folder = exported();
    let path = folder.path();
    lejepa_succeeds(path, &[&EMBED[..], &["--out", "whole.npy"]].concat());
    let whole = vectors(&path.join("whole.npy"));
    let about = std::fs::read_to_string(path.join("whole.npy.json")).unwrap();
    let about: serde_json::Value = serde_json::from_str(&about).unwrap();
    assert_eq!(about["program"], format!("lejepa {}", env!("CARGO_PKG_VERSION")));
    for out in ["half.npy", "other.safetensors", "half.parquet"] {
        lejepa_succeeds(path, &[&EMBED[..], &["--out", out, "--precision", "f16"]].concat());
        if out.ends_with("parquet") {
            continue;
        }
        let tensor = out.ends_with("safetensors").then_some("features");
        let matrix = read_matrix(&path.join(out), tensor).unwrap();
        let lejepa_data::MatrixValues::Single(values) = matrix.values else { unreachable!("{out}") };
        let difference = values.iter().zip(&whole).map(|(half, whole)| (half - whole).abs());
        assert!(difference.fold(0., f32::max) < 2e-3, "{out}");
    }
    let header = std::fs::read(path.join("other.safetensors")).unwrap();
    let encoder = about["encoder"].as_str().unwrap();
    assert!(header[..2000].windows(encoder.len()).any(|window| window == encoder.as_bytes()));
    let parquet = std::fs::read(path.join("half.parquet")).unwrap();
    assert!(parquet.windows(encoder.len()).any(|window| window == encoder.as_bytes()));
}

#[test]
fn images_of_which_nothing_finite_is_computed_are_left_out_by_name() {
    let folder = exported();
    let path = folder.path();
    for (name, grey) in [("black.png", 0), ("bright.png", 255)] {
        let image = lejepa_data::Image::from_pixels(16, 16, 1, vec![grey; 256]).unwrap();
        image.write_png(&path.join(name)).unwrap();
    }
    let config = std::fs::read_to_string(path.join("preprocessor_config.json")).unwrap();
    let mut config: serde_json::Value = serde_json::from_str(&config).unwrap();
    (config["image_mean"], config["image_std"]) = ([0.].into(), [1e-40].into());
    std::fs::write(path.join("steep.json"), config.to_string()).unwrap();
    let described = ["--encoder", "encoder.onnx", "--preprocess", "steep.json", "--embedding", "embedding"];
    lejepa_succeeds(
        path,
        &[&["embed", "black.png", "bright.png", "--out", "few.npy"], &described[..]].concat(),
    );
    let broken = std::fs::read_to_string(path.join("few.npy.broken.jsonl")).unwrap();
    assert!(broken.contains("bright.png") && broken.contains("is not finite"), "{broken}");
    assert_eq!(vectors(&path.join("few.npy")).len(), 16);
    let said = fails(path, &[&["embed", "bright.png", "--out", "none.npy"], &described[..]].concat());
    assert!(said.contains("none of the images can be embedded, such as bright.png: "), "{said}");
}

#[test]
fn another_output_of_the_same_file_has_features_of_its_own() {
    let folder = exported();
    let path = folder.path();
    let dim = |output: &str| {
        let eval = ["eval", "encoder.onnx", "--suite", "knn", "--data", "data", "--out", output];
        // A card would choose the output itself.
        let file = std::fs::read(path.join("encoder.onnx")).unwrap();
        let card = file.windows(11).position(|window| window == b"lejepa.card").unwrap_or(0);
        if card > 0 {
            let mut foreign = file.clone();
            foreign[card..card + 11].copy_from_slice(b"somebody.s.");
            std::fs::write(path.join("encoder.onnx"), lejepa_onnx::with_checksum(foreign)).unwrap();
        }
        let described = ["--preprocess", "preprocessor_config.json", "--embedding", output];
        lejepa_succeeds(path, &[&eval[..], &described[..]].concat());
        let report = std::fs::read(path.join(output).join("report.json")).unwrap();
        let report: serde_json::Value = serde_json::from_slice(&report).unwrap();
        report["candidates"][0]["dim"].as_u64().unwrap()
    };
    assert_eq!((dim("embedding"), dim("cls_last2")), (16, 32));
    let cache = lejepa_succeeds(path, &["cache", "--json"]);
    let cache: serde_json::Value = serde_json::from_slice(&cache.stdout).unwrap();
    let outputs: std::collections::BTreeSet<&str> = (cache["entries"].as_array().unwrap().iter())
        .map(|entry| entry["key"]["computation"]["output"].as_str().unwrap())
        .collect();
    assert_eq!(outputs.into_iter().collect::<Vec<_>>(), ["cls_last2", "embedding"]);
}

#[test]
fn evaluations_side_by_side_over_one_cache_agree() {
    let folder = exported();
    let path = folder.path();
    for round in 0..2 {
        let cache = format!("cache-{round}");
        let running: Vec<_> = (0..3)
            .map(|number| {
                let out = format!("report-{round}-{number}");
                let mut program = Command::new(LEJEPA);
                program.current_dir(path).stdout(Stdio::piped()).stderr(Stdio::piped());
                program.args(["eval", "encoder.onnx", "--suite", "quick", "--data", "data"]);
                program.args(["--cache", &cache, "--out", &out]).spawn().unwrap()
            })
            .collect();
        let outputs: Vec<_> = running.into_iter().map(|child| child.wait_with_output().unwrap()).collect();
        for output in &outputs {
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            assert_eq!(String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&outputs[0].stdout));
        }
    }
}

#[test]
fn the_cache_is_listed_and_pruned_and_keeps_what_is_in_use() {
    let folder = exported();
    let path = folder.path();
    let eval =
        ["eval", "encoder.onnx", "--suite", "knn", "--data", "data", "--cache", "kept", "--out", "report"];
    lejepa_succeeds(path, &eval);
    std::fs::write(path.join("kept/notes.txt"), "mine").unwrap();
    let json = |arguments: &[&str]| -> serde_json::Value {
        let arguments = [&["cache"], arguments, &["--cache", "kept", "--json"]].concat();
        serde_json::from_slice(&lejepa_succeeds(path, &arguments).stdout).unwrap()
    };
    let entries = json(&[])["entries"].as_array().unwrap().len();
    assert!(entries >= 2);
    let listed = lejepa_succeeds(path, &["cache", "--cache", "kept"]);
    let listed = String::from_utf8(listed.stdout).unwrap();
    assert!(listed.contains("encoder.onnx") && listed.contains("160"), "{listed}");
    assert_eq!(json(&["prune", "--older-than", "1d"])["removed"].as_array().unwrap().len(), 0);
    let first = json(&[])["entries"][0]["path"].as_str().unwrap().to_string();
    let lock = std::fs::File::open(path.join(&first).join("lock")).unwrap();
    lock.try_lock_shared().unwrap();
    let pruned = json(&["prune", "--all"]);
    assert_eq!(pruned["removed"].as_array().unwrap().len(), entries - 1);
    assert_eq!(pruned["in_use"], 1);
    drop(lock);
    assert_eq!(json(&["prune", "--larger-than", "1kB"])["removed"].as_array().unwrap().len(), 1);
    assert!(path.join("kept/notes.txt").exists());
    let nothing = lejepa(path, &["cache", "prune"]);
    assert!(String::from_utf8_lossy(&nothing.stderr).contains("what to remove"));
    lejepa_succeeds(path, &[&eval[..8], &["--out", "again"]].concat());
}
