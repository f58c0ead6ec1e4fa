//! What the program says: help, and one clear sentence for every mistake.

#![allow(clippy::unwrap_used)]

mod fixture;

use std::path::Path;
use std::process::Command;

use fixture::{LEJEPA, lejepa, repository, workspace};

const USAGE: i32 = 2;
const RUN_TIME: i32 = 1;

/// Runs the program and expects an exit code and a message.
fn assert_fails(folder: &Path, arguments: &[&str], code: i32, message: &str) {
    let output = lejepa(folder, arguments);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!((output.status.code(), stderr.trim_end()), (Some(code), message), "lejepa {arguments:?}");
    assert!(output.stdout.is_empty());
}

fn train(folder: &Path, arguments: &[&str], code: i32, message: &str) {
    assert_fails(
        folder,
        &[&["train", "--config", "train.toml", "--out", "run"], arguments].concat(),
        code,
        message,
    );
}

/// Compares with `tests/cli/NAME.txt`; `UPDATE_CLI=1 cargo test` writes it anew.
#[test]
fn help_is_as_written_down() {
    for (name, arguments) in [
        ("help", &["--help"][..]),
        ("train", &["train", "--help"]),
        ("import", &["import", "--help"]),
        ("sweep", &["sweep", "--help"]),
        ("runs", &["runs", "--help"]),
        ("select", &["select", "--help"]),
        ("export", &["export", "--help"]),
        ("inspect", &["inspect", "--help"]),
        ("verify", &["verify", "--help"]),
        ("embed", &["embed", "--help"]),
        ("eval", &["eval", "--help"]),
        ("cache", &["cache", "--help"]),
        ("cache-prune", &["cache", "prune", "--help"]),
        ("pca", &["pca", "--help"]),
        ("attention", &["attention", "--help"]),
        ("segment", &["segment", "--help"]),
        ("gauge", &["gauge", "--help"]),
        ("data", &["data", "--help"]),
        ("data-inspect", &["data", "inspect", "--help"]),
        ("data-verify", &["data", "verify", "--help"]),
        ("data-views", &["data", "views", "--help"]),
        ("doctor", &["doctor", "--help"]),
    ] {
        let output = Command::new(LEJEPA).args(arguments).env("COLUMNS", "100").output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let path = repository().join(format!("tests/cli/{name}.txt"));
        if std::env::var_os("UPDATE_CLI").is_some() {
            std::fs::write(&path, &text).unwrap();
        }
        assert_eq!(text, std::fs::read_to_string(&path).unwrap(), "{name}");
    }
}

#[test]
fn a_wrong_path_is_named() {
    let folder = workspace();
    let path = folder.path();
    train(path, &["--data", "nowhere"], USAGE, "error: no such file or folder: nowhere");
    let missing = ["train", "--config", "nowhere.toml"];
    assert_fails(path, &missing, USAGE, "error: no such file or folder: nowhere.toml");
    assert_fails(path, &["export", "nowhere"], USAGE, "error: no such file or folder: nowhere");
    let eval = ["eval", "nowhere.onnx", "--suite", "quick", "--data", "data"];
    assert_fails(path, &eval, USAGE, "error: no such file: nowhere.onnx");
}

#[test]
fn no_data_at_all_is_a_usage_error_with_a_hint() {
    let folder = workspace();
    let message = "error: `data.path` must be given in the recipe or with --data, got: nothing\n\
                   hint: lejepa train --data PATH";
    assert_fails(folder.path(), &["train"], USAGE, message);
}

#[test]
fn an_empty_folder_is_named() {
    let folder = workspace();
    std::fs::create_dir(folder.path().join("empty")).unwrap();
    let message = "error: no images (jpeg, png, webp, bmp, tiff, gif) in: empty";
    train(folder.path(), &["--data", "empty"], RUN_TIME, message);
    let message = "error: no checkpoint in: empty\nhint: name the --out folder of a `lejepa train`";
    assert_fails(folder.path(), &["export", "empty"], RUN_TIME, message);
}

#[test]
fn a_truncated_idx_file_is_named() {
    let folder = workspace();
    let images = folder.path().join("data/train-images-idx3-ubyte");
    let bytes = std::fs::read(&images).unwrap();
    std::fs::write(&images, &bytes[..1000]).unwrap();
    let message = "error: not a valid IDX file (expected 40960 bytes for shape [160, 16, 16], got 984): \
                   data/train-images-idx3-ubyte";
    train(folder.path(), &[], RUN_TIME, message);
}

#[test]
fn an_unreadable_image_is_named() {
    let folder = workspace();
    std::fs::create_dir(folder.path().join("images")).unwrap();
    for index in 0..20 {
        std::fs::write(folder.path().join(format!("images/{index:02}.png")), "this is no image").unwrap();
    }
    let output = lejepa(
        folder.path(),
        &["train", "--config", "train.toml", "--out", "run", "--data", "images", "--epochs", "1"],
    );
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(RUN_TIME));
    let message = stderr.lines().find(|line| line.starts_with("error: ")).unwrap();
    assert!(
        message.starts_with("error: 1 of 20 images cannot be used, more than 1 %, such as images/"),
        "{stderr}"
    );
    assert!(!stderr.contains("panicked"));
}

#[test]
fn a_missing_onnx_runtime_is_explained() {
    let folder = workspace();
    let path = folder.path();
    lejepa(path, &["train", "--config", "train.toml", "--out", "run"]);
    let missing = Command::new(LEJEPA)
        .current_dir(path)
        .args(["export", "run"])
        .env("ORT_DYLIB_PATH", "nowhere/libonnxruntime.so")
        .output()
        .unwrap();
    assert_eq!(missing.status.code(), Some(USAGE));
    assert_eq!(String::from_utf8_lossy(&missing.stderr), "error: no such file: nowhere/libonnxruntime.so\n");

    // A program that lies nowhere near the library has to look in the system.
    let alone = path.join("lejepa");
    // By a process of its own: a file that this one has open for writing may be busy in a child of another test.
    assert!(Command::new("cp").arg(LEJEPA).arg(&alone).status().unwrap().success());
    let output = Command::new(&alone)
        .current_dir(path)
        .args(["export", "run"])
        .env_remove("ORT_DYLIB_PATH")
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(RUN_TIME), "{stderr}");
    assert!(stderr.starts_with("error: ") && stderr.contains("ONNX Runtime"), "{stderr}");
    assert!(!path.join("encoder.onnx").exists());

    let doctor =
        Command::new(&alone).current_dir(path).arg("doctor").env_remove("ORT_DYLIB_PATH").output().unwrap();
    let stdout = String::from_utf8_lossy(&doctor.stdout).into_owned();
    assert_eq!(doctor.status.code(), Some(RUN_TIME));
    assert!(stdout.contains("to get it: make setup"), "{stdout}");

    let broken = path.join("libonnxruntime.so");
    std::fs::write(&broken, "not a library").unwrap();
    let output = lejepa(path, &["export", "run", "--onnxruntime", "libonnxruntime.so"]);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(RUN_TIME));
    assert!(stderr.starts_with("error: cannot load ONNX Runtime: "), "{stderr}");
}

#[test]
fn an_unknown_key_is_named() {
    let folder = workspace();
    let path = folder.path();
    let output = lejepa(path, &["train", "--config", "train.toml", "--set", "loss.lamda=0.1"]);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(USAGE));
    assert!(stderr.contains("--set or a flag: unknown field `lamda`, expected one of `lambda`"), "{stderr}");

    std::fs::write(path.join("train.toml"), "[loss]\nlamda = 0.1\n").unwrap();
    let output = lejepa(path, &["train", "--config", "train.toml"]);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(USAGE));
    assert!(
        stderr.contains("train.toml") && stderr.contains("line 2") && stderr.contains("`lamda`"),
        "{stderr}"
    );
}

#[test]
fn values_out_of_range_are_named() {
    let folder = workspace();
    let path = folder.path();
    train(path, &["--batch", "0"], USAGE, "error: `train.batch` must be at least 2, got: 0");
    train(path, &["--set", "train.batch=0"], USAGE, "error: `train.batch` must be at least 2, got: 0");
    let message = "error: `train.batch` must be between 1 and the number of training images, 160, got: 161";
    train(path, &["--batch", "161"], USAGE, message);
    train(path, &["--lambda", "1.5"], USAGE, "error: [loss] `lambda` must be between 0 and 1, got: 1.5");
    train(
        path,
        &["--epochs", "0"],
        USAGE,
        "error: `train.epochs` must be a positive number up to 1000000000, got: 0",
    );
    let message = "error: `encoder.arch` must be \"vit\", \"resnet\", \"convnextv2\" or a name like \
                   vit_small_patch16_224, vit_small_patch14_reg4_dinov2, resnet50, resnext50_32x4d, \
                   convnextv2_tiny (the nearest is resnet50), got: \"resnet5O\"";
    train(path, &["--arch", "resnet5O"], USAGE, message);
}

#[test]
fn an_evaluation_that_cannot_be_done_says_why() {
    let folder = workspace();
    let path = folder.path();
    lejepa(path, &["train", "--config", "train.toml", "--out", "run"]);
    lejepa(path, &["export", "run"]);
    let eval = |suite: &str, data: &str, code: i32, message: &str| {
        assert_fails(path, &["eval", "encoder.onnx", "--suite", suite, "--data", data], code, message);
    };
    let message = "error: no suite named \"slow\": use quick, knn, probes, fewshot, galaxy10, isotropy \
                   or the path of a .toml file";
    eval("slow", "data", USAGE, message);
    eval("quick", "nowhere", USAGE, "error: no such file or folder: nowhere");

    for folder in ["single/cat", "single/dog", "split/train", "split/test", "one/train/cat", "one/test/cat"] {
        std::fs::create_dir_all(path.join(folder)).unwrap();
        image::GrayImage::new(8, 8).save(path.join(folder).join("a.png")).unwrap();
    }
    let message = "error: no class has enough images for a test split: single";
    eval("quick", "single", RUN_TIME, message);
    eval("quick", "one", RUN_TIME, "error: the training split needs at least two classes, got: 1");
    let message =
        "error: image 0 of the training split has no label: probes need one folder per class in split";
    eval("quick", "split", RUN_TIME, message);

    let without = |arguments: &[&str], message: &str| {
        assert_fails(path, &[&["eval"], arguments].concat(), RUN_TIME, message);
    };
    let message = "error: no data to evaluate on: use --data PATH or --data-root FOLDER";
    without(&["encoder.onnx", "--suite", "quick"], message);
    let message = "error: the suite quick needs an encoder and data: lejepa eval ENCODER --data PATH";
    without(&["--suite", "quick"], message);
    let message = "error: no encoder to evaluate: lejepa eval ENCODER --suite quick";
    without(&["--suite", "quick", "--data", "data"], message);
    let message = "error: the suite quick names no sets: use --data PATH";
    without(&["encoder.onnx", "--suite", "quick", "--data-root", "."], message);

    std::fs::write(path.join("encoder.onnx"), "not an ONNX file").unwrap();
    let output = lejepa(path, &["eval", "encoder.onnx", "--suite", "quick", "--data", "data"]);
    assert_eq!(output.status.code(), Some(RUN_TIME));
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        stderr.starts_with(
            "error: not a readable ONNX file (cut off, damaged, or of another kind): encoder.onnx"
        ),
        "{stderr}"
    );
}
