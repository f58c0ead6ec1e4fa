//! All candidates and probes of an evaluation on one set.

use lejepa_data::{Output, ResizeRule, available_memory};
use lejepa_probe::Probe;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::features::FeatureSource;
use crate::isotropy::Isotropy;
use crate::pictures::{CandidatePictures, Illustration, Pictures};
use crate::report::{CandidateIsotropy, DatasetReport, Report};
use crate::run::cell::{Cell, Heading};
use crate::run::evaluation::Observer;
use crate::run::set_features::SetFeatures;
use crate::run::task::Task;
use crate::run::{Candidate, Evaluation, Event};
use crate::sets::{Draw, Drawing, LabelledSet, Shots};
use crate::{Error, Result};

/// An evaluation at work; the last set of the report is this one.
pub(crate) struct SetRun<'a, 'b> {
    evaluation: &'a Evaluation<'a>,
    dataset: &'a LabelledSet,
    report: &'a mut Report,
    observer: &'a mut Observer<'b>,
    /// What was measured, for comparisons.
    cells: Vec<Known>,
    /// The first candidate's training and test images: those of the others must be the same.
    images: Option<[Vec<usize>; 2]>,
}

/// A cell of the report with its predictions.
struct Known {
    candidate: usize,
    /// Of its column.
    title: String,
    shots: Shots,
    /// Numbers of the test images that were asked.
    images: Vec<usize>,
    cell: Cell,
}

impl<'a, 'b> SetRun<'a, 'b> {
    pub(crate) fn new(
        evaluation: &'a Evaluation<'a>,
        dataset: &'a LabelledSet,
        report: &'a mut Report,
        observer: &'a mut Observer<'b>,
    ) -> Self {
        Self { evaluation, dataset, report, observer, cells: Vec::new(), images: None }
    }

    pub(crate) fn run(mut self) -> Result<()> {
        let suite = self.evaluation.suite;
        for candidate in 0..self.evaluation.candidates.len() {
            let mut known: Vec<SetFeatures> = Vec::new();
            for (number, probe) in suite.probe.iter().enumerate() {
                for output in self.outputs(candidate, probe) {
                    let resize = suite.knn_resize.filter(|_| matches!(probe, Probe::Knn(_)));
                    let features = self.features(candidate, (output, resize), &mut known)?;
                    self.score(candidate, probe, features)?;
                }
                // Features are large: what only k-NN looks at goes before another probe takes its own.
                if !matches!(suite.probe.get(number + 1), Some(Probe::Knn(_))) {
                    known.retain(|features| features.resize.is_none());
                }
            }
            if let Some(isotropy) = &suite.isotropy {
                let features = self.features(candidate, (Output::Embedding, None), &mut known)?;
                self.shape(candidate, isotropy, features)?;
            }
            if let Some(pictures) = &suite.pictures {
                // What the first probe saw.
                let output = known.first().map_or(Output::Embedding, |features| features.output);
                let features = self.features(candidate, (output, None), &mut known)?;
                self.draw(candidate, pictures, features)?;
            }
        }
        Ok(())
    }

    /// What a probe looks at. Where not all candidates have what it would like to see, it looks at the
    /// embedding of all of them, and at that of those that have it beside: only like is compared with like.
    fn outputs(&mut self, candidate: usize, probe: &Probe) -> Vec<Output> {
        let (wanted, candidates) = (probe.output(), self.evaluation.candidates);
        let has = |candidate: &Candidate<'_>| candidate.source.output(wanted) == wanted;
        let lacking: Vec<&str> =
            candidates.iter().filter(|it| !has(it)).map(|candidate| candidate.name.as_str()).collect();
        if lacking.is_empty() {
            return vec![wanted];
        }
        if lacking.len() < candidates.len() {
            let note = format!(
                "{} looks at {} where there is one, in a column of its own, and at the embedding of all: none \
                 of {}",
                probe.title(),
                wanted.name(),
                lacking.join(", ")
            );
            // What is measured comes next, and hears of a caller who wants to stop.
            let _ = self.note(note);
        }
        if has(&candidates[candidate]) { vec![Output::Embedding, wanted] } else { vec![Output::Embedding] }
    }

    fn set(&mut self) -> Option<&mut DatasetReport> {
        self.report.datasets.last_mut()
    }

    /// Writes the report, which has got a result more.
    fn write(&mut self) -> Result<()> {
        self.evaluation.folder.write(self.report)?;
        self.observer.tell(Event::Scored(self.report))
    }

    /// What a probe looks at: an output that the encoder has, of images with a margin around the crop if there
    /// is a factor for that, from `known` if it is there.
    fn features<'f>(
        &mut self,
        candidate: usize,
        (wanted, resize): (Output, Option<f64>),
        known: &'f mut Vec<SetFeatures>,
    ) -> Result<&'f SetFeatures> {
        let candidate = &self.evaluation.candidates[candidate];
        let output = candidate.source.output(wanted);
        let prepared = resize.and_then(|factor| candidate.source.with_margin(factor));
        let side = prepared.as_ref().and_then(|preprocess| match preprocess.resize {
            ResizeRule::ShortSide(side) => Some(side),
            ResizeRule::Squash => None,
        });
        let same = |features: &SetFeatures| features.output == output && features.resize == side;
        if let Some(place) = known.iter().position(same) {
            return Ok(&known[place]);
        }
        let place = (output, self.evaluation.cache);
        let mut features = match (&prepared, candidate.source) {
            (None, _) => SetFeatures::compute(self.dataset, candidate, place, self.observer)?,
            (Some(preprocess), FeatureSource::Pixels(_)) => {
                let candidate = Candidate { source: FeatureSource::Pixels(preprocess), ..candidate.clone() };
                SetFeatures::compute(self.dataset, &candidate, place, self.observer)?
            }
            (Some(preprocess), FeatureSource::Encoder(encoder)) => {
                let encoder = encoder.prepared_by(preprocess.clone())?;
                let candidate = Candidate { source: FeatureSource::Encoder(&encoder), ..candidate.clone() };
                SetFeatures::compute(self.dataset, &candidate, place, self.observer)?
            }
        };
        features.resize = side;
        features.notes.iter().try_for_each(|note| self.note(note.clone()))?;
        self.compare_images(&candidate.name, &features)?;
        // Images that cannot be read are not used.
        if let Some(set) = self.set() {
            set.train = set.train.min(features.train_images.len());
            set.test = set.test.min(features.test_images.len());
        }
        known.push(features);
        Ok(&known[known.len() - 1])
    }

    /// Numbers of one table are of the same images. An image that cannot be read is missing for all; features
    /// that are not finite for one encoder alone would let it leave out the images it fails on.
    fn compare_images(&mut self, candidate: &str, features: &SetFeatures) -> Result<()> {
        let own = [&features.train_images, &features.test_images];
        let Some(first) = &self.images else {
            self.images = Some(own.map(Clone::clone));
            return Ok(());
        };
        for (split, (first, own)) in ["training", "test"].into_iter().zip(first.iter().zip(own)) {
            if first != own {
                return Err(Error::OtherImages {
                    candidate: candidate.into(),
                    split,
                    got: own.len(),
                    expected: first.len(),
                });
            }
        }
        Ok(())
    }

    /// Something that a reader of the set's numbers should know: said once, here and in the report.
    fn note(&mut self, note: String) -> Result<()> {
        let dataset = &self.dataset.name;
        let Some(set) = self.report.datasets.last_mut().filter(|set| !set.notes.contains(&note)) else {
            return Ok(());
        };
        self.observer.tell(Event::Noted { dataset, note: &note })?;
        set.notes.push(note);
        Ok(())
    }

    /// One probe with every number of shots.
    fn score(&mut self, number: usize, probe: &Probe, features: &SetFeatures) -> Result<()> {
        let Evaluation { suite, folder, candidates, .. } = *self.evaluation;
        let dataset = self.dataset;
        let drawing = Drawing {
            labels: features.train.targets().labels().unwrap_or_default(),
            classes: dataset.classes.len(),
            draws: suite.draws,
            seed: suite.seed,
        };
        let drawn: Vec<(Shots, Vec<Draw>)> =
            suite.shots.iter().map(|&shots| (shots, drawing.draw(shots))).collect();
        if self.cells.is_empty() {
            folder.write_draws(&dataset.name, &dataset.train.images, &features.in_list(&drawn))?;
        }
        let sizes = drawing.sizes();
        let title = probe.column(features.output);
        for (shots, draws) in drawn {
            let candidate = &candidates[number];
            let task = Task { dataset, candidate, probe, features, title: &title, shots, draws: &draws };
            if let Some(cell) = self.cell(&task)? {
                self.add(&cell, &task.heading(&sizes), &features.test_images);
                let (title, images) = (title.clone(), features.test_images.clone());
                self.cells.push(Known { candidate: number, title, shots, images, cell });
            }
            self.write()?;
        }
        Ok(())
    }

    /// Puts a cell into the report, and the candidates before it beside it.
    fn add(&mut self, cell: &Cell, heading: &Heading<'_>, images: &[usize]) {
        let Self { evaluation, report, cells, .. } = self;
        let Some(set) = report.datasets.last_mut() else { return };
        set.results.push(cell.result(heading));
        // An image that one of two candidates could not be asked about leaves nothing to pair.
        let same = |known: &&Known| {
            known.title == heading.title && known.shots == heading.shots && known.images == images
        };
        for known in cells.iter().filter(same) {
            let first = Heading { candidate: &evaluation.candidates[known.candidate].name, ..*heading };
            set.comparisons.push(known.cell.compare(&first, (cell, heading.candidate)));
        }
    }

    /// Fits and scores all draws, or finds them where an earlier evaluation left them. None, and a note in the
    /// report, if that would need more memory than there is.
    fn cell(&mut self, task: &Task<'_>) -> Result<Option<Cell>> {
        let Evaluation { suite, folder, .. } = *self.evaluation;
        let known = |task: &Task<'_>| -> Result<Option<Cell>> {
            Ok(folder.read_cell(&task.key(suite.seed)?).filter(|cell: &Cell| task.fits(cell)))
        };
        if let Some(cell) = known(task)? {
            return Ok(Some(cell));
        }
        if let Some(note) = task.too_large(available_memory()) {
            self.note(note)?;
            return Ok(None);
        }
        // Neighbours are looked for once, for all k-NN probes that have no results yet; those of the others
        // wait where an earlier evaluation would have left them.
        let mut tasks = vec![*task];
        let shares = |probe: &&Probe| *probe != task.probe && probe.shares_pass_with(task.probe);
        for probe in suite.probe.iter().filter(shares) {
            let other = Task { probe, ..*task };
            if known(&other)?.is_none() {
                tasks.push(other);
            }
        }
        let probes: Vec<&Probe> = tasks.iter().map(|task| task.probe).collect();
        let mut cells = vec![Cell { draws: Vec::new() }; tasks.len()];
        for draw in task.draws {
            self.observer.tell(Event::Probing {
                dataset: &task.dataset.name,
                candidate: &task.candidate.name,
                probe: task.title,
                shots: task.shots,
                draw: draw.number,
            })?;
            let answers = task.ask(&probes, draw, suite.seed, self.observer)?;
            cells.iter_mut().zip(answers).for_each(|(cell, answer)| cell.draws.push(answer));
        }
        for (task, cell) in tasks.iter().zip(&cells) {
            folder.write_cell(&task.key(suite.seed)?, cell)?;
        }
        Ok(Some(cells.swap_remove(0)))
    }

    /// Maps and pictures of a candidate, or those that an earlier evaluation left.
    fn draw(&mut self, number: usize, pictures: &Pictures, features: &SetFeatures) -> Result<()> {
        let Evaluation { suite, candidates, .. } = *self.evaluation;
        let (dataset, candidate) = (self.dataset, &candidates[number]);
        self.observer.tell(Event::Drawing { dataset: &dataset.name, candidate: &candidate.name })?;
        let illustration = Illustration::new(pictures, dataset, features, suite.seed);
        let mut drawn = match self.set().and_then(|set| set.pictures.take()) {
            Some(drawn) => drawn,
            None => self.kept(&illustration.set_key()?, || illustration.set())?,
        };
        let mut own: CandidatePictures =
            self.kept(&illustration.candidate_key()?, || illustration.candidate(candidate))?;
        // The same features may have had another name.
        own.candidate.clone_from(&candidate.name);
        drawn.candidates.push(own);
        if let Some(set) = self.set() {
            set.pictures = Some(drawn);
        }
        self.write()
    }

    /// What lies beside the report under this name, or is made and put there.
    fn kept<T: Serialize + DeserializeOwned>(
        &self,
        key: &str,
        make: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let folder = self.evaluation.folder;
        if let Some(found) = folder.read_cell(key) {
            return Ok(found);
        }
        let made = make()?;
        folder.write_cell(key, &made)?;
        Ok(made)
    }

    fn shape(&mut self, number: usize, isotropy: &Isotropy, features: &SetFeatures) -> Result<()> {
        let candidate = &self.evaluation.candidates[number].name;
        self.observer.tell(Event::Shaping { dataset: &self.dataset.name, candidate })?;
        let found = isotropy.measure(&features.train, &features.test)?;
        let candidate = candidate.clone();
        if let Some(set) = self.set() {
            set.isotropy.push(CandidateIsotropy { candidate, found });
        }
        self.write()
    }
}
