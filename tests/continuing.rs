//! Going on with a run: as it is, with a change, after divergence, and from checkpoints of other versions.

#![allow(clippy::unwrap_used)]

mod fixture;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use fixture::{LEJEPA, lejepa, lejepa_succeeds, workspace, write_stripes};
use serde_json::Value;

const TRAIN: [&str; 5] = ["train", "--config", "train.toml", "--out", "run"];

fn train(folder: &Path, more: &[&str]) -> Output {
    lejepa_succeeds(folder, &[&TRAIN[..], more].concat())
}

/// What a command that fails says.
fn refusal(folder: &Path, arguments: &[&str], code: i32) -> String {
    let output = lejepa(folder, arguments);
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(code), "{message}");
    message
}

fn checkpoint(folder: &Path, step: u64) -> PathBuf {
    folder.join(format!("run/checkpoints/step-{step:08}.safetensors"))
}

fn lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Rewrites the metadata of a checkpoint, as another version could have written it.
fn rewrite_header(path: &Path, change: impl FnOnce(&mut Value)) {
    let bytes = std::fs::read(path).unwrap();
    let (length, rest) = bytes.split_first_chunk::<8>().unwrap();
    let (header, tensors) = rest.split_at(u64::from_le_bytes(*length) as usize);
    let mut header: Value = serde_json::from_slice(header).unwrap();
    let mut said: Value = serde_json::from_str(header["__metadata__"]["lejepa"].as_str().unwrap()).unwrap();
    // Versions before the checksum wrote neither.
    said.as_object_mut().unwrap().retain(|name, _| !["checksum", "program"].contains(&name.as_str()));
    change(&mut said);
    header["__metadata__"]["lejepa"] = said.to_string().into();
    let header = header.to_string();
    let length = (header.len() as u64).to_le_bytes();
    std::fs::write(path, [&length, header.as_bytes(), tensors].concat()).unwrap();
}

#[test]
fn a_run_takes_as_many_steps_as_it_is_told() {
    let folder = workspace();
    train(folder.path(), &["--steps", "3"]);
    assert_eq!(lines(&folder.path().join("run/metrics.jsonl")).len(), 3);
    let both = refusal(folder.path(), &[&TRAIN[..], &["--steps", "3", "--epochs", "1"]].concat(), 2);
    assert!(both.contains("--steps") && both.contains("--epochs"), "{both}");
    let both = ["--set", "train.steps=3", "--set", "train.epochs=1"];
    let both = refusal(folder.path(), &[&TRAIN[..], &both].concat(), 2);
    assert!(both.contains("`train.steps` must be absent when train.epochs is given, got: 3"), "{both}");
}

#[test]
fn a_run_goes_on_when_nothing_but_its_folder_is_named() {
    let folder = workspace();
    let path = folder.path();
    train(path, &["--steps", "6", "--lambda", "0.03"]);
    let again = lejepa_succeeds(path, &["train", "--out", "run"]);
    assert!(String::from_utf8_lossy(&again.stderr).contains("nothing to do: all 6 steps were taken before"));
    let nothing = refusal(path, &["train", "--out", "elsewhere"], 2);
    assert!(nothing.contains("data.path"), "{nothing}");
}

#[test]
fn a_change_is_refused_until_somebody_asks_for_it_and_then_written_down() {
    let folder = workspace();
    let path = folder.path();
    train(path, &["--steps", "10"]);
    let longer = refusal(path, &[&TRAIN[..], &["--steps", "15"]].concat(), 2);
    assert!(longer.contains("`train.steps` is 10 there and 15 here"), "{longer}");
    assert!(longer.contains("--continue-with KEY=VALUE"), "{longer}");

    let change = ["train", "--out", "run", "--continue-with", "train.steps=15", "--continue-with"];
    let output = lejepa_succeeds(path, &[&change[..], &["optimizer.lr=1e-3"]].concat());
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("`train.steps` from 10 to 15 after step 10"), "{said}");
    assert!(said.contains("`optimizer.lr` from 0.002 to 0.001 after step 10"), "{said}");
    assert!(said.contains("the schedule is that of 15 steps from the beginning"), "{said}");
    let expected = serde_json::json!([
        { "step": 10, "key": "optimizer.lr", "before": "0.002", "after": "0.001" },
        { "step": 10, "key": "train.steps", "before": "10", "after": "15" },
    ]);
    assert_eq!(Value::Array(lines(&path.join("run/changes.jsonl"))), expected);
    let metrics = lines(&path.join("run/metrics.jsonl"));
    assert_eq!(metrics.len(), 15);
    assert_eq!(metrics[10]["changed"], expected);
    assert!(metrics.iter().enumerate().all(|(step, line)| step == 10 || line.get("changed").is_none()));
    let runs = lejepa_succeeds(path, &["runs", "run"]);
    let note = String::from_utf8(runs.stderr).unwrap();
    assert!(note.contains("run was changed on the way: `optimizer.lr` from 0.002 to 0.001"), "{note}");

    // The same command has nothing to add; the one without the change is that of another run by now.
    let again = lejepa_succeeds(path, &[&change[..], &["optimizer.lr=1e-3"]].concat());
    assert!(String::from_utf8_lossy(&again.stderr).contains("nothing to do"));
    assert_eq!(lines(&path.join("run/changes.jsonl")).len(), 2);
    let before = refusal(path, &[&TRAIN[..], &["--steps", "10"]].concat(), 2);
    assert!(before.contains("`optimizer.lr` is 0.001 there and 0.002 here"), "{before}");
}

#[test]
fn a_changed_run_that_is_killed_goes_on_as_the_changed_run() {
    let folder = workspace();
    let path = folder.path();
    let change = ["--continue-with", "optimizer.lr=1e-3", "--continue-with", "train.steps=12"];
    train(path, &["--steps", "8", "--set", "train.keep=9"]);
    lejepa_succeeds(path, &[&["train", "--out", "run"][..], &change].concat());
    let whole = std::fs::read(checkpoint(path, 12)).unwrap();
    // As if it had been killed before its first checkpoint after the change.
    std::fs::remove_file(checkpoint(path, 12)).unwrap();
    std::fs::remove_file(checkpoint(path, 10)).unwrap();
    lejepa_succeeds(path, &["train", "--out", "run"]);
    assert!(std::fs::read(checkpoint(path, 12)).unwrap() == whole);
}

#[test]
fn a_model_cannot_change_on_the_way() {
    let folder = workspace();
    let path = folder.path();
    train(path, &["--steps", "5"]);
    for change in ["encoder.dim=32", "projector.dim=4", "predictor.hidden=[4]", "averaging={kind='swa'}"] {
        let message = refusal(path, &["train", "--out", "run", "--continue-with", change], 2);
        assert!(message.contains("the model of a run stays as it is (`"), "{message}");
        assert!(message.contains("--init"), "{message}");
    }
    lejepa_succeeds(path, &["train", "--out", "run", "--continue-with", "encoder.drop_path=0.3"]);
    let shorter = refusal(path, &["train", "--out", "run", "--continue-with", "train.steps=4"], 2);
    assert!(shorter.contains("at least the 5 steps that were taken, got: 4"), "{shorter}");
    let nothing = refusal(path, &["train", "--out", "new", "--data", "data", "--continue-with", "seed=1"], 1);
    assert!(nothing.contains("no checkpoint in: new"), "{nothing}");
}

/// Replaces a line of a run's `config.toml`.
fn edit(folder: &Path, line: &str, by: &str) {
    let path = folder.join("run/config.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains(line), "{text}");
    std::fs::write(&path, text.replace(line, by)).unwrap();
}

#[test]
fn an_edited_configuration_counts_or_is_refused() {
    let folder = workspace();
    let path = folder.path();
    train(path, &["--steps", "10"]);
    // What decides nothing about the weights counts as it stands in the file.
    edit(path, "checkpoint_every = 5", "checkpoint_every = 2");
    lejepa_succeeds(path, &["train", "--out", "run", "--continue-with", "train.steps=12"]);
    assert!(std::fs::read_to_string(path.join("run/config.toml")).unwrap().contains("checkpoint_every = 2"));
    assert!(checkpoint(path, 12).exists());

    edit(path, "\nlr = 0.002", "\nlr = 0.001");
    let message = refusal(path, &["train", "--out", "run"], 2);
    assert!(message.contains("the newest checkpoint and the file disagree"), "{message}");
    assert!(message.contains("`optimizer.lr` is 0.002 there and 0.001 here"), "{message}");
    assert!(message.contains("run/config.toml"), "{message}");
    let asked = ["--continue-with", "optimizer.lr=1e-3", "--continue-with", "train.steps=14"];
    lejepa_succeeds(path, &[&["train", "--out", "run"][..], &asked].concat());
    let changes = lines(&path.join("run/changes.jsonl"));
    assert!(changes.iter().any(|change| change["key"] == "optimizer.lr"), "{changes:?}");
    lejepa_succeeds(path, &["train", "--out", "run"]);

    // Neither a key that was changed before nor one that was removed is taken for what it was.
    edit(path, "\nlr = 0.001", "\nlr = 0.5");
    let message = refusal(path, &["train", "--out", "run"], 2);
    assert!(message.contains("`optimizer.lr` is 0.001 there and 0.5 here"), "{message}");
    edit(path, "\nlr = 0.5", "\nlr = 0.001");
    let asked = ["--continue-with", "optimizer.clip=0.5", "--continue-with", "train.steps=16"];
    lejepa_succeeds(path, &[&["train", "--out", "run"][..], &asked].concat());
    edit(path, "clip = 0.5", "");
    let message = refusal(path, &["train", "--out", "run"], 2);
    assert!(message.contains("`optimizer.clip` is 0.5 there and absent here"), "{message}");
}

#[test]
#[cfg(target_os = "linux")]
fn a_pipe_among_the_files_of_a_run_is_an_error_at_once() {
    let folder = workspace();
    let path = folder.path();
    train(path, &["--steps", "5"]);
    for name in ["config.toml", "metrics.jsonl", "watch.jsonl", "checkpoints/step-00000005.safetensors"] {
        let (place, kept) = (path.join("run").join(name), path.join("kept"));
        std::fs::rename(&place, &kept).unwrap();
        assert!(Command::new("mkfifo").arg(&place).status().unwrap().success());
        let message = refusal(path, &["train", "--out", "run", "--continue-with", "train.steps=6"], 1);
        assert!(message.contains("it is not a regular file"), "{name}: {message}");
        std::fs::remove_file(&place).unwrap();
        std::fs::rename(&kept, &place).unwrap();
    }
}

#[test]
fn a_log_with_bytes_that_are_no_text_does_not_stop_a_run() {
    let folder = workspace();
    let path = folder.path();
    train(path, &["--steps", "5"]);
    let log = path.join("run/metrics.jsonl");
    std::fs::write(&log, [&std::fs::read(&log).unwrap()[..], b"\xff\xfe"].concat()).unwrap();
    lejepa_succeeds(path, &["train", "--out", "run", "--continue-with", "train.steps=7"]);
    assert_eq!(lines(&log).len(), 7);
}

#[test]
fn a_way_that_is_left_for_the_beginning_takes_its_history_with_it() {
    let folder = workspace();
    let path = folder.path();
    train(path, &["--steps", "5"]);
    let more = |more: &[&str]| lejepa_succeeds(path, &[&["train", "--out", "run"][..], more].concat());
    more(&["--continue-with", "train.steps=7", "--continue-with", "data.cache=cache"]);
    let changes = lines(&path.join("run/changes.jsonl"));
    let cache = changes.iter().find(|change| change["key"] == "data.cache").unwrap();
    assert_eq!(cache["after"], "\"cache\"");
    more(&["--from-step", "0", "--continue-with", "train.steps=6"]);
    assert!(!path.join("run/changes.jsonl").exists());
    assert!(path.join("run/changes.jsonl.left").exists());
}

#[test]
fn checkpoints_that_are_put_aside_replace_none() {
    let folder = workspace();
    let path = folder.path();
    let damage = || {
        let bytes = std::fs::read(checkpoint(path, 10)).unwrap();
        std::fs::write(checkpoint(path, 10), &bytes[..bytes.len() / 2]).unwrap();
    };
    train(path, &["--steps", "10"]);
    for _ in 0..2 {
        damage();
        train(path, &["--steps", "10"]);
    }
    for ending in ["damaged", "damaged-2"] {
        assert!(checkpoint(path, 10).with_extension(format!("safetensors.{ending}")).exists(), "{ending}");
    }
}

#[test]
fn moved_data_is_the_same_data_and_other_data_is_asked_for() {
    let folder = workspace();
    let path = folder.path();
    train(path, &["--steps", "5"]);
    std::fs::rename(path.join("data"), path.join("moved")).unwrap();
    let again = train(path, &["--steps", "5", "--data", "moved"]);
    assert!(String::from_utf8_lossy(&again.stderr).contains("nothing to do"));

    write_stripes(&path.join("other"), 170, 20);
    let refused = refusal(path, &[&TRAIN[..], &["--steps", "5", "--data", "other"]].concat(), 2);
    assert!(refused.contains("other training data"), "{refused}");
    assert!(refused.contains("--continue-with data.path=PATH"), "{refused}");
    let change = ["--continue-with", "data.path=other", "--continue-with", "train.steps=8"];
    lejepa_succeeds(path, &[&["train", "--out", "run"][..], &change].concat());
    let changes = lines(&path.join("run/changes.jsonl"));
    let data = changes.iter().find(|change| change["key"] == "data").unwrap();
    assert_ne!(data["before"], data["after"]);
    lejepa_succeeds(path, &["train", "--out", "run"]);
}

#[test]
fn the_command_that_a_diverged_run_names_goes_on() {
    for every in ["4", "1000"] {
        let folder = workspace();
        let path = folder.path();
        let every = format!("train.checkpoint_every={every}");
        // Far too high a rate, after a warm-up in which it is not.
        let more = ["--steps", "40", "--set", "optimizer.lr=1e12", "--set", "optimizer.warmup=1"];
        let arguments = [&TRAIN[..], &more, &["--set", &every, "--set", "projector.hidden=[]"]].concat();
        let message = refusal(path, &arguments, 1);
        assert!(message.contains("the run diverged at step"), "{message}");
        let hint = message.lines().find(|line| line.starts_with("hint: ")).unwrap();
        let mut command: Vec<String> =
            hint.split_once("lejepa ").unwrap().1.split(' ').map(str::to_string).collect();
        for attempt in 0.. {
            let output = lejepa(path, &command.iter().map(String::as_str).collect::<Vec<_>>());
            let message = String::from_utf8(output.stderr).unwrap();
            if output.status.success() {
                break;
            }
            // A tenth is not always enough; then the next message names the next one.
            assert!(message.contains("the run diverged at step") && attempt < 14, "{message}");
            let hint = message.lines().find(|line| line.starts_with("hint: ")).unwrap();
            command = hint.split_once("lejepa ").unwrap().1.split(' ').map(str::to_string).collect();
        }
        assert_eq!(lines(&path.join("run/metrics.jsonl")).len(), 40);
    }
}

#[test]
fn a_checkpoint_to_go_back_to_must_be_there() {
    let folder = workspace();
    let path = folder.path();
    train(path, &["--steps", "10"]);
    let back = ["train", "--out", "run", "--continue-with", "optimizer.lr=1e-3", "--from-step"];
    let message = refusal(path, &[&back[..], &["7"]].concat(), 2);
    assert!(
        message.contains("`--from-step` must be 0 or a checkpoint of the run (5, 10), got: 7"),
        "{message}"
    );
    lejepa_succeeds(path, &[&back[..], &["5"]].concat());
    assert!(path.join("run/checkpoints/step-00000010.safetensors.left").exists());
    let metrics = lines(&path.join("run/metrics.jsonl"));
    assert_eq!((metrics.len(), metrics[5]["changed"][0]["key"].as_str()), (10, Some("optimizer.lr")));
}

#[test]
fn a_newer_checkpoint_is_left_alone_and_its_weights_can_be_had() {
    let folder = workspace();
    let path = folder.path();
    train(path, &["--steps", "10"]);
    lejepa_succeeds(path, &["export", "run", "--out", "before.safetensors"]);
    let newer = checkpoint(path, 10);
    rewrite_header(&newer, |header| {
        header["format"] = 2.into();
        header["blake3"] = "of something else".into();
        header["config"]["train"]["warp"] = 9.into();
    });
    let bytes = std::fs::read(&newer).unwrap();
    for arguments in [&[&TRAIN[..], &["--steps", "10"]].concat()[..], &["train", "--out", "run"]] {
        let message = refusal(path, arguments, 1);
        assert!(message.contains("newer: its format is 2, this program reads 1"), "{message}");
        assert!(!message.contains("damaged"), "{message}");
    }
    assert!(std::fs::read(&newer).unwrap() == bytes, "neither renamed nor changed");

    let output = lejepa_succeeds(path, &["export", "run", "--out", "after.safetensors"]);
    let note = String::from_utf8(output.stderr).unwrap();
    assert!(note.contains("left out: train.warp"), "{note}");
    let weights = |name: &str| std::fs::read(path.join(name)).unwrap();
    assert!(weights("before.safetensors") == weights("after.safetensors"));
    lejepa_succeeds(path, &["export", "run", "--out", "encoder.onnx"]);
    let init = ["train", "--config", "train.toml", "--out", "further", "--init", "run", "--steps", "1"];
    lejepa_succeeds(path, &init);

    // What decides the encoder's numbers is never guessed.
    rewrite_header(&newer, |header| header["config"]["encoder"]["swish"] = true.into());
    let message = refusal(path, &["export", "run", "--out", "guess.onnx"], 1);
    assert!(message.contains("does not know what its `encoder.swish` means"), "{message}");
    lejepa_succeeds(path, &["export", "run", "--out", "bare.safetensors"]);
    assert!(weights("before.safetensors") == weights("bare.safetensors"));
}

#[test]
fn a_run_of_a_version_with_other_defaults_goes_on() {
    let folder = workspace();
    let path = folder.path();
    let stop = ["--steps", "10", "--set", "encoder.drop_path=0"];
    train(path, &stop);
    let whole = std::fs::read(checkpoint(path, 10)).unwrap();
    // As it was when stochastic depth was zero unless somebody gave it.
    for step in [5, 10] {
        rewrite_header(&checkpoint(path, step), |header| {
            header["config"]["encoder"].as_object_mut().unwrap().remove("drop_path");
        });
    }
    std::fs::remove_file(checkpoint(path, 10)).unwrap();
    let output = train(path, &["--steps", "10"]);
    let note = String::from_utf8(output.stderr).unwrap();
    assert!(note.contains("`encoder.drop_path` is not given and stays as in the run: 0"), "{note}");
    let weights = |bytes: &[u8]| {
        let header = u64::from_le_bytes(*bytes.first_chunk::<8>().unwrap()) as usize;
        bytes[8 + header..].to_vec()
    };
    assert!(weights(&whole) == weights(&std::fs::read(checkpoint(path, 10)).unwrap()));
}

#[test]
fn the_number_of_threads_decides_nothing() {
    // Large enough that work is divided among threads.
    let vit = "encoder={ arch = \"vit\", image_size = 16, channels = 1, patch_size = 2, dim = 48, depth = 2, heads = 3 }";
    let resnet = "encoder={ arch = \"resnet\", image_size = 32, channels = 1, depths = [1, 1, 1, 1], widths = [16, 16, 32, 32] }";
    let convnext = "encoder={ arch = \"convnextv2\", image_size = 32, channels = 1, depths = [1, 1, 1, 1], widths = [16, 16, 32, 32] }";
    for encoder in [vit, resnet, convnext] {
        let folder = workspace();
        let path = folder.path();
        let last = |threads: [&str; 2], out: &str| {
            let train = |threads: &str| {
                let mut command = Command::new(LEJEPA);
                command.current_dir(path).env("RAYON_NUM_THREADS", threads);
                command.args([
                    "train",
                    "--config",
                    "train.toml",
                    "--out",
                    out,
                    "--steps",
                    "4",
                    "--batch",
                    "40",
                ]);
                command.args([
                    "--set",
                    encoder,
                    "--set",
                    "views.local_size=32",
                    "--set",
                    "projector.hidden=[96]",
                ]);
                command.args(["--set", "train.checkpoint_every=2", "--set", "loss.slices=200"]);
                let output = command.output().unwrap();
                assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            };
            train(threads[0]);
            let last = path.join(out).join("checkpoints/step-00000004.safetensors");
            if threads[0] != threads[1] {
                std::fs::remove_file(&last).unwrap();
                train(threads[1]);
            }
            std::fs::read(last).unwrap()
        };
        let one = last(["1", "1"], "one");
        assert!(one == last(["3", "3"], "three"), "{encoder}");
        assert!(one == last(["7", "2"], "seven, then two"), "{encoder}");
    }
}

#[test]
fn a_look_that_a_session_did_not_come_to_is_taken_by_the_next() {
    let folder = workspace();
    let path = folder.path();
    train(path, &["--steps", "10", "--set", "watch.every=5"]);
    let looks = path.join("run/watch.jsonl");
    let whole = std::fs::read_to_string(&looks).unwrap();
    assert_eq!(whole.lines().count(), 3);
    // As if it had been killed between the last checkpoint and its look.
    let kept: String = whole.lines().take(2).map(|line| format!("{line}\n")).collect();
    std::fs::write(&looks, kept).unwrap();
    lejepa_succeeds(path, &["train", "--out", "run"]);
    assert_eq!(std::fs::read_to_string(&looks).unwrap(), whole);
    lejepa_succeeds(path, &["train", "--out", "run"]);
    assert_eq!(std::fs::read_to_string(&looks).unwrap(), whole, "and not twice");
}
