//! What `--dry-run` says of memory is what a run takes.

#![allow(clippy::unwrap_used)]
// The system tells it on Linux alone.
#![cfg(target_os = "linux")]

mod fixture;

use std::path::Path;
use std::process::{Command, Stdio};

use fixture::{LEJEPA, lejepa_succeeds, workspace};

/// A named ViT-tiny on images of 96 pixels: a run takes seconds, and most of its memory is that of steps.
const TINY: [&str; 15] = [
    "train",
    "--data",
    "data",
    "--arch",
    "vit_tiny_patch16_224",
    "--set",
    "encoder.channels=1",
    "--set",
    "encoder.image_size=96",
    "--set",
    "views.local.count=2",
    "--set",
    "watch.images=64",
    "--steps",
    "2",
];

/// The largest difference of estimate and truth, as a share of the truth.
const TOLERANCE: f64 = 0.1;

/// The gigabytes that a rehearsal speaks of.
fn estimate(folder: &Path, arguments: &[&str]) -> f64 {
    let output = lejepa_succeeds(folder, &[arguments, &["--dry-run"]].concat());
    let text = String::from_utf8(output.stdout).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("memory      about ")).unwrap();
    line.strip_suffix(" GB").unwrap().parse().unwrap()
}

/// The peak of a run in gigabytes.
fn peak(folder: &Path, arguments: &[&str]) -> f64 {
    let mut child = Command::new(LEJEPA)
        .current_dir(folder)
        .args(arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let status = format!("/proc/{}/status", child.id());
    let mut kilobytes = 0.;
    loop {
        // The system forgets it with the process, so it is asked until then.
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        kilobytes = line.map_or(kilobytes, |line| line.trim().strip_suffix(" kB").unwrap().parse().unwrap());
        if let Some(status) = child.try_wait().unwrap() {
            assert!(status.success());
            return kilobytes / 1e6 * 1.024;
        }
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
}

#[test]
fn a_rehearsal_tells_the_peak_of_memory() {
    for more in
        [&["--batch", "16"][..], &["--batch", "40"], &["--batch", "24", "--set", "train.micro_batch=8"]]
    {
        let folder = workspace();
        let arguments = [&TINY[..], more].concat();
        // Which thread allocates first is chance, and decides about gaps of this size: the middle of three.
        let median = |mut values: [f64; 3]| {
            values.sort_by(f64::total_cmp);
            values[1]
        };
        let estimate = median([(); 3].map(|()| estimate(folder.path(), &arguments)));
        let runs = ["one", "two", "three"];
        let peak = median(runs.map(|run| peak(folder.path(), &[&arguments[..], &["--out", run]].concat())));
        let difference = (estimate - peak) / peak;
        assert!(difference.abs() <= TOLERANCE, "{more:?}: {estimate} GB were said, {peak} GB taken");
    }
}

#[test]
fn a_look_keeps_no_activations() {
    /// Activations of 64 images would be 0.3 GB.
    const MOST: f64 = 0.12;
    let folder = workspace();
    let run = |out: &str, every: &str| {
        let arguments = [&TINY[..], &["--batch", "2", "--set", every, "--out", out]].concat();
        peak(folder.path(), &arguments)
    };
    let (with, without) = (run("with", "watch.every=1"), run("without", "watch.every=0"));
    assert!(with - without < MOST, "{with} GB with looks, {without} GB without");
}
