//! Runs on a bad day: signals, recipes with long numbers, divergence.

#![allow(clippy::unwrap_used)]

mod fixture;

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use candle_core::{DType, Device};
use fixture::{LEJEPA, lejepa, lejepa_succeeds, workspace};

/// A small residual network, whose batch normalisation has running statistics.
const RESNET: [&str; 7] = [
    "encoder={ arch = \"resnet\", image_size = 16, channels = 1, block = \"basic\", depths = [1, 1, 1, 1], widths = [8, 8, 16, 16] }",
    "views.local.count=0",
    "views.local_size=16",
    "projector.hidden=[16]",
    "optimizer.warmup=0",
    "train.checkpoint_every=1",
    "watch.every=1000",
];

fn newest_checkpoint(run: &Path) -> std::path::PathBuf {
    let entries = std::fs::read_dir(run.join("checkpoints")).unwrap();
    entries.map(|entry| entry.unwrap().path()).max().unwrap()
}

/// Starts a run that is far too long, and waits for some steps.
fn start_long_run(folder: &Path, further: &[&str]) -> Child {
    let mut command = Command::new(LEJEPA);
    command.current_dir(folder).args([
        "train",
        "--config",
        "train.toml",
        "--out",
        "run",
        "--epochs",
        "10000",
    ]);
    let child = command.args(further).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let started = Instant::now();
    let metrics = folder.join("run/metrics.jsonl");
    while std::fs::read_to_string(&metrics).unwrap_or_default().lines().count() < 3 {
        assert!(started.elapsed() < Duration::from_secs(120), "no progress");
        std::thread::sleep(Duration::from_millis(5));
    }
    child
}

fn send(child: &Child, signal: &str) {
    assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
}

#[test]
fn what_ends_a_session_saves_first_and_exits_with_128_and_the_signal() {
    for (signal, code) in [("-TERM", 143), ("-HUP", 129), ("-INT", 130)] {
        let folder = workspace();
        let child = start_long_run(folder.path(), &["--set", "train.checkpoint_every=1000000"]);
        // Those who close a session may well send it twice, and `timeout -s INT` sends it to the group too.
        send(&child, signal);
        send(&child, signal);
        let output = child.wait_with_output().unwrap();
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{message}");
        assert!(message.contains("the same command goes on"), "{message}");
        assert!(newest_checkpoint(&folder.path().join("run")).exists());
    }
}

#[test]
fn a_closed_terminal_does_not_stop_what_nohup_started() {
    let folder = workspace();
    let script =
        format!("trap '' HUP; exec {LEJEPA} train --config train.toml --out run --epochs 20 >/dev/null 2>&1");
    let mut child = Command::new("sh").current_dir(folder.path()).args(["-c", &script]).spawn().unwrap();
    let metrics = folder.path().join("run/metrics.jsonl");
    let started = Instant::now();
    while !metrics.exists() {
        assert!(started.elapsed() < Duration::from_secs(120), "no progress");
        std::thread::sleep(Duration::from_millis(5));
    }
    send(&child, "-HUP");
    assert!(child.wait().unwrap().success());
}

#[test]
fn checkpoints_are_saved_by_time_too() {
    let folder = workspace();
    let mut child = start_long_run(
        folder.path(),
        &["--set", "train.checkpoint_every=1000000", "--set", "train.checkpoint_minutes=0.001"],
    );
    let started = Instant::now();
    let checkpoints = folder.path().join("run/checkpoints");
    while !std::fs::read_dir(&checkpoints).is_ok_and(|mut files| {
        files.any(|file| file.unwrap().path().extension().is_some_and(|end| end == "safetensors"))
    }) {
        assert!(started.elapsed() < Duration::from_secs(60), "no checkpoint");
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_recipe_with_long_numbers_can_be_gone_on_with() {
    let folder = workspace();
    let train = [
        "train",
        "--config",
        "train.toml",
        "--out",
        "run",
        "--lambda",
        "0.0012738853503184715",
        "--set",
        "preprocess.mean=[0.49139968]",
        "--set",
        "preprocess.std=[0.24703233]",
        "--epochs",
        "1",
    ];
    lejepa_succeeds(folder.path(), &train);
    let again = lejepa_succeeds(folder.path(), &train);
    assert!(String::from_utf8_lossy(&again.stderr).contains("nothing to do"));
}

#[test]
fn a_diverged_run_blames_the_forward_pass_and_saves_finite_numbers() {
    let folder = workspace();
    let mut train = vec!["train", "--config", "train.toml", "--out", "run", "--set", "optimizer.lr=1e19"];
    RESNET.iter().for_each(|set| train.extend(["--set", set]));
    let output = lejepa(folder.path(), &train);
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(message.contains("the run diverged at step"), "{message}");
    assert!(!message.contains("running_"), "a statistic is never the first: {message}");
    let saved =
        candle_core::safetensors::load(newest_checkpoint(&folder.path().join("run")), &Device::Cpu).unwrap();
    for (name, tensor) in saved {
        let sum = tensor.to_dtype(DType::F64).unwrap().abs().unwrap().sum_all().unwrap();
        assert!(sum.to_scalar::<f64>().unwrap().is_finite(), "{name}");
    }
}
