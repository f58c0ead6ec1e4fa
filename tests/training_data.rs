//! Training on data as it really is: broken images, several datasets, a cache, any number of workers.

#![allow(clippy::unwrap_used)]

mod fixture;

use std::path::Path;
use std::process::Output;

use fixture::{lejepa, lejepa_succeeds, workspace};

/// `photos/` with pictures of 20 x 24 pixels, `broken` of which cannot be read.
fn write_photos(folder: &Path, images: usize, broken: usize) {
    std::fs::create_dir_all(folder.join("photos")).unwrap();
    for index in 0..images {
        let path = folder.join(format!("photos/{index:03}.png"));
        if index < broken {
            std::fs::write(path, "no image").unwrap();
        } else {
            let grey = |x: u32, y: u32| image::Luma([(x * 11 + y * 7 * index as u32) as u8]);
            image::GrayImage::from_fn(24, 20, grey).save(path).unwrap();
        }
    }
}

fn train<'a>(out: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["train", "--config", "train.toml", "--out", out, "--epochs", "1"], more].concat()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// The newest checkpoint, without the header that holds the configuration.
fn weights(run: &Path) -> Vec<u8> {
    let checkpoints = std::fs::read_dir(run.join("checkpoints")).unwrap();
    let newest = checkpoints.map(|entry| entry.unwrap().path()).max().unwrap();
    let bytes = std::fs::read(newest).unwrap();
    let header = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    bytes[8 + header..].to_vec()
}

#[test]
fn a_broken_image_is_named_and_does_not_stop_a_run() {
    let folder = workspace();
    write_photos(folder.path(), 120, 1);
    let output = lejepa_succeeds(folder.path(), &train("run", &["--data", "photos"]));
    let skipped = stderr(&output).lines().filter(|line| line.starts_with("skipped photos/000.png: ")).count();
    assert_eq!(skipped, 1, "{}", stderr(&output));
    let log = std::fs::read_to_string(folder.path().join("run/broken-images.jsonl")).unwrap();
    let line: serde_json::Value = serde_json::from_str(log.trim()).unwrap();
    assert_eq!(line["name"], "photos/000.png");
    lejepa_succeeds(folder.path(), &["export", "run", "--out", "encoder.onnx"]);
}

#[test]
fn too_many_broken_images_stop_a_run_with_a_hint() {
    let folder = workspace();
    write_photos(folder.path(), 120, 40);
    let output = lejepa(folder.path(), &train("run", &["--data", "photos"]));
    assert_eq!(output.status.code(), Some(1));
    let message = stderr(&output);
    assert!(message.contains("of 120 images cannot be used, more than 1 %, such as photos/0"), "{message}");
    assert!(message.contains("hint: `lejepa data verify PATH`"), "{message}");

    let tolerant = train("run2", &["--data", "photos", "--set", "data.broken_limit=0.5"]);
    lejepa_succeeds(folder.path(), &tolerant);
}

#[test]
fn the_number_of_workers_changes_nothing() {
    let folder = workspace();
    let path = folder.path();
    for workers in ["0", "1", "4"] {
        let setting = format!("data.workers={workers}");
        lejepa_succeeds(path, &train(workers, &["--set", &setting]));
    }
    let expected = weights(&path.join("0"));
    assert!(weights(&path.join("1")) == expected && weights(&path.join("4")) == expected);
    // A run goes on with another number.
    let output = lejepa_succeeds(path, &train("0", &["--set", "data.workers=3"]));
    assert!(stderr(&output).contains("nothing to do"), "{}", stderr(&output));
}

#[test]
fn datasets_are_mixed_and_cached() {
    let folder = workspace();
    let path = folder.path();
    write_photos(path, 40, 0);
    let recipe = std::fs::read_to_string(path.join("train.toml")).unwrap();
    let mixture = r#"
        [[data.mix]]
        path = "data"
        weight = 1
        [[data.mix]]
        path = "photos"
        format = "folder"
        weight = 3
    "#;
    std::fs::write(path.join("mix.toml"), recipe.replace("path = \"data\"", "cache = \"cache\"") + mixture)
        .unwrap();
    let arguments = ["train", "--config", "mix.toml", "--out", "run", "--epochs", "1"];
    let output = lejepa_succeeds(path, &arguments);
    assert!(stderr(&output).contains("200 images"), "{}", stderr(&output));
    assert_eq!(std::fs::read_dir(path.join("cache")).unwrap().count(), 2);
    lejepa_succeeds(path, &["train", "--config", "mix.toml", "--out", "again", "--epochs", "1"]);
    assert!(weights(&path.join("run")) == weights(&path.join("again")));
}

#[test]
fn views_are_drawn_before_training() {
    let folder = workspace();
    let path = folder.path();
    let views = ["data", "views", "--config", "train.toml", "--preset", "grey", "--samples", "3"];
    let output = lejepa_succeeds(path, &views);
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "views.png\n");
    // The picture of 16 pixels, 2 views of 16, 1 of 8, with gaps of 4; three rows.
    let picture = image::open(path.join("views.png")).unwrap();
    assert_eq!((picture.width(), picture.height()), (4 + 3 * 20 + 12, 4 + 3 * 20));
}
