//! `lejepa pca` and `lejepa attention` as a user types them.

#![allow(clippy::unwrap_used)]

mod fixture;

use std::path::Path;

use fixture::{TINY_RECIPE, lejepa, lejepa_succeeds, workspace};
use lejepa_data::Image;

const USAGE: i32 = 2;
const RUN_TIME: i32 = 1;

/// A folder with data and `encoder.onnx`, of the tiny vision transformer or of a changed recipe.
fn exported(change: [&str; 2], arguments: &[&str]) -> tempfile::TempDir {
    let folder = workspace();
    let path = folder.path();
    assert!(TINY_RECIPE.contains(change[0]));
    std::fs::write(path.join("train.toml"), TINY_RECIPE.replace(change[0], change[1])).unwrap();
    lejepa_succeeds(path, &["train", "--config", "train.toml", "--out", "run", "--epochs", "1"]);
    lejepa_succeeds(path, &[&["export", "run"], arguments].concat());
    folder
}

fn vision_transformer(arguments: &[&str]) -> tempfile::TempDir {
    exported(["", ""], arguments)
}

/// A residual network whose last map is one place large.
fn residual_network() -> tempfile::TempDir {
    let vit = "arch = \"vit\"\nimage_size = 16\nchannels = 1\npatch_size = 4\ndim = 16\ndepth = 2\nheads = 2";
    let resnet = "arch = \"resnet\"\nimage_size = 16\nchannels = 1\ndepths = [1, 1, 1, 1]\n\
                  widths = [4, 6, 8, 10]\nblock = \"basic\"";
    exported([vit, resnet], &[])
}

/// Names of a folder's files, in order.
fn files(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    // What tells the job is not for people.
    names.retain(|name| name != ".made-by.jsonl");
    names.sort();
    names
}

fn size(path: &Path) -> (usize, usize) {
    let image = Image::open(path).unwrap();
    (image.height(), image.width())
}

fn message(folder: &Path, arguments: &[&str], code: i32) -> String {
    let output = lejepa(folder, arguments);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(code), "lejepa {arguments:?}: {stderr}");
    stderr.trim_end().to_string()
}

/// Writes three photographs of different shapes, one of them a single pixel.
fn write_images(folder: &Path) {
    std::fs::create_dir(folder).unwrap();
    let wave = |height: u32, width: u32| {
        image::RgbImage::from_fn(width, height, |x, y| image::Rgb([(x * 7) as u8, (y * 11) as u8, 90]))
    };
    wave(20, 40).save(folder.join("wide.png")).unwrap();
    wave(50, 30).save(folder.join("tall one.jpg")).unwrap();
    wave(1, 1).save(folder.join("pixel.png")).unwrap();
}

#[test]
fn patch_features_are_drawn_for_images_of_any_shape_and_size_of_the_file() {
    let folder = vision_transformer(&["--size", "16", "--size", "24x32"]);
    let path = folder.path();
    write_images(&path.join("photos"));
    for components in ["image", "all", "foreground"] {
        for upsampling in ["smooth", "nearest"] {
            let out = format!("{components}-{upsampling}");
            let arguments = ["pca", "encoder.onnx", "photos", "--out", &out, "--components", components];
            lejepa_succeeds(path, &[&arguments[..], &["--upsampling", upsampling]].concat());
            assert_eq!(files(&path.join(&out)), ["1-pixel.png", "2-tall-one.png", "3-wide.png", "sheet.png"]);
            assert_eq!(size(&path.join(&out).join("3-wide.png")), (256, 256));
        }
    }
    lejepa_succeeds(path, &["pca", "encoder.onnx", "photos/wide.png", "--size", "24x32", "--out", "oblong"]);
    assert_eq!(size(&path.join("oblong/1-wide.png")), (264, 352));
    let asked = ["pca", "encoder.onnx", "photos", "--size", "40", "--out", "none"];
    assert!(
        message(path, &asked, USAGE).starts_with("error: exported for images of 16x16, 24x32, not for 40x40")
    );
    assert!(!path.join("none").exists());
}

#[test]
fn the_same_command_draws_the_same_colours() {
    let folder = vision_transformer(&[]);
    let path = folder.path();
    for out in ["one", "other"] {
        lejepa_succeeds(path, &["pca", "encoder.onnx", "data", "--limit", "5", "--out", out]);
    }
    let names = files(&path.join("one"));
    assert_eq!(names.len(), 6);
    assert_eq!(names[0], "1-train-images-idx3-ubyte-image-0.png");
    for name in names {
        let [one, other] = ["one", "other"].map(|out| std::fs::read(path.join(out).join(&name)).unwrap());
        assert!(one == other, "{name}");
    }
}

#[test]
fn attention_has_a_sheet_and_pictures_of_every_head() {
    let folder = vision_transformer(&[]);
    let path = folder.path();
    write_images(&path.join("photos"));
    lejepa_succeeds(path, &["attention", "encoder.onnx", "photos", "--out", "attention", "--mass", "0.3"]);
    let out = path.join("attention");
    assert_eq!(
        files(&out),
        ["1-pixel", "1-pixel.png", "2-tall-one", "2-tall-one.png", "3-wide", "3-wide.png"]
    );
    let maps = ["head-1", "head-2", "mean"];
    let expected = maps.map(|map| ["attention", "mask", "overlay"].map(|what| format!("{map}-{what}.png")));
    assert_eq!(files(&out.join("3-wide")), expected.concat());
    // More of the attention, more of the image.
    lejepa_succeeds(path, &["attention", "encoder.onnx", "photos", "--out", "more", "--mass", "0.9"]);
    let white = |out: &str| {
        let mask = Image::open(&path.join(out).join("3-wide/mean-mask.png")).unwrap();
        mask.pixels().iter().filter(|&&value| value > 127).count()
    };
    assert!(white("attention") < white("more"), "{} {}", white("attention"), white("more"));
    let message =
        message(path, &["attention", "encoder.onnx", "photos", "--out", "x", "--mass", "1.5"], USAGE);
    assert_eq!(message, "error: the share of attention to keep must be above 0 and at most 1, got: 1.5");
}

#[test]
fn a_convolutional_network_has_components_but_no_attention() {
    let folder = residual_network();
    let path = folder.path();
    lejepa_succeeds(path, &["pca", "encoder.onnx", "data", "--limit", "3", "--out", "pca"]);
    assert_eq!(files(&path.join("pca")).len(), 4);
    let message = message(path, &["attention", "encoder.onnx", "data", "--out", "attention"], USAGE);
    assert_eq!(
        message,
        "error: no output cls_attention, only embedding, patch_tokens: encoder.onnx\n\
         hint: attention is that of a class token: ConvNets have none, but `lejepa pca` draws their last map and \
         `lejepa segment --method propagate` follows masks with it; of a vision transformer with one, \
         `lejepa export --outputs embedding,cls_attention` writes it"
    );
    assert!(!path.join("attention").exists());
}

#[test]
fn what_cannot_be_drawn_is_named() {
    let folder = vision_transformer(&["--outputs", "embedding"]);
    let path = folder.path();
    assert_eq!(
        message(path, &["pca", "encoder.onnx", "data", "--out", "out"], USAGE),
        "error: no output patch_tokens, only embedding: encoder.onnx\n\
         hint: `lejepa export --outputs embedding,patch_tokens` writes it"
    );
    lejepa_succeeds(path, &["export", "run"]);
    let nowhere = message(path, &["pca", "encoder.onnx", "nowhere", "--out", "out"], USAGE);
    assert_eq!(nowhere, "error: no such file or folder: nowhere");
    let nothing = message(path, &["pca", "encoder.onnx", "data", "--out", "out", "--limit", "0"], USAGE);
    assert!(nothing.starts_with("error: invalid value '0' for '--limit <IMAGES>'"), "{nothing}");

    std::fs::create_dir(path.join("photos")).unwrap();
    std::fs::write(path.join("photos/broken.png"), "this is no image").unwrap();
    let broken = message(path, &["attention", "encoder.onnx", "photos", "--out", "out"], RUN_TIME);
    assert!(broken.contains("note: left out: ") && broken.contains("broken.png"), "{broken}");
    assert!(broken.ends_with("error: none of the images can be read"), "{broken}");
}
