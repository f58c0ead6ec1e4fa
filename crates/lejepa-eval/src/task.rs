//! One cell of a table as a task: its name, and how it is measured.

use std::time::Instant;

use lejepa_probe::{accuracy, predicted, top};

use crate::cell::{Cell, CellDraw, Heading, TOP};
use crate::set_features::SetFeatures;
use crate::{Candidate, Draw, DrawResult, Error, LabelledSet, Probe, Report, Result, Shots};

/// One cell that is to be measured.
pub(crate) struct Task<'a> {
    pub(crate) dataset: &'a LabelledSet,
    pub(crate) candidate: &'a Candidate<'a>,
    pub(crate) probe: &'a Probe,
    pub(crate) features: &'a SetFeatures,
    pub(crate) shots: Shots,
    pub(crate) draws: &'a [Draw],
}

impl Task<'_> {
    fn labels(&self) -> &[usize] {
        self.features.test.targets().labels().unwrap_or_default()
    }

    pub(crate) fn heading<'a>(&'a self, sizes: &'a [usize]) -> Heading<'a> {
        Heading {
            candidate: &self.candidate.name,
            probe: self.probe,
            shots: self.shots,
            feature: self.candidate.source.tag(self.features.output),
            sizes,
            labels: self.labels(),
        }
    }

    /// A name for the cell: the same one stands for the same numbers.
    pub(crate) fn key(&self, seed: u64) -> Result<String> {
        let samples: Vec<&[usize]> = self.draws.iter().map(|draw| draw.samples.as_slice()).collect();
        let parts = (Report::FORMAT, &self.features.keys, self.probe, samples, seed);
        let json = serde_json::to_vec(&parts).map_err(Error::Json)?;
        Ok(blake3::hash(&json).to_hex()[..24].to_string())
    }

    /// Whether a cell from disk is whole.
    pub(crate) fn fits(&self, cell: &Cell) -> bool {
        cell.draws.len() == self.draws.len()
            && cell.draws.iter().all(|draw| draw.predictions.len() == self.labels().len())
    }

    pub(crate) fn ask(&self, draw: &Draw, seed: u64) -> Result<CellDraw> {
        let clock = Instant::now();
        let SetFeatures { train, test, .. } = self.features;
        let chosen;
        let train = if draw.samples.len() == train.len() {
            train
        } else {
            chosen = train.select(&draw.samples);
            &chosen
        };
        let answer = self.probe.ask(train, test.values(), seed)?;
        let predictions = predicted(&answer.scores);
        let result = DrawResult {
            draw: draw.number,
            train: draw.samples.len(),
            accuracy: accuracy(&predictions, self.labels()),
            top5: top(TOP, &answer.scores, self.labels()),
            choice: answer.choice,
            seconds: clock.elapsed().as_secs_f64(),
        };
        Ok(CellDraw { result, predictions, alone: answer.alone })
    }
}
