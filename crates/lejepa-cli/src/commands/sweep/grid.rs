//! The grid file of a sweep.
//!
//! ```toml
//! recipe = "train.toml"              # seen from the grid file; without one, the defaults
//!
//! [set]                              # the same for all runs
//! train.epochs = 20
//!
//! [grid]                             # every combination of these
//! "loss.lambda" = [0.02, 0.05, 0.2]
//! "optimizer.lr" = [5e-4, 2e-3]
//! ```

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::Result;
use lejepa_data::Error as DataError;
use lejepa_train::{Error as TrainError, Override, TrainConfig};
use serde::Deserialize;
use toml::{Table, Value};

/// All runs of a sweep.
#[derive(Debug)]
pub(super) struct Grid {
    path: PathBuf,
    recipe: Option<PathBuf>,
    set: Vec<Override>,
    axes: Vec<Axis>,
}

/// A key of the recipe and the values that it takes.
#[derive(Debug)]
struct Axis {
    key: String,
    values: Vec<Value>,
}

/// One combination.
#[derive(Debug)]
pub(super) struct Point {
    /// Key and value of every axis, the name of the run's folder.
    pub(super) name: String,
    pub(super) config: TrainConfig,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct GridFile {
    recipe: Option<PathBuf>,
    #[serde(default)]
    set: Table,
    grid: Table,
}

/// More runs than anyone waits for.
const MOST_RUNS: usize = 1000;

impl Grid {
    /// Reads a grid file.
    pub(super) fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).map_err(|source| match source.kind() {
            std::io::ErrorKind::NotFound => DataError::NotFound { path: path.into() },
            _ => DataError::Io { action: "read", path: path.into(), source },
        })?;
        let invalid = |problem: String| TrainError::Config { origin: path.display().to_string(), problem };
        let file: GridFile = toml::from_str(&text).map_err(|error| invalid(error.to_string()))?;
        let set = leaves(&file.set).into_iter();
        let set = set.map(|(key, value)| Override { key, value: Some(value) }).collect();
        let mut axes = Vec::new();
        for (key, value) in leaves(&file.grid) {
            match value {
                Value::Array(values) if !values.is_empty() => axes.push(Axis { key, values }),
                other => {
                    return Err(
                        invalid(format!("`grid.{key}` must be a list of values, got: {other}")).into()
                    );
                }
            }
        }
        let runs = axes.iter().try_fold(1usize, |runs, axis| runs.checked_mul(axis.values.len()));
        if axes.is_empty() || runs.is_none_or(|runs| runs > MOST_RUNS) {
            let problem = format!("`grid` must make 1 to {MOST_RUNS} runs of one key or more");
            return Err(invalid(problem).into());
        }
        let recipe = file.recipe.map(|recipe| path.parent().unwrap_or(Path::new("")).join(recipe));
        Ok(Self { path: path.into(), recipe, set, axes })
    }

    /// All combinations with what was typed; the last key changes fastest.
    pub(super) fn points(&self, typed: &[Override]) -> Result<Vec<Point>> {
        let fixed: Vec<Override> = self.set.iter().chain(typed).cloned().collect();
        let invalid =
            |problem: String| TrainError::Config { origin: self.path.display().to_string(), problem };
        if let Some(both) = fixed.iter().find(|fixed| self.axes.iter().any(|axis| axis.key == fixed.key)) {
            return Err(invalid(format!("`{}` is in the grid, and is set for all runs too", both.key)).into());
        }
        let mut combinations: Vec<Vec<Override>> = vec![Vec::new()];
        for Axis { key, values } in &self.axes {
            let with = |start: &Vec<Override>, value: &Value| {
                let next = Override { key: key.clone(), value: Some(value.clone()) };
                start.iter().cloned().chain([next]).collect()
            };
            combinations = combinations
                .iter()
                .flat_map(|start| values.iter().map(move |value| with(start, value)))
                .collect();
        }
        let mut names = BTreeSet::new();
        let point = |combination: Vec<Override>| {
            let name = combination.iter().map(part).collect::<Vec<_>>().join(",");
            if !names.insert(name.clone()) {
                return Err(invalid(format!("two runs would have the same name: {name}")).into());
            }
            let overrides = [fixed.clone(), combination].concat();
            Ok(Point { name, config: TrainConfig::load(self.recipe.as_deref(), &overrides)? })
        };
        combinations.into_iter().map(point).collect()
    }
}

/// Key paths and values; `loss.lambda = 0.1`, `"loss.lambda" = 0.1` and `[loss]` mean the same.
fn leaves(table: &Table) -> Vec<(String, Value)> {
    let below = |(key, value): (&String, &Value)| match value {
        Value::Table(table) => {
            leaves(table).into_iter().map(|(rest, value)| (format!("{key}.{rest}"), value)).collect()
        }
        value => vec![(key.clone(), value.clone())],
    };
    table.iter().flat_map(below).collect()
}

/// `loss.lambda=0.05`, without what a file system might not like.
fn part(change: &Override) -> String {
    let value = match &change.value {
        Some(Value::String(text)) => text.clone(),
        // 1e-5 and not 0.00001.
        Some(Value::Float(number)) => format!("{number:?}"),
        Some(value) => value.to_string(),
        None => String::new(),
    };
    let plain = |character: char| {
        if character.is_alphanumeric() || "._-+".contains(character) { character } else { '_' }
    };
    format!("{}={}", change.key, value.replace(' ', "").chars().map(plain).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(text: &str, typed: &[&str]) -> Result<Vec<Point>> {
        let folder = tempfile::tempdir()?;
        std::fs::write(folder.path().join("train.toml"), "[loss]\nslices = 64\n")?;
        let path = folder.path().join("grid.toml");
        std::fs::write(&path, text)?;
        let typed = typed.iter().map(|typed| Override::parse(typed)).collect::<Result<Vec<_>, _>>()?;
        Grid::read(&path)?.points(&typed)
    }

    #[test]
    fn every_combination_is_a_run() {
        let text = "recipe = \"train.toml\"\n[set]\ntrain.epochs = 3\n[grid]\n\"loss.lambda\" = [0.02, 0.2]\n\
                    optimizer.lr = [1e-3, 0.01, 0.1]\n";
        let points = points(text, &["seed=5"]).unwrap();
        let names: Vec<&str> = points.iter().map(|point| point.name.as_str()).collect();
        assert_eq!(names.len(), 6);
        assert_eq!(names[0], "loss.lambda=0.02,optimizer.lr=0.001");
        assert_eq!(names[5], "loss.lambda=0.2,optimizer.lr=0.1");
        let config = &points[5].config;
        assert_eq!((config.loss.lambda, config.optimizer.lr, config.loss.slices), (0.2, 0.1, 64));
        assert_eq!((config.train.epochs, config.seed), (Some(3.), 5));
    }

    #[test]
    fn values_that_are_lists_or_words_make_plain_names() {
        let text = "[grid]\n\"encoder.arch\" = [\"vit_tiny_patch16_224\"]\n\"projector.hidden\" = [[8, 9]]\n";
        let points = points(text, &[]).unwrap();
        assert_eq!(points[0].name, "encoder.arch=vit_tiny_patch16_224,projector.hidden=_8_9_");
        assert_eq!(points[0].config.projector.hidden, [8, 9]);
    }

    #[test]
    fn mistakes_are_named() {
        let message = |text: &str, typed: &[&str]| points(text, typed).unwrap_err().to_string();
        assert!(message("", &[]).contains("missing field `grid`"));
        assert!(message("[grid]\n", &[]).ends_with("`grid` must make 1 to 1000 runs of one key or more"));
        assert!(message("[grid]\nseed = 3\n", &[]).ends_with("`grid.seed` must be a list of values, got: 3"));
        assert!(message("gird = 1\n[grid]\nseed = [1]\n", &[]).contains("unknown field `gird`"));
        assert!(message("[grid]\nsede = [1]\n", &[]).contains("sede"));
        let twice = "`seed` is in the grid, and is set for all runs too";
        assert!(message("[grid]\nseed = [1]\n", &["seed=2"]).ends_with(twice));
        assert!(message("[grid]\nseed = [1, 1]\n", &[]).ends_with("the same name: seed=1"));
        assert!(message("recipe = \"nowhere.toml\"\n[grid]\nseed = [1]\n", &[]).contains("nowhere.toml"));
        assert!(message("[grid]\n\"loss.lambda\" = [2.0]\n", &[]).contains("lambda"));
    }
}
