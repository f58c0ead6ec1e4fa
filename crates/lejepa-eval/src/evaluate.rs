//! Runs a suite over several kinds of features of the same images.

use std::path::{Path, PathBuf};
use std::time::Instant;

use lejepa_data::{Dataset, Purpose, Split, generator};
use lejepa_probe::{accuracy, predicted};
use ndarray::Array2;
use rand::seq::SliceRandom;

use crate::{
    DataInfo, Error, FeatureScores, FeatureSource, Features, Probe, Report, Result, Score, Suite, extract,
};

/// A labelled set with the images that a suite uses.
pub struct EvaluationData {
    path: PathBuf,
    train: SplitData,
    test: SplitData,
    classes: usize,
}

struct SplitData {
    dataset: Box<dyn Dataset>,
    indices: Vec<usize>,
    labels: Vec<usize>,
}

/// Features to be scored.
#[derive(Debug, Clone, Copy)]
pub struct Candidate<'a> {
    /// A row's title.
    pub name: &'a str,
    /// Where they come from.
    pub source: FeatureSource<'a>,
}

/// What is to be scored with what.
#[derive(Clone, Copy)]
pub struct Evaluation<'a> {
    /// The probes.
    pub suite: &'a Suite,
    /// The images.
    pub data: &'a EvaluationData,
    /// The rows of the table.
    pub candidates: &'a [Candidate<'a>],
    /// The command line, for the report.
    pub command: &'a str,
}

/// What an evaluation tells its caller.
#[derive(Debug)]
pub enum Event<'a> {
    /// Features of this many images are about to be extracted.
    Extracting {
        /// The candidate.
        name: &'a str,
        /// Images of both splits.
        images: usize,
    },
    /// This many more images are done.
    Extracted(usize),
    /// A probe has finished; the report holds its score.
    Scored(&'a Report),
}

impl EvaluationData {
    /// Opens both splits and draws the images that the suite uses.
    pub fn open(path: &Path, suite: &Suite) -> Result<Self> {
        let train = SplitData::open(path, Split::Train, suite.train_limit, suite.seed)?;
        let test = SplitData::open(path, Split::Test, suite.test_limit, suite.seed)?;
        let mut occurring = train.labels.clone();
        occurring.sort_unstable();
        occurring.dedup();
        if occurring.len() < 2 {
            return Err(Error::TooFewClasses { got: occurring.len() });
        }
        let classes = train.dataset.class_names().len().max(test.dataset.class_names().len());
        Ok(Self { path: path.into(), train, test, classes })
    }

    /// What a user should know about the data, such as listed images that are not there.
    pub fn notes(&self) -> impl Iterator<Item = &str> {
        [&self.train, &self.test].into_iter().flat_map(|split| split.dataset.notes()).map(String::as_str)
    }

    fn info(&self) -> DataInfo {
        DataInfo {
            path: self.path.display().to_string(),
            fingerprints: [&self.train, &self.test].map(|split| split.dataset.fingerprint().to_string()),
            train: self.train.indices.len(),
            train_available: self.train.dataset.len(),
            test: self.test.indices.len(),
            test_available: self.test.dataset.len(),
            classes: self.classes,
        }
    }
}

impl SplitData {
    fn open(path: &Path, split: Split, limit: Option<usize>, seed: u64) -> Result<Self> {
        let dataset = lejepa_data::open(path, split)?;
        let mut indices: Vec<usize> = (0..dataset.len()).collect();
        if let Some(limit) = limit.filter(|&limit| limit < indices.len()) {
            indices.shuffle(&mut generator(seed, Purpose::Evaluation, split as u64, 0));
            indices.truncate(limit);
            indices.sort_unstable();
        }
        let labels = indices
            .iter()
            .map(|&index| {
                let unlabelled = || Error::Unlabelled { index, split: split.name(), path: path.into() };
                dataset.label(index).ok_or_else(unlabelled)
            })
            .collect::<Result<_>>()?;
        Ok(Self { dataset, indices, labels })
    }

    /// `(images, dim)`
    fn features(&self, source: FeatureSource<'_>, observe: &mut dyn FnMut(Event<'_>)) -> Result<Array2<f32>> {
        let mut progress = |done| observe(Event::Extracted(done));
        extract(&*self.dataset, &self.indices, source, &mut progress)
    }
}

impl Evaluation<'_> {
    /// Scores every candidate with every probe. `observe` sees the report after each.
    pub fn run(&self, observe: &mut dyn FnMut(Event<'_>)) -> Result<Report> {
        let Self { suite, data, candidates, command } = *self;
        let mut report = Report {
            format: Report::FORMAT,
            suite: suite.name.clone(),
            command: command.into(),
            data: data.info(),
            seed: suite.seed,
            features: Vec::new(),
        };
        for candidate in candidates {
            let images = data.train.indices.len() + data.test.indices.len();
            observe(Event::Extracting { name: candidate.name, images });
            let clock = Instant::now();
            let train = data.train.features(candidate.source, observe)?;
            let train = Features::labelled(train, data.train.labels.clone(), data.classes)?;
            let test = data.test.features(candidate.source, observe)?;
            let test = Features::labelled(test, data.test.labels.clone(), data.classes)?;
            report.features.push(FeatureScores {
                name: candidate.name.into(),
                dim: candidate.source.dim(),
                seconds: clock.elapsed().as_secs_f64(),
                scores: Vec::new(),
            });
            for probe in &suite.probe {
                let protocol = probe.protocol(candidate.source.tag());
                let score = self.score(probe, protocol, &train, &test)?;
                if let Some(features) = report.features.last_mut() {
                    features.scores.push(score);
                }
                observe(Event::Scored(&report));
            }
        }
        Ok(report)
    }

    fn score(&self, probe: &Probe, protocol: String, train: &Features, test: &Features) -> Result<Score> {
        let clock = Instant::now();
        let (scores, protocol) = match probe {
            Probe::Knn(knn) => (knn.scores(train, test.values())?, protocol),
            Probe::Ridge(ridge) => {
                let (solution, lambda) = ridge.fit(train, self.suite.seed)?;
                (solution.scores(test.values())?, format!("{protocol}:lambda{}", lambda.value))
            }
        };
        Ok(Score {
            title: probe.title(),
            protocol,
            accuracy: accuracy(&predicted(&scores), &self.data.test.labels),
            seconds: clock.elapsed().as_secs_f64(),
        })
    }
}
