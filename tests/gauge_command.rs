//! `lejepa gauge` on features of which it is known what is wrong with them.

#![allow(clippy::unwrap_used)]

mod fixture;

use std::path::Path;

use fixture::{lejepa, lejepa_succeeds};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

const SAMPLES: usize = 200;
const DIM: usize = 16;

/// Gaussian features as a `.npy` file, with each value changed by its column.
fn write_features(path: &Path, samples: usize, change: impl Fn(usize, f32) -> f32) {
    let mut generator = ChaCha8Rng::seed_from_u64(0);
    let values = (0..samples * DIM).map(|index| change(index % DIM, StandardNormal.sample(&mut generator)));
    let header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({samples}, {DIM}), }}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(values.flat_map(f32::to_le_bytes));
    std::fs::write(path, bytes).unwrap();
}

fn stdout(folder: &Path, arguments: &[&str]) -> String {
    String::from_utf8(lejepa_succeeds(folder, arguments).stdout).unwrap()
}

/// Features that are healthy, weak in two dimensions, collapsed and far too large.
fn features() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    write_features(&path("healthy.npy"), SAMPLES, |_, value| value);
    write_features(
        &path("weak.npy"),
        SAMPLES,
        |column, value| if column % 6 == 5 { 0.01 } else { 1. } * value,
    );
    write_features(&path("collapsed.npy"), SAMPLES, |_, _| 0.1);
    write_features(&path("large.npy"), SAMPLES, |_, value| 100. * value);
    folder
}

#[test]
fn the_verdict_comes_first_and_the_plot_last() {
    let folder = features();
    for (name, verdict) in [
        ("healthy", "healthy\nthe embeddings cannot be told from an isotropic Gaussian\n"),
        (
            "weak",
            "2 weak directions\n2 of 16 measurable directions hold less than a tenth of the variance they should; effective rank 13.",
        ),
        ("collapsed", "collapsed\nevery sample has the same embedding\n"),
    ] {
        let text = stdout(folder.path(), &["gauge", &format!("{name}.npy"), "--slices", "64"]);
        assert!(text.starts_with(&format!("{name}.npy: {verdict}")), "{text}");
        assert!(text.ends_with(&format!("\nplot: {name}.gauge.svg\n")), "{text}");
        let plot = std::fs::read_to_string(folder.path().join(format!("{name}.gauge.svg"))).unwrap();
        assert!(plot.starts_with("<svg") && plot.trim_end().ends_with("</svg>"));
        assert!(plot.contains(verdict.lines().next().unwrap()), "{plot}");
        assert!(!plot.contains("NaN") && !text.contains("NaN"));
    }
}

#[test]
fn the_reference_decides_whether_scale_matters() {
    let folder = features();
    let verdict = |reference: &str| {
        let text = stdout(folder.path(), &["gauge", "large.npy", "--slices", "64", "--reference", reference]);
        text.lines().next().unwrap().to_string()
    };
    assert_eq!(verdict("shape"), "large.npy: healthy");
    assert_eq!(verdict("standard"), "large.npy: off target");
}

#[test]
fn a_reading_is_also_json() {
    let folder = features();
    let arguments = ["gauge", "weak.npy", "--slices", "64", "--json"];
    let reading: serde_json::Value = serde_json::from_str(&stdout(folder.path(), &arguments)).unwrap();
    assert_eq!(reading["verdict"], serde_json::json!({ "kind": "weak_directions", "count": 2 }));
    assert_eq!((&reading["samples"], &reading["dim"]), (&SAMPLES.into(), &DIM.into()));
    assert_eq!(reading["reference"], "shape");
    assert_eq!(reading["sigreg"]["per_slice"].as_array().unwrap().len(), 64);
    assert!([5, 11].contains(&reading["worst_dimensions"][0]["index"].as_u64().unwrap()));
    assert!(!folder.path().join("weak.gauge.svg").exists(), "a plot that nobody asked for");

    let named = [&arguments[..], &["--out", "plots/a.svg"]].concat();
    let again: serde_json::Value = serde_json::from_str(&stdout(folder.path(), &named)).unwrap();
    assert_eq!(again, reading);
    assert!(folder.path().join("plots/a.svg").is_file());
}

#[test]
fn a_script_can_ask_for_health() {
    let folder = features();
    let code = |name: &str| {
        lejepa(folder.path(), &["gauge", name, "--slices", "64", "--fail-unless-healthy"]).status.code()
    };
    assert_eq!((code("healthy.npy"), code("weak.npy"), code("large.npy")), (Some(0), Some(1), Some(0)));
}

#[test]
fn features_that_cannot_be_measured_are_named() {
    let folder = features();
    let path = folder.path();
    write_features(
        &path.join("nan.npy"),
        SAMPLES,
        |column, value| if column == 3 { f32::NAN } else { value },
    );
    let whole = std::fs::read(path.join("healthy.npy")).unwrap();
    std::fs::write(path.join("short.npy"), &whole[..1000]).unwrap();
    write_features(&path.join("empty.npy"), 0, |_, value| value);
    std::fs::write(path.join("a.safetensors"), "no tensors").unwrap();
    std::fs::write(path.join("a.txt"), "no features").unwrap();
    for (arguments, code, message) in [
        (
            &["nan.npy"][..],
            1,
            "error: nan.npy: row 0, column 3 of the embeddings must be a number up to 1e30, got: NaN",
        ),
        (&["empty.npy"], 1, "error: empty.npy: a reading needs at least 16 samples, got: 0"),
        (
            &["short.npy"],
            1,
            "error: not a valid npy file (expected 12800 bytes for shape [200, 16], got 927): short.npy",
        ),
        (
            &["a.txt"],
            1,
            "error: not a valid features file (its name ends in neither .npy nor .safetensors): a.txt",
        ),
        (&["nowhere.npy"], 2, "error: no such file or folder: nowhere.npy"),
        (
            &["healthy.npy", "--slices", "0"],
            2,
            "error: healthy.npy: `slices` must be between 1 and 65536, got: 0",
        ),
        (&["healthy.npy", "--tensor", "x"], 2, "error: `tensor` must be absent for a .npy file, got: x"),
    ] {
        let output = lejepa(path, &[&["gauge"], arguments].concat());
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!((output.status.code(), stderr.trim_end()), (Some(code), message));
        assert!(output.stdout.is_empty());
    }
    let output = lejepa(path, &["gauge", "a.safetensors"]);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(stderr.starts_with("error: not a valid safetensors file ("), "{stderr}");
}

#[test]
fn a_file_with_several_matrices_asks_which() {
    let folder = tempfile::tempdir().unwrap();
    let golden = fixture::repository().join("tests/golden/probes.safetensors");
    std::fs::copy(golden, folder.path().join("probes.safetensors")).unwrap();
    let output = lejepa(folder.path(), &["gauge", "probes.safetensors"]);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr.contains("test (") && stderr.contains("train (300x20)"), "{stderr}");
    assert!(stderr.ends_with("hint: lejepa gauge FEATURES --tensor NAME\n"), "{stderr}");
    let text = stdout(folder.path(), &["gauge", "probes.safetensors", "--tensor", "train", "--slices", "64"]);
    assert!(text.contains("19.5"), "{text}");
}
