//! `lejepa sweep`, `lejepa runs` and `lejepa select` on runs of a few steps.

#![allow(clippy::unwrap_used)]

mod fixture;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use fixture::{LEJEPA, lejepa, lejepa_succeeds, workspace};
use serde_json::{Value, json};

/// Three runs of three steps, and three that diverge.
const GRID: &str = r#"
recipe = "train.toml"
[set]
train.epochs = 0.3
[grid]
"loss.lambda" = [0.05, 0.1, 0.2]
"optimizer.lr" = [2e-3, 1e30]
"#;
const STEPS: u64 = 3;

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn json_of(folder: &Path, arguments: &[&str]) -> Value {
    serde_json::from_slice(&lejepa_succeeds(folder, arguments).stdout).unwrap()
}

/// A sweep in a folder of its own.
fn swept() -> tempfile::TempDir {
    let folder = workspace();
    std::fs::write(folder.path().join("grid.toml"), GRID).unwrap();
    lejepa_succeeds(folder.path(), &["sweep", "grid.toml", "--out", "runs/sweep"]);
    folder
}

fn run_of(folder: &Path, lambda: &str) -> PathBuf {
    folder.join(format!("runs/sweep/loss.lambda={lambda},optimizer.lr=0.002"))
}

/// As if the run had been watched with labelled images.
fn write_look(run: &Path, knn: f64) {
    let gauge = json!({ "sigreg_over_floor": 1.5, "rankme": 6.25, "weak_directions": 1, "verdict": "1 weak direction" });
    let look = json!({ "step": STEPS, "features": gauge, "embeddings": gauge, "knn": knn, "linear": 0.5 });
    std::fs::write(run.join("watch.jsonl"), format!("{look}\n")).unwrap();
}

fn copy_run(from: &Path, to: &Path, change: impl Fn(String) -> String) {
    std::fs::create_dir_all(to).unwrap();
    std::fs::copy(from.join("metrics.jsonl"), to.join("metrics.jsonl")).unwrap();
    let config = std::fs::read_to_string(from.join("config.toml")).unwrap();
    std::fs::write(to.join("config.toml"), change(config)).unwrap();
}

#[test]
fn a_sweep_is_ranked_and_nothing_is_trained_twice() {
    let folder = swept();
    let path = folder.path();
    let metrics = std::fs::read(run_of(path, "0.05").join("metrics.jsonl")).unwrap();
    [("0.05", 0.5), ("0.1", 0.75), ("0.2", 1.)]
        .iter()
        .for_each(|(l, knn)| write_look(&run_of(path, l), *knn));

    let again = lejepa_succeeds(path, &["sweep", "grid.toml", "--out", "runs/sweep"]);
    let (stdout, stderr) = (text(&again.stdout), text(&again.stderr));
    assert_eq!(std::fs::read(run_of(path, "0.05").join("metrics.jsonl")).unwrap(), metrics);
    assert!(stdout.contains("Spearman correlation of the score with k-NN accuracy: "), "{stdout}");
    assert!(
        stdout.contains("with linear probe accuracy: none, it takes 3 runs that differ, got: 3"),
        "{stdout}"
    );
    assert!(stdout.ends_with("\nwritten to runs/sweep/sweep.md\n"), "{stdout}");
    assert_eq!(stderr.matches(" failed: the run diverged at step ").count(), 3, "{stderr}");
    let third = lejepa_succeeds(path, &["sweep", "grid.toml", "--out", "runs/sweep"]);
    assert_eq!((text(&third.stdout), text(&third.stderr)), (stdout.clone(), stderr));

    let markdown = std::fs::read_to_string(path.join("runs/sweep/sweep.md")).unwrap();
    assert!(markdown.contains("| runs/sweep/loss.lambda=0.2,optimizer.lr=0.002 | "), "{markdown}");
    assert_eq!(markdown.matches("` failed: the run diverged").count(), 3, "{markdown}");
    let record: Value =
        serde_json::from_slice(&std::fs::read(path.join("runs/sweep/sweep.json")).unwrap()).unwrap();
    assert_eq!(record["runs"].as_array().unwrap().len(), 6);
    assert_eq!(record["runs"][0]["outcome"], "complete");

    let selection = json_of(path, &["select", "runs/sweep", "--json"]);
    assert_eq!(selection["ranked"], record["selection"]["ranked"]);
    let scores: Vec<f64> =
        selection["ranked"].as_array().unwrap().iter().map(|run| run["score"].as_f64().unwrap()).collect();
    assert!(scores.len() == 3 && scores.is_sorted(), "{scores:?}");
    assert!(selection["spearman"]["knn"].as_f64().unwrap().abs() <= 1.);
    assert_eq!(selection["spearman"]["linear"], Value::Null);
}

/// Another run in the folder of one of a sweep's, at which the sweep ends.
fn put_in_the_way(path: &Path, run: &Path) {
    let _ = std::fs::remove_dir_all(run);
    let out = run.to_str().unwrap();
    lejepa_succeeds(
        path,
        &["train", "--config", "train.toml", "--epochs", "0.1", "--set", "seed=99", "--out", out],
    );
}

fn record(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path.join("runs/sweep/sweep.json")).unwrap()).unwrap()
}

#[test]
fn what_has_ended_is_written_after_every_run_and_remembered() {
    let folder = workspace();
    let path = folder.path();
    let sweep = ["sweep", "grid.toml", "--out", "runs/sweep"];
    std::fs::write(path.join("grid.toml"), GRID).unwrap();
    put_in_the_way(path, &run_of(path, "0.1"));
    assert_eq!(lejepa(path, &sweep).status.code(), Some(2));
    let found = record(path);
    let outcome = |run: usize| found["runs"][run]["outcome"].clone();
    assert_eq!((found["runs"].as_array().unwrap().len(), &found["complete"]), (2, &false.into()));
    assert_eq!(outcome(0), "complete");
    assert!(outcome(1)["diverged"].is_string());
    assert_eq!(found["selection"]["ranked"].as_array().unwrap().len(), 1);
    let markdown = std::fs::read_to_string(path.join("runs/sweep/sweep.md")).unwrap();
    assert!(markdown.contains("- runs that have not ended yet: 4\n"), "{markdown}");

    // A session that ends before it comes to a diverged run has not forgotten it.
    put_in_the_way(path, &run_of(path, "0.05"));
    assert_eq!(lejepa(path, &sweep).status.code(), Some(2));
    std::fs::remove_dir_all(run_of(path, "0.05")).unwrap();
    std::fs::remove_dir_all(run_of(path, "0.1")).unwrap();
    let diverged = path.join("runs/sweep/loss.lambda=0.05,optimizer.lr=1e30");
    std::fs::remove_dir_all(&diverged).unwrap();
    lejepa_succeeds(path, &sweep);
    assert!(!diverged.exists(), "nothing was trained again");
    assert_eq!(
        (record(path)["runs"].as_array().unwrap().len(), &record(path)["complete"]),
        (6, &true.into())
    );

    for (name, theirs) in [("sweep.json", "{}"), ("sweep.md", "mine")] {
        std::fs::create_dir_all(path.join("runs/mine")).unwrap();
        std::fs::write(path.join("runs/mine").join(name), theirs).unwrap();
        let refused = lejepa(path, &["sweep", "grid.toml", "--out", "runs/mine"]);
        let said = text(&refused.stderr);
        assert!(said.contains(&format!("not of a sweep, choose another --out: runs/mine/{name}")), "{said}");
        assert_eq!(std::fs::read_to_string(path.join("runs/mine").join(name)).unwrap(), theirs);
        std::fs::remove_file(path.join("runs/mine").join(name)).unwrap();
    }
}

#[test]
fn seeds_give_mean_and_deviation() {
    let folder = workspace();
    let path = folder.path();
    let grid = "recipe = \"train.toml\"\n[set]\ntrain.epochs = 0.3\n[grid]\nseed = [1, 2, 3]\n\"loss.lambda\" = [0.05, 0.1]\n";
    std::fs::write(path.join("grid.toml"), grid).unwrap();
    let output = lejepa_succeeds(path, &["sweep", "grid.toml", "--out", "runs/sweep"]);
    let stdout = text(&output.stdout);
    assert!(stdout.contains("over seeds") && stdout.contains(" and 2 more "), "{stdout}");
    assert!(!stdout.contains("do not compare"), "{stdout}");
    let groups = record(path)["selection"]["over_seeds"].clone();
    assert_eq!(groups.as_array().unwrap().len(), 2);
    let ranked = record(path)["selection"]["ranked"].clone();
    let names = groups[0]["runs"].as_array().unwrap();
    let score = |name: &Value| {
        let runs = ranked.as_array().unwrap();
        runs.iter().find(|run| run["run"]["run"] == *name).unwrap()["score"].as_f64().unwrap()
    };
    let scores: Vec<f64> = names.iter().map(score).collect();
    let mean = scores.iter().sum::<f64>() / 3.;
    let deviation = (scores.iter().map(|score| (score - mean).powi(2)).sum::<f64>() / 2.).sqrt();
    assert!((groups[0]["score"]["mean"].as_f64().unwrap() - mean).abs() < 1e-12);
    assert!((groups[0]["score"]["deviation"].as_f64().unwrap() - deviation).abs() < 1e-12 && deviation > 0.);
    assert!(groups[0]["score"]["mean"].as_f64() <= groups[1]["score"]["mean"].as_f64());

    // Folders that are named twice are met once, and a copy of a run is no other seed.
    let twice = json_of(path, &["select", "runs/sweep", "runs", "--json"]);
    assert_eq!(twice["over_seeds"], groups);
    let one = "loss.lambda=0.05,seed=1";
    copy_run(&path.join("runs/sweep").join(one), &path.join("runs/copy"), |config| config);
    let copied = json_of(path, &["select", "runs", "--json"]);
    assert_eq!(copied["over_seeds"][0]["score"], groups[0]["score"]);
    let remarks = copied["incomparable"].to_string();
    assert!(remarks.contains("the same run more than once, seed included: "), "{copied}");

    // A run that went on by itself is left out, and the others are trained and ranked.
    let run = format!("runs/sweep/{one}");
    lejepa_succeeds(path, &["train", "--out", &run, "--continue-with", "train.steps=9"]);
    let again = lejepa(path, &["sweep", "grid.toml", "--out", "runs/sweep"]);
    assert_eq!(again.status.code(), Some(1));
    assert_eq!(record(path)["selection"]["ranked"].as_array().unwrap().len(), 5);
    assert_eq!(record(path)["complete"], true);
}

#[test]
fn collapsed_runs_are_marked_and_come_last_and_other_views_are_remarked() {
    let folder = swept();
    let path = folder.path();
    let ranked = json_of(path, &["select", "runs/sweep", "--json"])["ranked"].clone();
    let best = ranked[0]["run"]["run"].as_str().unwrap().to_string();
    let log = path.join(&best).join("watch.jsonl");
    let mut look: Value =
        serde_json::from_str(std::fs::read_to_string(&log).unwrap().lines().last().unwrap()).unwrap();
    look["features"]["verdict"] = "collapsed".into();
    std::fs::write(&log, format!("{look}\n")).unwrap();
    let selected = text(&lejepa_succeeds(path, &["select", "runs/sweep"]).stdout);
    assert!(selected.lines().nth(3).unwrap().starts_with(&format!("{best} (collapsed)")), "{selected}");
    assert!(
        selected.contains(&format!("collapsed, of no use whatever their score, and last for that: {best}"))
    );
    let ranked = json_of(path, &["select", "runs/sweep", "--json"])["ranked"].clone();
    assert_eq!((&ranked[2]["run"]["run"], &ranked[2]["collapsed"]), (&best.clone().into(), &true.into()));
    assert_eq!(ranked[0]["collapsed"], false);

    copy_run(&run_of(path, "0.1"), &path.join("runs/flipped"), |config| {
        config.replace("\nflip = 0.5", "\nflip = 0.25")
    });
    for command in [["select", "runs"], ["runs", "runs"]] {
        let output = lejepa_succeeds(path, &command);
        let said = text(&output.stdout) + &text(&output.stderr);
        assert!(said.contains("losses are of different views and do not compare: runs/flipped | "), "{said}");
    }
}

#[test]
fn runs_are_listed_and_damaged_ones_noted() {
    let folder = swept();
    let path = folder.path();
    write_look(&run_of(path, "0.1"), 0.75);
    for (name, config) in [("foreign", "[package]\nname = \"other\"\n"), ("damaged", "= = ="), ("new", "")] {
        std::fs::create_dir_all(path.join("runs").join(name)).unwrap();
        std::fs::write(path.join("runs").join(name).join("config.toml"), config).unwrap();
    }
    for name in ["foreign", "damaged"] {
        std::fs::write(path.join("runs").join(name).join("metrics.jsonl"), [0xff, b'\n', b'{']).unwrap();
    }
    let listed = lejepa_succeeds(path, &["runs"]);
    let (stdout, stderr) = (text(&listed.stdout), text(&listed.stderr));
    let columns: Vec<&str> = stdout.lines().next().unwrap().split("  ").filter(|t| !t.is_empty()).collect();
    let titles = [
        "run",
        "arch",
        "data",
        "lambda",
        "lr",
        "batch",
        "steps",
        "loss",
        "SIGReg x floor",
        "RankMe",
        "verdict",
        "k-NN",
        "linear",
    ];
    assert_eq!(columns.iter().map(|title| title.trim()).collect::<Vec<_>>(), titles);
    let line = stdout.lines().find(|line| line.contains("lambda=0.1,optimizer.lr=0.002")).unwrap();
    // Columns are as wide as the widest of all runs.
    let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(line.contains(" vit data 0.1 0.002") && line.contains(" 3/3 "), "{line}");
    assert!(line.ends_with("6.2 1 weak direction 0.750 0.500"), "{line}");
    for name in
        ["runs/foreign: config.toml is not", "runs/damaged: config.toml is not", "runs/new: it has no"]
    {
        assert!(stderr.contains(&format!("skipped {name}")), "{stderr}");
    }

    let runs = json_of(path, &["runs", "--json"]);
    let run = runs
        .as_array()
        .unwrap()
        .iter()
        .find(|run| run["watch"]["step"] == STEPS && run["lambda"] == 0.1)
        .unwrap();
    assert_eq!(
        (&run["steps"], &run["total"], &run["watch"]["knn"]),
        (&STEPS.into(), &STEPS.into(), &0.75.into())
    );

    let missing = lejepa(path, &["runs", "nowhere"]);
    assert_eq!(
        (missing.status.code(), text(&missing.stderr)),
        (Some(2), "error: no such file or folder: nowhere\n".into())
    );
}

#[test]
fn looks_of_other_seeds_are_at_the_same_images() {
    let folder = workspace();
    let path = folder.path();
    lejepa_succeeds(path, &["train", "--config", "train.toml", "--epochs", "0.3", "--out", "first"]);
    for seed in ["0", "1"] {
        let (setting, out) = (format!("seed={seed}"), format!("further/{seed}"));
        let train = ["train", "--config", "train.toml", "--init", "first", "--epochs", "0.1"];
        lejepa_succeeds(path, &[&train[..], &["--set", &setting, "--out", &out]].concat());
    }
    let first_look = |seed: &str| -> Value {
        let text = std::fs::read_to_string(path.join("further").join(seed).join("watch.jsonl")).unwrap();
        let mut look: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
        // The projector is a new one, drawn with the seed.
        look.as_object_mut().unwrap().remove("embeddings");
        look
    };
    assert_eq!(first_look("0"), first_look("1"));
    assert!(first_look("0")["knn"].is_f64() && first_look("0")["watched"].is_string());
    let listed = lejepa_succeeds(path, &["runs", "further"]);
    assert_eq!(text(&listed.stderr), "");
}

#[test]
fn a_run_that_goes_on_with_other_watched_images_says_so() {
    let folder = workspace();
    let path = folder.path();
    let train = |images: &str| {
        let setting = format!("watch.images={images}");
        let train = ["train", "--config", "train.toml", "--out", "run", "--set", &setting];
        text(&lejepa_succeeds(path, &train).stderr)
    };
    assert!(!train("100").contains("other images or splits are watched"));
    let newest = path.join("run/checkpoints/step-00000020.safetensors");
    let weights = std::fs::read(&newest).unwrap();
    std::fs::remove_file(&newest).unwrap();
    let said = train("120");
    let note = "note: from here on other images or splits are watched: looks up to step 0 do not compare with later ones";
    assert!(said.contains(note) && said.contains("going on after step 15"), "{said}");
    // Looks decide nothing about the weights.
    let tensors =
        |bytes: &[u8]| bytes[8 + u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize..].to_vec();
    assert!(tensors(&weights) == tensors(&std::fs::read(&newest).unwrap()));
}

#[test]
fn numbers_of_other_images_are_told_apart() {
    let folder = swept();
    let path = folder.path();
    let selected = text(&lejepa_succeeds(path, &["select", "runs/sweep"]).stdout);
    assert!(!selected.contains("do not compare"), "{selected}");
    assert_eq!(text(&lejepa_succeeds(path, &["runs"]).stderr), "");
    let log = run_of(path, "0.05").join("watch.jsonl");
    let looks = std::fs::read_to_string(&log).unwrap();
    let mut other: Value = serde_json::from_str(looks.lines().last().unwrap()).unwrap();
    other["watched"] = "another".into();
    std::fs::write(&log, format!("{looks}{other}\n")).unwrap();
    let selected = text(&lejepa_succeeds(path, &["select", "runs/sweep"]).stdout);
    assert!(selected.contains("different watched images and do not compare"), "{selected}");
    assert!(
        selected.contains("with k-NN accuracy: none, runs were watched with different images"),
        "{selected}"
    );
    // Looks that do not say were at images that the seed had drawn.
    other.as_object_mut().unwrap().remove("watched");
    std::fs::write(&log, format!("{looks}{other}\n")).unwrap();
    let listed = text(&lejepa_succeeds(path, &["runs"]).stderr);
    assert!(
        listed.starts_with("note: gauges, k-NN and linear accuracies are of different watched images"),
        "{listed}"
    );

    copy_run(&run_of(path, "0.1"), &path.join("runs/elsewhere"), |config| {
        config.replace("path = \"data\"", "path = \"other\"")
    });
    let listed = text(&lejepa_succeeds(path, &["runs"]).stderr);
    assert!(
        listed.contains("losses are of different training data and do not compare: runs/elsewhere | "),
        "{listed}"
    );
}

#[test]
fn runs_of_other_conventions_are_converted_or_left_out() {
    let folder = swept();
    let path = folder.path();
    let run = run_of(path, "0.2");
    copy_run(&run, &path.join("picked/same"), lambda_of("0.2", "convex"));
    // 1 : 0.25 is 0.8 : 0.2, so the same terms have the same score.
    copy_run(&run, &path.join("picked/additive"), lambda_of("0.25", "additive"));
    copy_run(&run, &path.join("picked/zero"), lambda_of("0.0", "convex"));
    copy_run(&run, &path.join("picked/longer"), |config| config);
    let metrics = std::fs::read_to_string(run.join("metrics.jsonl")).unwrap();
    let longer = metrics.replace("\"total\":3", "\"total\":20");
    std::fs::write(path.join("picked/longer/metrics.jsonl"), longer).unwrap();
    let output = lejepa_succeeds(path, &["select", "picked", "--json"]);
    let (selection, stderr): (Value, String) =
        (serde_json::from_slice(&output.stdout).unwrap(), text(&output.stderr));
    let ranked = selection["ranked"].as_array().unwrap();
    assert_eq!(ranked.len(), 2, "{stderr}");
    let scores: Vec<f64> = ranked.iter().map(|run| run["score"].as_f64().unwrap()).collect();
    /// Terms and loss are logged as f32.
    const TOLERANCE: f64 = 1e-5;
    assert!((scores[0] / scores[1] - 1.).abs() < TOLERANCE, "{scores:?}");
    assert!(stderr.contains("left out picked/zero: there is no score without SIGReg, lambda: 0"), "{stderr}");
    assert!(stderr.contains("left out picked/longer: it has taken 3 of 20 steps"), "{stderr}");

    copy_run(&run, &path.join("picked/other"), |config| {
        config.replace("\nreduction = \"mean\"", "\nreduction = \"max\"")
    });
    let refused = lejepa(path, &["select", "picked"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused.stderr).contains("cannot be compared: picked/"), "{}", text(&refused.stderr));
    let nothing = lejepa(path, &["select", "picked/zero"]);
    assert!(text(&nothing.stderr).ends_with("error: no complete runs to choose from\n"));
}

fn lambda_of(lambda: &str, weighting: &str) -> impl Fn(String) -> String {
    move |config| {
        let changed = config.replace("\nlambda = 0.2\n", &format!("\nlambda = {lambda}\n"));
        changed.replace("weighting = \"convex\"", &format!("weighting = \"{weighting}\""))
    }
}

#[test]
fn ctrl_c_stops_a_sweep_and_saves_the_run() {
    let folder = workspace();
    let path = folder.path();
    let arguments = ["sweep", "grid.toml", "--set", "train.checkpoint_every=100000"];
    std::fs::write(path.join("grid.toml"), GRID.replace("epochs = 0.3", "epochs = 10000")).unwrap();
    let child =
        Command::new(LEJEPA).current_dir(path).args(arguments).stderr(Stdio::piped()).spawn().unwrap();
    let run = path.join("runs/grid/loss.lambda=0.05,optimizer.lr=0.002");
    while std::fs::read(run.join("metrics.jsonl")).map_or(0, |bytes| bytes.len()) == 0 {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    assert!(
        text(&output.stderr).contains(" of 100000; the same command goes on"),
        "{}",
        text(&output.stderr)
    );
    assert_eq!(std::fs::read_dir(run.join("checkpoints")).unwrap().count(), 1);
}

#[test]
fn mistakes_in_a_grid_end_before_the_first_run() {
    let folder = workspace();
    let path = folder.path();
    let fails = |grid: &str, arguments: &[&str], message: &str| {
        std::fs::write(path.join("grid.toml"), grid).unwrap();
        let output = lejepa(path, &[&["sweep", "grid.toml"], arguments].concat());
        assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
        assert!(text(&output.stderr).contains(message), "{}", text(&output.stderr));
    };
    fails(GRID, &["--data", "nowhere"], "error: no such file or folder: nowhere");
    fails(GRID, &["--set", "loss.lambda=0.1"], "`loss.lambda` is in the grid, and is set for all runs too");
    fails("recipe = \"train.toml\"\n", &[], "missing field `grid`");
    fails("[grid]\nseed = [1]\n", &[], "error: `data.path` must be given");
    assert!(!path.join("runs").exists());
}
