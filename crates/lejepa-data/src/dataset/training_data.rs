//! The `[data]` table of a recipe: one dataset or a weighted mixture.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::held_out::without_held_out;
use super::{Dataset, Format, Joined, ReadOptions, SourceConfig, Split, folder, open_source};
use crate::{Error, Image, Part, Result};

/// The `[data]` table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DataConfig {
    /// A folder or file, seen from the working directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<PathBuf>,
    /// How it is stored; recognised from the path if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<Format>,
    /// Which parts are learnt from; the training split if absent.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub splits: Vec<Split>,
    /// What only some formats need.
    #[serde(skip_serializing_if = "ReadOptions::is_empty")]
    pub options: ReadOptions,
    /// Leaves out what `lejepa eval` asks about: of a set without test split, a fifth of every class.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub hold_out: bool,
    /// Several datasets instead of one path.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mix: Vec<MixtureConfig>,
    /// The share of images that may be unreadable: they are replaced by others.
    pub broken_limit: f64,
    /// Threads that prepare batches while the step before is computed; one per core if absent. With 0,
    /// batches are made between steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workers: Option<usize>,
    /// A folder for decoded images, so that large ones are decoded once and not in every epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache: Option<PathBuf>,
    /// The short side to which images in the cache are shrunk; twice the image size if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_short_side: Option<usize>,
}

/// One dataset of a mixture.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MixtureConfig {
    /// A folder or file, seen from the working directory.
    pub path: PathBuf,
    /// How it is stored; recognised from the path if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<Format>,
    /// Which parts are learnt from; the training split if absent.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub splits: Vec<Split>,
    /// What only some formats need.
    #[serde(skip_serializing_if = "ReadOptions::is_empty")]
    pub options: ReadOptions,
    /// The share of samples that are drawn from it, relative to the other weights; in proportion to
    /// its size if no dataset has a weight.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight: Option<f64>,
}

impl Default for DataConfig {
    fn default() -> Self {
        Self {
            path: None,
            format: None,
            splits: Vec::new(),
            options: ReadOptions::default(),
            hold_out: false,
            mix: Vec::new(),
            broken_limit: 0.01,
            workers: None,
            cache: None,
            cache_short_side: None,
        }
    }
}

/// All images of a training run.
pub struct TrainingData {
    /// The images.
    pub dataset: Box<dyn Dataset>,
    /// How often they are drawn.
    pub parts: Vec<Part>,
}

impl DataConfig {
    /// Refuses values out of range and contradictions.
    pub fn check(&self) -> Result<()> {
        let refuse = |field, expected: &str, got: String| {
            Err(Error::Setting { field, expected: expected.into(), got })
        };
        if !(0. ..=1.).contains(&self.broken_limit) {
            return refuse("data.broken_limit", "between 0 and 1", self.broken_limit.to_string());
        }
        if self.workers.is_some_and(|workers| workers > Self::MOST_WORKERS) {
            let got = self.workers.unwrap_or_default().to_string();
            return refuse("data.workers", "at most 1024", got);
        }
        if self.path.is_some() && !self.mix.is_empty() {
            return refuse("data.mix", "absent when data.path is given", "both".into());
        }
        let of_one = self.format.is_some() || !self.splits.is_empty() || !self.options.is_empty();
        if of_one && !self.mix.is_empty() {
            let expected = "given for each dataset of data.mix";
            return refuse("data.format, splits and options", expected, "once for all".into());
        }
        let mut splits = self.splits.iter().chain(self.mix.iter().flat_map(|set| &set.splits));
        if let Some(split) =
            splits.find(|split| self.hold_out && matches!(split, Split::Test | Split::Validation))
        {
            let expected = "absent where splits are learnt from that evaluations may ask about";
            return refuse("data.hold_out", expected, format!("true, with the {} split", split.name()));
        }
        if let Some(side) = self.cache_short_side
            && !(1..=4096).contains(&side)
        {
            return refuse("data.cache_short_side", "between 1 and 4096", side.to_string());
        }
        if self.cache_short_side.is_some() && self.cache.is_none() {
            return refuse("data.cache", "a folder when data.cache_short_side is given", "nothing".into());
        }
        Ok(())
    }

    const MOST_WORKERS: usize = 1024;

    /// Threads that prepare batches.
    pub fn worker_threads(&self) -> usize {
        self.workers.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from))
    }

    /// The datasets, whether one or several.
    pub fn sources(&self) -> Result<Vec<MixtureConfig>> {
        if !self.mix.is_empty() {
            return Ok(self.mix.clone());
        }
        let path = self.path.clone().ok_or_else(|| Error::Setting {
            field: "data.path",
            expected: "given in the recipe or with --data".into(),
            got: "nothing".into(),
        })?;
        let (format, splits, options) = (self.format, self.splits.clone(), self.options.clone());
        Ok(vec![MixtureConfig { path, format, splits, options, weight: None }])
    }

    /// Some of the images, for a look; fewer if not so many can be read. Of a folder no more is listed than that
    /// takes, however many files there are.
    pub fn first_images(&self, count: usize) -> Vec<Image> {
        /// Some may be broken.
        const TRIES: usize = 4;
        let sources = self.sources().unwrap_or_default();
        if let [MixtureConfig { path, format, splits, options, .. }] = &sources[..]
            && splits.is_empty()
        {
            let source = SourceConfig { path: path.clone(), format: *format, options: options.clone() };
            if source.recognise().is_ok_and(|format| format == Format::Folder) {
                let files = folder::first_images(path, TRIES * count);
                return files.iter().filter_map(|file| Image::open(file).ok()).take(count).collect();
            }
        }
        let Ok(TrainingData { dataset, .. }) = self.open(&mut Ok) else { return Vec::new() };
        (0..dataset.len().min(TRIES * count))
            .filter_map(|index| dataset.image(index).ok())
            .take(count)
            .collect()
    }

    /// Opens all datasets. `prepare` sees each of them first, and may put a cache before it.
    pub fn open(
        &self,
        prepare: &mut dyn FnMut(Box<dyn Dataset>) -> Result<Box<dyn Dataset>>,
    ) -> Result<TrainingData> {
        let mut datasets = Vec::new();
        let mut sizes_and_weights = Vec::new();
        for MixtureConfig { path, format, splits, options, weight } in self.sources()? {
            let source = SourceConfig { path, format, options };
            let splits = if splits.is_empty() { vec![Split::Train] } else { splits };
            let mut samples = 0;
            for split in splits {
                let dataset = match split {
                    Split::Train if self.hold_out => without_held_out(&source)?,
                    _ => open_source(&source, split)?,
                };
                let dataset = prepare(dataset)?;
                samples += dataset.len();
                datasets.push(dataset);
            }
            sizes_and_weights.push((samples, weight));
        }
        let parts = Part::weighted(&sizes_and_weights)?;
        let dataset = match <[_; 1]>::try_from(datasets) {
            Ok([only]) => only,
            Err(several) => Box::new(Joined::new(several)),
        };
        Ok(TrainingData { dataset, parts })
    }
}
