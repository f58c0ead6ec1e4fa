//! The whole path as a user walks it: train, export, evaluate; interrupted and resumed.

#![allow(clippy::unwrap_used)]

mod fixture;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use fixture::{LEJEPA, lejepa, lejepa_succeeds, workspace};
use lejepa_eval::Report;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

fn read_lines(path: &Path) -> Vec<serde_json::Value> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

fn checkpoints(run: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(run.join("checkpoints")).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

#[test]
fn training_export_and_evaluation_fit_together() {
    let folder = workspace();
    let path = folder.path();
    let output = lejepa_succeeds(path, &["train", "--config", "train.toml", "--out", "run", "--epochs", "4"]);
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "run\n");
    let metrics = read_lines(&path.join("run/metrics.jsonl"));
    assert_eq!(metrics.len(), 40);
    let mean_loss = |lines: &[serde_json::Value]| {
        lines.iter().map(|line| line["loss"].as_f64().unwrap()).sum::<f64>() / lines.len() as f64
    };
    assert!(mean_loss(&metrics[35..]) < mean_loss(&metrics[..5]), "the loss falls");
    assert_eq!(checkpoints(&path.join("run")).len(), 2, "older checkpoints are removed");

    let output = lejepa_succeeds(path, &["export", "run", "--out", "out/encoder.onnx"]);
    assert!(String::from_utf8(output.stderr).unwrap().contains("17 training images"));

    let output = lejepa_succeeds(path, &["eval", "out/encoder.onnx", "--suite", "quick", "--data", "data"]);
    let table = String::from_utf8(output.stdout).unwrap();
    let names: Vec<&str> = table
        .lines()
        .skip_while(|line| !line.starts_with("|--"))
        .skip(1)
        .filter_map(|line| line.strip_prefix("| ")?.split('|').next())
        .map(str::trim)
        .collect();
    assert_eq!(names, ["encoder", "same encoder, untrained", "raw pixels"]);

    let report = std::fs::read_to_string(path.join("eval-out-quick-data/report.json")).unwrap();
    let report: Report = serde_json::from_str(&report).unwrap();
    let set = &report.datasets[0];
    assert_eq!((set.train, set.test, set.classes.len()), (160, 60, 2));
    let protocols: Vec<&str> = set.results.iter().map(|result| result.protocol.as_str()).collect();
    assert_eq!(protocols[0], "knn:k20:T0.07:cls:l2");
    assert!(protocols[1].starts_with("ridge:scaled:folds5:cls:lambda"), "{protocols:?}");
    assert_eq!((protocols[4], report.candidates[2].dim), ("knn:k20:T0.07:pixels:l2", 256));
    // Stripes are easy; a table of constants or of mixed-up labels would not pass.
    assert!(set.results[1].accuracy > 0.9, "{:?}", set.results[1]);
    let markdown = std::fs::read_to_string(path.join("eval-out-quick-data/report.md")).unwrap();
    assert!(table.lines().filter(|line| line.starts_with('|')).all(|row| markdown.contains(row)), "{table}");
}

/// How often a run is killed; `scripts/kill-and-resume.sh` asks for more.
fn kills() -> u64 {
    std::env::var("LEJEPA_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(3)
}

#[test]
fn a_run_killed_at_random_moments_goes_on_to_the_same_weights() {
    let folder = workspace();
    let path = folder.path();
    let epochs = (6 * kills()).to_string();
    let train = |run: &str| {
        let mut command = Command::new(LEJEPA);
        command.current_dir(path).args([
            "train",
            "--config",
            "train.toml",
            "--epochs",
            &epochs,
            "--out",
            run,
        ]);
        // Everything that a checkpoint can hold.
        command.args(["--set", "averaging={kind='ema', decay=0.9}", "--set", "predictor.hidden=[8]"]);
        command.args(["--set", "encoder.drop_path=0.2", "--set", "train.masking=0.25"]);
        command.args(["--set", "train.micro_batch=8", "--set", "train.checkpoint_every=5"]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command
    };
    assert!(train("whole").status().unwrap().success());

    let seed = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos() as u64;
    let mut generator = ChaCha8Rng::seed_from_u64(seed);
    let mut killed = 0;
    for _ in 0..kills() {
        let mut child = train("killed").spawn().unwrap();
        // Not before it has come further than the last time, or it would never arrive; then any moment,
        // be it in a step, a log line or a checkpoint.
        let before = read_lines(&path.join("killed/metrics.jsonl")).len();
        let (steps, wait) = (generator.random_range(1..15), generator.random_range(0..20_000));
        let started = Instant::now();
        while read_lines(&path.join("killed/metrics.jsonl")).len() < before + steps
            && child.try_wait().unwrap().is_none()
        {
            assert!(started.elapsed() < Duration::from_secs(120), "no progress");
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_micros(wait));
        killed += u64::from(child.try_wait().unwrap().is_none());
        child.kill().unwrap();
        child.wait().unwrap();
    }
    assert!(killed >= kills().div_ceil(2), "the run was too fast to be killed");
    assert!(train("killed").status().unwrap().success());

    let last = |run: &str| std::fs::read(checkpoints(&path.join(run)).pop().unwrap()).unwrap();
    assert!(last("whole") == last("killed"), "weights and optimiser state differ, moments of seed {seed}");
    let losses = |run: &str| -> Vec<_> {
        let lines = read_lines(&path.join(run).join("metrics.jsonl"));
        lines.into_iter().map(|line| (line["step"].clone(), line["loss"].clone())).collect()
    };
    assert_eq!(losses("whole"), losses("killed"));
}

#[test]
fn a_damaged_checkpoint_costs_the_steps_since_the_one_before() {
    let folder = workspace();
    let path = folder.path();
    let run = path.join("run");
    let train = ["train", "--config", "train.toml", "--out", "run", "--set", "train.checkpoint_every=8"];
    lejepa_succeeds(path, &train);
    let files = checkpoints(&run);
    let (newest, before) = (&files[files.len() - 1], &files[files.len() - 2]);
    let whole = std::fs::read(newest).unwrap();

    // One bit in the middle of the weights; then a file that was cut off.
    let mut flipped = whole.clone();
    let middle = flipped.len() / 2;
    flipped[middle] ^= 1;
    for damaged in [&flipped[..], &whole[..whole.len() - 10], &whole[..5]] {
        std::fs::write(newest, damaged).unwrap();
        let output = lejepa_succeeds(path, &train);
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(message.contains("damaged checkpoint") && message.contains("step-00000020"), "{message}");
        assert!(message.contains("going on after step 16"), "{message}");
        assert!(std::fs::read(newest).unwrap() == whole, "the steps were taken again");
    }

    // With nothing to fall back on the run stops instead of starting anew.
    for file in
        checkpoints(&run).iter().filter(|file| file.extension().is_some_and(|end| end == "safetensors"))
    {
        std::fs::write(file, &whole[..5]).unwrap();
    }
    assert!(before.exists());
    let output = lejepa(path, &train);
    assert_eq!(output.status.code(), Some(1));
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        message.contains("damaged checkpoint") && message.contains("no other to go on from"),
        "{message}"
    );
    assert!(message.contains("hint: remove that file, and the same command begins anew"), "{message}");
    let left =
        checkpoints(&run).into_iter().find(|file| file.extension().is_some_and(|end| end == "safetensors"));
    std::fs::remove_file(left.unwrap()).unwrap();
    lejepa_succeeds(path, &train);
    assert!(std::fs::read(newest).unwrap() == whole, "all steps were taken again");
}

#[test]
fn a_diverged_run_names_the_tensor_and_keeps_the_batch() {
    let folder = workspace();
    let path = folder.path();
    let output =
        lejepa(path, &["train", "--config", "train.toml", "--out", "run", "--set", "optimizer.lr=1e30"]);
    assert_eq!(output.status.code(), Some(1));
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(message.contains("diverged at step") && message.contains("optimizer.lr"), "{message}");
    assert!(message.contains("not finite: ") && message.contains("run/diverged/step-"), "{message}");
    let batch = std::fs::read_dir(path.join("run/diverged")).unwrap().next().unwrap().unwrap().path();
    let views = candle_core::safetensors::load(&batch, &candle_core::Device::Cpu).unwrap();
    assert_eq!(views["global"].dims(), [2, 16, 1, 16, 16]);
    assert_eq!(views["local"].dims(), [1, 16, 1, 8, 8]);
    assert!(!checkpoints(&path.join("run")).is_empty(), "the steps before are saved");
}

#[test]
fn a_dry_run_tells_what_would_happen_and_writes_nothing() {
    let folder = workspace();
    let output = lejepa_succeeds(folder.path(), &["train", "--config", "train.toml", "--dry-run"]);
    let text = String::from_utf8(output.stdout).unwrap();
    for part in ["160 images", "2 x 16x16 global and 1 x 8x8 local", "tensors learn", "s per step", "GB"] {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert!(!folder.path().join("runs").exists());
}

#[test]
fn a_run_can_start_from_the_encoder_of_another() {
    let folder = workspace();
    let path = folder.path();
    lejepa_succeeds(path, &["train", "--config", "train.toml", "--out", "first"]);
    let further = ["train", "--config", "train.toml", "--out", "second", "--init", "first"];
    lejepa_succeeds(path, &[&further[..], &["--set", "optimizer.lr=1e-30"]].concat());
    let weights = |run: &str| {
        let file = checkpoints(&path.join(run)).pop().unwrap();
        candle_core::safetensors::load(file, &candle_core::Device::Cpu).unwrap()
    };
    let (first, second) = (weights("first"), weights("second"));
    let value = |weights: &std::collections::HashMap<String, candle_core::Tensor>, name: &str| {
        weights[name].flatten_all().unwrap().to_vec1::<f32>().unwrap()
    };
    let encoder = "encoder.blocks.0.attn.qkv.weight";
    assert_eq!(value(&first, encoder), value(&second, encoder), "no step moves it at this rate");
    let projector = "projector.output.weight";
    assert_ne!(value(&first, projector), value(&second, projector), "the projector is new");

    let output =
        lejepa(path, &[&further[..4], &["third", "--init", "first", "--set", "encoder.dim=32"]].concat());
    // As many patches in another shape.
    let long = ["fourth", "--init", "first", "--set", "encoder.image_size=[8, 32]"];
    let refused = lejepa(path, &[&further[..4], &long].concat());
    assert_eq!(refused.status.code(), Some(1));
    let message = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(message.contains("`encoder.image_size` is 16x16, here it is 8x32"), "{message}");
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(message.contains("cannot start from the encoder of first"), "{message}");
}

#[test]
fn a_finished_run_is_left_alone_and_another_recipe_is_refused() {
    let folder = workspace();
    let path = folder.path();
    let train = ["train", "--config", "train.toml", "--out", "run"];
    lejepa_succeeds(path, &train);
    let before = std::fs::read(checkpoints(&path.join("run")).pop().unwrap()).unwrap();
    let again = lejepa_succeeds(path, &train);
    assert!(String::from_utf8_lossy(&again.stderr).contains("nothing to do: all 20 steps were taken before"));
    assert!(std::fs::read(checkpoints(&path.join("run")).pop().unwrap()).unwrap() == before);

    let other = lejepa(path, &[&train[..], &["--lambda", "0.1"]].concat());
    assert_eq!(other.status.code(), Some(2));
    let message = String::from_utf8_lossy(&other.stderr).into_owned();
    assert!(message.contains("run holds a run with another configuration"), "{message}");
}

#[test]
fn ctrl_c_saves_and_exits_with_130() {
    let folder = workspace();
    let path = folder.path();
    let mut child = Command::new(LEJEPA)
        .current_dir(path)
        .args(["train", "--config", "train.toml", "--epochs", "2000", "--out", "run"])
        .args(["--set", "train.checkpoint_every=1000000"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    while read_lines(&path.join("run/metrics.jsonl")).len() < 3 {
        assert!(child.try_wait().unwrap().is_none(), "the run ended early");
        std::thread::sleep(Duration::from_millis(2));
    }
    let interrupt = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(interrupt.success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(checkpoints(&path.join("run")).len(), 1);
}

#[test]
fn a_damaged_checkpoint_is_named() {
    let folder = workspace();
    let path = folder.path();
    lejepa_succeeds(path, &["train", "--config", "train.toml", "--out", "run"]);
    let newest = checkpoints(&path.join("run")).pop().unwrap();
    let bytes = std::fs::read(&newest).unwrap();
    std::fs::write(&newest, &bytes[..bytes.len() / 2]).unwrap();
    let output = lejepa(path, &["export", "run"]);
    assert_eq!(output.status.code(), Some(1));
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(message.contains("damaged checkpoint") && message.contains("step-00000020"), "{message}");
    assert!(!path.join("encoder.onnx").exists());
}

#[test]
fn export_works_without_the_training_data() {
    let folder = workspace();
    let path = folder.path();
    lejepa_succeeds(path, &["train", "--config", "train.toml", "--out", "run"]);
    std::fs::remove_dir_all(path.join("data")).unwrap();
    let output = lejepa_succeeds(path, &["export", "run"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("17 made-up images"));
    assert!(path.join("encoder.onnx").exists());
}

#[test]
fn the_loss_of_a_recipe_takes_any_statistic_directions_and_convention() {
    let folder = workspace();
    let train = |out: &str, settings: &[&str]| {
        let mut arguments = vec!["train", "--config", "train.toml", "--epochs", "0.5", "--out", out];
        settings.iter().for_each(|setting| arguments.extend(["--set", *setting]));
        lejepa(folder.path(), &arguments)
    };
    let output = train("sobol", &["loss.statistic.name=watson", "loss.directions=sobol"]);
    assert!(String::from_utf8(output.stderr).unwrap().contains("x floor"));
    let output = train("max", &["loss.reduction=max", "loss.views=pooled", "loss.weighting=additive"]);
    let message = String::from_utf8(output.stderr).unwrap();
    let last = message.lines().last().unwrap();
    assert!(last.contains("SIGReg") && !last.contains("x floor"), "the largest slice has no floor: {last}");
    let metrics = read_lines(&folder.path().join("max/metrics.jsonl"));
    let of = |name: &str| metrics[0][name].as_f64().unwrap();
    assert!((of("loss") - of("prediction") - 0.05 * of("sigreg")).abs() < 1e-6);

    let output = train("bad", &["loss.statistic.name=watson", "loss.statistic.knots=17"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8(output.stderr).unwrap().contains("knots"));
}

#[test]
fn a_run_that_diverges_says_where() {
    let folder = workspace();
    let output = lejepa(
        folder.path(),
        &[
            "train",
            "--config",
            "train.toml",
            "--out",
            "run",
            "--set",
            "optimizer.lr=1e38",
            "--set",
            "optimizer.warmup=0",
        ],
    );
    assert_eq!(output.status.code(), Some(1));
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.contains("the run diverged at step"), "{message}");
    assert!(message.contains("lower `optimizer.lr`"), "{message}");
}
