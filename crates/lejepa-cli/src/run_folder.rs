//! Run folders of `lejepa train`: what was asked for, and what has become of it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::output::say;
use anyhow::{Context, Result};
use lejepa_data::{Error as DataError, regular_file};
use lejepa_train::{Change, StepMetrics, TrainConfig, WatchMetrics, read_watch};
use serde_json::json;

/// A run as its folder tells it.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) path: PathBuf,
    pub(crate) config: TrainConfig,
    /// Steps that were taken.
    pub(crate) steps: u64,
    /// All steps, if the log says so.
    pub(crate) total: Option<u64>,
    /// Means over the last tenth of the steps; nothing before the first step.
    pub(crate) tail: Option<Tail>,
    /// The last look at the features.
    pub(crate) watch: Option<WatchMetrics>,
    /// The loss of every step.
    pub(crate) losses: Vec<f64>,
    /// All looks.
    pub(crate) looks: Vec<WatchMetrics>,
    /// What was changed on the way.
    pub(crate) changes: Vec<Change>,
}

/// Means over the last tenth of the steps.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tail {
    pub(crate) loss: f64,
    pub(crate) prediction: f64,
    pub(crate) sigreg: f64,
    /// SIGReg over the value of a perfect Gaussian, where that is known.
    pub(crate) sigreg_over_floor: Option<f64>,
}

const CONFIG: &str = "config.toml";
const METRICS: &str = "metrics.jsonl";
const WATCH: &str = "watch.jsonl";
/// Folders of folders of runs are searched, deeper ones are not.
const DEPTH: usize = 2;

/// The runs at or below some folders, each once, in the order of their names; what cannot be read is noted.
pub(crate) fn find(folders: &[PathBuf]) -> Result<Vec<Run>> {
    let mut runs = Vec::new();
    for folder in folders {
        if !folder.exists() {
            return Err(DataError::NotFound { path: folder.clone() }.into());
        }
        search(folder, DEPTH, &mut runs);
    }
    // Folders may be named twice, or hold each other.
    let mut met = BTreeSet::new();
    runs.retain(|run| met.insert(run.path.canonicalize().unwrap_or_else(|_| run.path.clone())));
    Ok(runs)
}

fn search(folder: &Path, depth: usize, runs: &mut Vec<Run>) {
    match (folder.join(CONFIG).is_file(), folder.join(METRICS).is_file()) {
        (true, true) => match Run::read(folder) {
            Ok(run) => runs.push(run),
            Err(error) => say!("skipped {}: {error:#}", folder.display()),
        },
        (true, false) => say!("skipped {}: it has no {METRICS}", folder.display()),
        (false, true) => say!("skipped {}: it has no {CONFIG}", folder.display()),
        (false, false) if depth > 0 => match std::fs::read_dir(folder) {
            Ok(entries) => {
                let mut folders: Vec<PathBuf> =
                    entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
                folders.sort();
                folders.iter().for_each(|folder| search(folder, depth - 1, runs));
            }
            Err(error) => say!("skipped {}: {error}", folder.display()),
        },
        (false, false) => {}
    }
}

impl Run {
    /// Reads a run folder.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let text = regular_file::read_to_string(&path.join(CONFIG)).context(CONFIG)?;
        // The message alone: a note is one line.
        let config: TrainConfig = toml::from_str(&text)
            .map_err(|error| anyhow::anyhow!("{CONFIG} is not that of a run: {}", error.message()))?;
        let bytes = regular_file::read(&path.join(METRICS)).context(METRICS)?;
        let steps = metrics(&bytes);
        let looks = read_watch(&path.join(WATCH))?;
        Ok(Self {
            path: path.into(),
            steps: steps.last().map_or(0, |last| last.step + 1),
            // Logs from before this entry say 0.
            total: steps.last().map(|last| last.total).filter(|&total| total > 0),
            tail: Tail::of(&steps),
            config,
            watch: looks.last().cloned(),
            losses: steps.iter().map(|step| step.loss).collect(),
            changes: steps.iter().flat_map(|step| &step.changed).cloned().collect(),
            looks,
        })
    }

    /// What the run is called: its folder.
    pub(crate) fn name(&self) -> String {
        self.path.display().to_string()
    }

    /// Tells the images of the last look from those of other runs. Those of looks that do not say depended on the
    /// seed.
    pub(crate) fn watched(&self) -> Option<String> {
        let TrainConfig { seed, watch, data, .. } = &self.config;
        let drawn = || format!("seed {seed}, {:?}, {:?}, {watch:?}", data.path, data.mix);
        Some(self.watch.as_ref()?.watched.clone().unwrap_or_else(drawn))
    }

    /// The name of what was learnt from.
    pub(crate) fn data(&self) -> String {
        match &self.config.data.path {
            Some(path) => path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned(),
            None => "mixture".into(),
        }
    }

    /// Everything that a machine wants to compare.
    pub(crate) fn to_json(&self) -> serde_json::Value {
        json!({
            "run": self.name(),
            "arch": self.config.encoder.arch,
            "data": self.config.data.path,
            "lambda": self.config.loss.lambda,
            "lr": self.config.optimizer.lr,
            "batch": self.config.train.batch,
            "steps": self.steps,
            "total": self.total,
            "loss": self.tail.map(|tail| tail.loss),
            "sigreg_over_floor": self.tail.and_then(|tail| tail.sigreg_over_floor),
            "watch": self.watch,
            "changes": self.changes,
        })
    }
}

impl Tail {
    fn of(steps: &[StepMetrics]) -> Option<Self> {
        let last = &steps[steps.len() - steps.len().div_ceil(10)..];
        let mean = |value: &dyn Fn(&StepMetrics) -> Option<f64>| {
            let sum = last.iter().map(value).sum::<Option<f64>>()?;
            (!last.is_empty()).then(|| sum / last.len() as f64)
        };
        Some(Self {
            loss: mean(&|step| Some(step.loss))?,
            prediction: mean(&|step| Some(step.prediction))?,
            sigreg: mean(&|step| Some(step.sigreg))?,
            sigreg_over_floor: mean(&|step| step.sigreg_over_floor),
        })
    }
}

/// What does not compare between these runs, though it stands in one table.
pub(crate) fn incomparable<'a>(runs: impl Iterator<Item = &'a Run> + Clone) -> Vec<String> {
    let mut remarks = Vec::new();
    let learnt = |run: &Run| (run.config.data.sources().ok(), run.config.data.hold_out);
    let learnt: Groups<_> = group(runs.clone().map(|run| (learnt(run), run.name())));
    if learnt.len() > 1 {
        remarks
            .push(format!("losses are of different training data and do not compare: {}", listed(&learnt)));
    }
    for run in runs.clone().filter(|run| !run.changes.is_empty()) {
        let changes: Vec<String> = run.changes.iter().map(Change::to_string).collect();
        remarks.push(format!("{} was changed on the way: {}", run.name(), changes.join(", ")));
    }
    let same = group(runs.clone().map(|run| (run.config.clone(), run.name())));
    for (_, names) in same.into_iter().filter(|(_, names)| names.len() > 1) {
        let of_one = [((), names)].into();
        remarks.push(format!("the same run more than once, seed included: {}", listed(&of_one)));
    }
    // Centres are of global views, and what predicts them is of all.
    let seen = |run: &Run| {
        let TrainConfig { views, encoder, preprocess, train, .. } = &run.config;
        (
            views.clone(),
            encoder.resolve().ok().map(|shape| shape.image_size()),
            preprocess.clone(),
            train.masking,
        )
    };
    let seen = group(runs.clone().map(|run| (seen(run), run.name())));
    if seen.len() > 1 {
        remarks.push(format!("losses are of different views and do not compare: {}", listed(&seen)));
    }
    let watched = group(runs.filter_map(|run| Some((run.watched()?, run.name()))));
    if watched.len() > 1 {
        remarks.push(format!(
            "gauges, k-NN and linear accuracies are of different watched images and do not compare: {}",
            listed(&watched)
        ));
    }
    remarks
}

type Groups<Key, Member = String> = Vec<(Key, Vec<Member>)>;

/// Things by what they have in common.
pub(crate) fn group<Key: PartialEq, Member>(
    pairs: impl Iterator<Item = (Key, Member)>,
) -> Groups<Key, Member> {
    let mut groups: Groups<Key, Member> = Vec::new();
    for (key, member) in pairs {
        match groups.iter_mut().find(|(other, _)| *other == key) {
            Some((_, members)) => members.push(member),
            None => groups.push((key, vec![member])),
        }
    }
    groups
}

/// The groups, with the first few names of each.
fn listed<Key>(groups: &Groups<Key>) -> String {
    const MOST: usize = 3;
    let group = |(_, names): &(Key, Vec<String>)| match names.len() {
        ..=MOST => names.join(", "),
        more => format!("{} and {} more", names[..MOST].join(", "), more - MOST),
    };
    groups.iter().map(group).collect::<Vec<_>>().join(" | ")
}

/// The lines of a log; one that was cut off is left out.
fn metrics(bytes: &[u8]) -> Vec<StepMetrics> {
    bytes.split(|&byte| byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect()
}
