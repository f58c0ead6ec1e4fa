//! Weights from elsewhere become a run, and the weights of a run a file for others.

#![allow(clippy::unwrap_used)]

mod fixture;

use std::collections::HashMap;
use std::path::Path;

use candle_core::{DType, Device, Tensor};
use fixture::{lejepa, lejepa_succeeds, repository};

/// The architecture of `tests/golden/vit.safetensors`, and a small projector.
const GOLDEN_VIT: [&str; 16] = [
    "--arch",
    "vit",
    "--size",
    "32",
    "--set",
    "encoder.patch_size=8",
    "--set",
    "encoder.dim=48",
    "--set",
    "encoder.depth=3",
    "--set",
    "encoder.heads=3",
    // The default one takes longer to draw than all the rest.
    "--set",
    "projector.hidden=[8]",
    "--out",
    "run",
];

fn golden() -> HashMap<String, Tensor> {
    let path = repository().join("tests/golden/vit.safetensors");
    candle_core::safetensors::load(path, &Device::Cpu).unwrap()
}

fn golden_weights() -> HashMap<String, Tensor> {
    let golden = golden();
    let weights = golden.iter().filter_map(|(name, tensor)| Some((name.strip_prefix("weights.")?, tensor)));
    weights.map(|(name, tensor)| (name.to_string(), tensor.clone())).collect()
}

fn save(tensors: &HashMap<String, Tensor>, path: &Path) {
    candle_core::safetensors::save(tensors, path).unwrap();
}

fn import<'a>(extra: &[&'a str]) -> Vec<&'a str> {
    [&["import", "weights.safetensors"], GOLDEN_VIT.as_slice(), extra].concat()
}

fn message(folder: &Path, arguments: &[&str], code: i32) -> String {
    let output = lejepa(folder, arguments);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{stderr}");
    assert!(!stderr.contains("panicked"), "{stderr}");
    stderr
}

#[test]
fn timms_weights_come_back_as_they_were() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let mut weights = golden_weights();
    weights.insert("head.weight".into(), Tensor::zeros((10, 48), DType::F32, &Device::Cpu).unwrap());
    save(&weights, &path.join("weights.safetensors"));
    let output = lejepa_succeeds(path, &import(&[]));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("note: left out: head.weight"), "{stderr}");
    assert!(path.join("run/config.toml").exists());

    lejepa_succeeds(path, &["export", "run", "--out", "again.safetensors"]);
    let again = candle_core::safetensors::load(path.join("again.safetensors"), &Device::Cpu).unwrap();
    weights.remove("head.weight");
    assert_eq!(again.len(), weights.len());
    let values = |tensor: &Tensor| -> Vec<f32> { tensor.flatten_all().unwrap().to_vec1().unwrap() };
    for (name, tensor) in &weights {
        assert_eq!(again[name].dims(), tensor.dims(), "{name}");
        assert_eq!(values(&again[name]), values(tensor), "{name}");
    }

    let again = message(path, &import(&[]), 2);
    assert_eq!(again, "error: run holds a run with checkpoints: choose another --out or remove it\n");
}

#[test]
fn an_imported_encoder_gives_timms_feature_with_the_given_preprocessing() {
    /// ONNX Runtime and PyTorch sum in another order; features are of order one.
    const TOLERANCE: f32 = 1e-4;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    save(&golden_weights(), &path.join("weights.safetensors"));
    let preprocess = ["--set", "preprocess.mean=[0.5,0.5,0.5]", "--set", "preprocess.std=[0.5,0.5,0.5]"];
    lejepa_succeeds(path, &import(&preprocess));
    lejepa_succeeds(path, &["export", "run"]);
    let encoder = lejepa_embed::Encoder::open(path.join("encoder.onnx")).unwrap();
    assert_eq!(encoder.preprocess().mean, [0.5; 3]);
    let golden = golden();
    let values = |name: &str| -> Vec<f32> { golden[name].flatten_all().unwrap().to_vec1().unwrap() };
    let features = encoder.embed_pixels(2, &values("input")).unwrap();
    for (feature, expected) in features.iter().zip(values("feature")) {
        assert!((feature - expected).abs() < TOLERANCE, "{feature} {expected}");
    }
}

#[test]
fn the_baseline_of_imported_weights_is_not_called_their_beginning() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    save(&golden_weights(), &path.join("weights.safetensors"));
    lejepa_succeeds(path, &import(&[]));
    lejepa_succeeds(path, &["export", "run", "--out", "encoder.onnx"]);
    for (class, name) in ["a", "b"].iter().enumerate() {
        for (split, images) in [("train", 4), ("test", 2)] {
            let folder = path.join("data").join(split).join(name);
            std::fs::create_dir_all(&folder).unwrap();
            for number in 0..images {
                let value = |x: u32, y: u32| (x * 7 + y * 13 + number * 31 + 90 * class as u32) as u8;
                let image = image::GrayImage::from_fn(32, 32, |x, y| image::Luma([value(x, y)]));
                image.save(folder.join(format!("{number}.png"))).unwrap();
            }
        }
    }
    let eval =
        ["eval", "encoder.onnx", "--suite", "knn", "--data", "data", "--cache", "cache", "--out", "out"];
    let table = String::from_utf8(lejepa_succeeds(path, &eval).stdout).unwrap();
    assert!(table.contains("| same architecture, random weights |"), "{table}");
    let report = std::fs::read_to_string(path.join("out/report.md")).unwrap();
    assert!(report.contains("with random weights: its own began elsewhere"), "{report}");
    assert!(!report.contains("before its first step"), "{report}");
}

#[test]
fn half_precision_and_another_image_size_are_converted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let half = |dtype| move |(name, tensor): (String, Tensor)| (name, tensor.to_dtype(dtype).unwrap());
    for (dtype, out) in [(DType::F16, "half"), (DType::BF16, "brain")] {
        let weights = golden_weights().into_iter().map(half(dtype)).collect();
        save(&weights, &path.join("weights.safetensors"));
        let arguments = import(&["--set", "encoder.image_size=[40, 64]", "--grid", "4"]);
        let arguments: Vec<&str> =
            arguments.into_iter().map(|word| if word == "run" { out } else { word }).collect();
        let output = lejepa_succeeds(path, &arguments);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(stderr.contains("positions resampled from a grid of 4x4 for images of 40x64"), "{stderr}");
        lejepa_succeeds(path, &["export", out, "--out", "weights.safetensors", "--overwrite"]);
        let weights = candle_core::safetensors::load(path.join("weights.safetensors"), &Device::Cpu).unwrap();
        assert_eq!(weights["pos_embed"].dims(), [1, 1 + 5 * 8, 48]);
        assert!(weights.values().all(|tensor| tensor.dtype() == DType::F32));
    }
}

/// Positions that change smoothly from row to row and from column to column, as trained ones do.
fn smooth_positions(rows: usize, columns: usize) -> Tensor {
    let value = |token: usize, dim: usize| {
        let place = token.saturating_sub(1);
        let along = if dim.is_multiple_of(2) { place / columns } else { place % columns };
        (along as f32 * 1.5 / (1 + dim / 12) as f32 + dim as f32).sin()
    };
    let values: Vec<f32> =
        (0..1 + rows * columns).flat_map(|token| (0..48).map(move |dim| value(token, dim))).collect();
    Tensor::from_vec(values, (1, 1 + rows * columns, 48), &Device::Cpu).unwrap()
}

#[test]
fn a_grid_of_positions_is_not_taken_for_another_of_as_many() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let mut weights = golden_weights();
    weights.insert("pos_embed".into(), smooth_positions(4, 16));
    save(&weights, &path.join("weights.safetensors"));
    let sized = |size: &'static str, extra: &[&'static str]| -> Vec<&'static str> {
        import(extra).into_iter().map(|word| if word == "32" { size } else { word }).collect()
    };
    let refused = message(path, &sized("64", &[]), 1);
    let expected = "error: the position embedding pos_embed of the shape [1, 64, 48] looks like a grid of 4x16, not \
                    of 8x8: give the grid of the weights, such as --grid 4x16\n";
    assert_eq!(refused, expected);
    let refused = message(path, &sized("40", &[]), 1);
    assert!(refused.contains("[1, 64, 48] is not of the grid 5x5 that the image size asks for"), "{refused}");
    let refused = message(path, &sized("64", &["--grid", "4x15"]), 1);
    assert!(refused.contains("[1, 64, 48] is not of the given grid 4x15"), "{refused}");
    assert!(!path.join("run").exists(), "nothing is left behind");

    let output = lejepa_succeeds(path, &sized("64", &["--grid", "4x16"]));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("note: positions resampled from a grid of 4x16 for images of 64x64"), "{stderr}");
    std::fs::remove_dir_all(path.join("run")).unwrap();
    let output = lejepa_succeeds(path, &sized("32x128", &[]));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("note: positions are a grid of 4x16\n"), "{stderr}");
    assert!(stderr.contains("images of 32x128"), "{stderr}");
    lejepa_succeeds(path, &["export", "run", "--out", "again.safetensors"]);
    let again = candle_core::safetensors::load(path.join("again.safetensors"), &Device::Cpu).unwrap();
    let values = |tensor: &Tensor| -> Vec<f32> { tensor.flatten_all().unwrap().to_vec1().unwrap() };
    assert_eq!(values(&again["pos_embed"]), values(&weights["pos_embed"]));

    let resnet = ["import", "weights.safetensors", "--arch", "resnet18", "--grid", "4x16", "--out", "other"];
    let refused = message(path, &resnet, 2);
    assert!(
        refused.contains("`--grid` must be absent for an encoder without position embedding"),
        "{refused}"
    );
}

#[test]
fn guesses_about_an_architecture_are_held_against_the_shapes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let mut weights = golden_weights();
    weights.insert("reg_token".into(), Tensor::zeros((1, 4, 48), DType::F32, &Device::Cpu).unwrap());
    weights.insert(
        "patch_embed.proj.weight".into(),
        Tensor::zeros((48, 3, 4, 4), DType::F32, &Device::Cpu).unwrap(),
    );
    save(&weights, &path.join("weights.safetensors"));
    let refused = message(path, &import(&[]), 1);
    assert!(refused.contains("unexpected: reg_token"), "{refused}");
    assert!(
        refused.contains("patch_embed.proj.weight ([48, 3, 4, 4] instead of [48, 3, 8, 8])"),
        "{refused}"
    );
    let registers = ["--set", "encoder.registers=2", "--set", "encoder.embed_prefix=false", "--grid", "4"];
    let refused = message(path, &import(&registers), 1);
    assert!(refused.contains("reg_token ([1, 4, 48] instead of [1, 2, 48])"), "{refused}");
    let without_class =
        ["--set", "encoder.class_token=false", "--set", "encoder.pool=average", "--grid", "4"];
    let refused = message(path, &import(&without_class), 1);
    assert!(
        refused.contains(
            "the position embedding pos_embed of the shape [1, 17, 48] is not of the given grid 4x4"
        ),
        "{refused}"
    );
}

#[test]
fn weights_of_another_encoder_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let mut weights = golden_weights();
    weights.remove("norm.bias");
    weights.insert("neck".into(), Tensor::zeros(3, DType::F32, &Device::Cpu).unwrap());
    save(&weights, &path.join("weights.safetensors"));
    let refused = message(path, &import(&[]), 1);
    let expected = "error: the weights do not fit the encoder (missing: norm.bias; unexpected: neck)\n";
    assert_eq!(refused, expected);
    assert!(!path.join("run").exists(), "nothing is left behind");

    let unknown = ["import", "weights.safetensors", "--arch", "vit_smal_patch16_224", "--out", "run"];
    assert!(message(path, &unknown, 2).contains("the nearest is vit_small_patch16_224"));
    let missing = ["import", "nowhere.safetensors", "--arch", "vit_tiny_patch16_224", "--out", "run"];
    assert_eq!(message(path, &missing, 2), "error: no such file or folder: nowhere.safetensors\n");
}

#[test]
fn files_that_are_no_weights_give_clear_errors() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let file = path.join("weights.safetensors");
    save(&golden_weights(), &file);
    let whole = std::fs::read(&file).unwrap();
    let mut endless_header = whole.clone();
    endless_header[..8].copy_from_slice(&u64::MAX.to_le_bytes());
    let huge_tensor = br#"{"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]}}"#;
    let mut huge = (huge_tensor.len() as u64).to_le_bytes().to_vec();
    huge.extend(huge_tensor);
    let pickle = b"\x80\x02}q\x00.".to_vec();
    for broken in
        [whole[..whole.len() / 2].to_vec(), whole[..5].to_vec(), endless_header, huge, pickle, vec![]]
    {
        std::fs::write(&file, broken).unwrap();
        let refused = message(path, &import(&[]), 1);
        assert!(refused.starts_with("error: not a valid safetensors file ("), "{refused}");
        assert!(refused.trim_end().ends_with("): weights.safetensors"), "{refused}");
    }
    std::fs::remove_file(&file).unwrap();
    std::fs::create_dir(&file).unwrap();
    assert!(message(path, &import(&[]), 1).starts_with("error: cannot read: weights.safetensors"));
}
