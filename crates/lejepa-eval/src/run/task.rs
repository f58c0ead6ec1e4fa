//! One cell of a table as a task: its name, and how it is measured.

use std::time::Instant;

use lejepa_probe::{Answer, Probe, Question, Size, Watch, accuracy};

use crate::report::DrawResult;
use crate::run::cell::{Cell, CellDraw, Heading, TOP};
use crate::run::evaluation::Observer;
use crate::run::memory::lack;
use crate::run::program::program;
use crate::run::set_features::SetFeatures;
use crate::run::{Candidate, Event};
use crate::sets::{Draw, LabelledSet, Shots};
use crate::{Error, Result};

/// One cell that is to be measured.
#[derive(Clone, Copy)]
pub(crate) struct Task<'a> {
    pub(crate) dataset: &'a LabelledSet,
    pub(crate) candidate: &'a Candidate<'a>,
    pub(crate) probe: &'a Probe,
    pub(crate) features: &'a SetFeatures,
    /// Of its column.
    pub(crate) title: &'a str,
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
            title: self.title,
            probe: self.probe,
            shots: self.shots,
            feature: self.candidate.source.tag(self.features.output),
            resize: self.features.resize,
            splits: self.dataset.protocol(),
            sizes,
            labels: self.labels(),
        }
    }

    /// A name for the cell: the same one stands for the same numbers. It is of the very features and labels
    /// that go in, and of the program that makes predictions of them.
    pub(crate) fn key(&self, seed: u64) -> Result<String> {
        let samples: Vec<&[usize]> = self.draws.iter().map(|draw| draw.samples.as_slice()).collect();
        let classes = self.dataset.classes.len();
        let parts = (program(), &self.features.digests, classes, self.probe, samples, seed);
        let json = serde_json::to_vec(&parts).map_err(Error::Json)?;
        Ok(blake3::hash(&json).to_hex()[..24].to_string())
    }

    /// Whether a cell from disk is whole.
    pub(crate) fn fits(&self, cell: &Cell) -> bool {
        cell.draws.len() == self.draws.len()
            && cell.draws.iter().all(|draw| draw.predictions.len() == self.labels().len())
    }

    /// Why the probe is left out, if it would need more memory than there is.
    pub(crate) fn too_large(&self, available: Option<u64>) -> Option<String> {
        let SetFeatures { train, test, .. } = self.features;
        let samples = self.draws.iter().map(|draw| draw.samples.len()).max().unwrap_or(0);
        let outputs = self.dataset.classes.len().min(samples);
        let needed = self.probe.memory(Size { samples, dim: train.dim(), outputs, queries: test.len() });
        let lack = lack(needed, available)?;
        let (probe, candidate) = (self.probe.title(), &self.candidate.name);
        Some(format!("{probe} of {candidate} with shots: {}, was left out: it {lack}", self.shots))
    }

    /// What probes that share a pass say of one draw.
    pub(crate) fn ask(
        &self,
        probes: &[&Probe],
        draw: &Draw,
        seed: u64,
        observer: &mut Observer<'_>,
    ) -> Result<Vec<CellDraw>> {
        let clock = Instant::now();
        let SetFeatures { train, test, .. } = self.features;
        let train = match draw.samples.len() == train.len() {
            true => train.into(),
            false => train.only(&draw.samples)?,
        };
        let mut observe = |share| (observer.observe)(Event::Probed(share));
        let watch = &mut Watch::new(&mut observe);
        let question = Question { train, queries: test.into(), count: TOP, seed };
        let answers = Probe::answers(probes, &question, watch)?;
        let seconds = clock.elapsed().as_secs_f64();
        let of = |answer: Answer| {
            let predictions = answer.ranking.predicted();
            let result = DrawResult {
                draw: draw.number,
                train: draw.samples.len(),
                accuracy: accuracy(&predictions, self.labels()),
                top5: answer.ranking.top(TOP, self.labels()),
                choice: answer.choice,
                seconds,
            };
            CellDraw { result, predictions, alone: answer.ranking.alone() }
        };
        Ok(answers.into_iter().map(of).collect())
    }
}
