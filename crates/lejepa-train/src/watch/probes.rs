//! Probes on frozen features: which images they learn from and which they are asked about.

use std::collections::BTreeSet;

use lejepa_probe::{Estimator, Features, Knn, Ridge, Solution, accuracy, predicted, unwatched};
use ndarray::{Array2, Axis};

use crate::Result;

const KNN: Knn = Knn { k: 20, temperature: 0.07 };
/// The share of the bank on which the penalty is chosen.
const CHOSEN_ON: f64 = 0.1;
/// A share of fewer images says nothing.
const LEAST_IMAGES: usize = 10;

/// Draws the images on which the penalty is chosen; the same in every run.
const SEED: u64 = 0;

/// Labelled images, split into those that probes learn from and those that they are asked about; as many times
/// as there are images that were not asked about yet, which makes the accuracy less noisy.
#[derive(Debug)]
pub(super) struct Probes {
    splits: Vec<ProbeSplit>,
    classes: usize,
}

#[derive(Debug)]
struct ProbeSplit {
    /// Rows of the features that probes learn from.
    bank: Labelled,
    queries: Labelled,
}

#[derive(Debug)]
struct Labelled {
    rows: Vec<usize>,
    labels: Vec<usize>,
}

/// Accuracies on held-out images.
pub(super) struct ProbeScores {
    pub(super) knn: f64,
    pub(super) linear: f64,
}

impl Probes {
    /// Splits images in random order; nothing if there is too little to learn from or to ask about.
    pub(super) fn new(labels: impl Iterator<Item = Option<usize>>, holdout: f64) -> Option<Self> {
        let labelled: Vec<(usize, usize)> =
            labels.enumerate().filter_map(|(row, label)| Some((row, label?))).collect();
        let asked = (labelled.len() as f64 * holdout).round() as usize;
        if asked < LEAST_IMAGES {
            return None;
        }
        let splits: Vec<ProbeSplit> = labelled
            .chunks_exact(asked)
            .enumerate()
            .filter_map(|(number, queries)| {
                let (before, after) = (&labelled[..number * asked], &labelled[(number + 1) * asked..]);
                let bank = [before, after].concat();
                let known: BTreeSet<usize> = bank.iter().map(|&(_row, label)| label).collect();
                let is_enough = known.len() >= 2 && bank.len() >= LEAST_IMAGES;
                is_enough.then(|| ProbeSplit { bank: Labelled::new(&bank), queries: Labelled::new(queries) })
            })
            .collect();
        let classes = labelled.iter().map(|&(_row, label)| label + 1).max()?;
        (!splits.is_empty()).then_some(Self { splits, classes })
    }

    /// Fits both probes to every split and asks them; the mean over all that were asked about.
    ///
    /// # Shapes
    /// - `features`: `(images, dim)`
    pub(super) fn score(&self, features: &Array2<f32>) -> Result<ProbeScores> {
        let (mut knn, mut linear) = (0., 0.);
        for split in &self.splits {
            let scores = split.score(features, self.classes)?;
            knn += scores.knn;
            linear += scores.linear;
        }
        // All splits ask about the same number of images.
        let splits = self.splits.len() as f64;
        Ok(ProbeScores { knn: knn / splits, linear: linear / splits })
    }
}

impl ProbeSplit {
    fn score(&self, features: &Array2<f32>, classes: usize) -> Result<ProbeScores> {
        let bank = features.select(Axis(0), &self.bank.rows);
        let bank = Features::labelled(bank, self.bank.labels.clone(), classes)?;
        let queries = features.select(Axis(0), &self.queries.rows);
        let ridge = Ridge { lambdas: None, holdout: CHOSEN_ON };
        let ridge = unwatched(|watch| ridge.fit(&bank, SEED, watch))?.solution;
        let correct = |scores| accuracy(&predicted(&scores), &self.queries.labels);
        Ok(ProbeScores {
            knn: correct(KNN.scores(&bank, &queries)?),
            linear: correct(ridge.scores(&queries)?),
        })
    }
}

impl Labelled {
    fn new(rows_and_labels: &[(usize, usize)]) -> Self {
        let (rows, labels) = rows_and_labels.iter().copied().unzip();
        Self { rows, labels }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Classes of two well separated clouds, some images without a label.
    #[test]
    fn only_labelled_images_are_learnt_from_and_asked_about() {
        let label = |row: usize| (row % 5 != 4).then_some(row % 2);
        let probes = Probes::new((0..100).map(label), 0.25).unwrap();
        let sizes = |split: &ProbeSplit| (split.queries.rows.len(), split.bank.rows.len());
        assert_eq!(probes.splits.iter().map(sizes).collect::<Vec<_>>(), [(20, 60); 4]);
        let mut asked: Vec<usize> =
            probes.splits.iter().flat_map(|split| split.queries.rows.clone()).collect();
        asked.sort_unstable();
        assert_eq!(asked, (0..100).filter(|row| row % 5 != 4).collect::<Vec<_>>(), "each once");
        let features = Array2::from_shape_fn((100, 3), |(row, column)| {
            let centre = if row % 2 == column { 4. } else { 0. };
            centre + ((row * 7 + column * 3) % 10) as f32 / 10.
        });
        let scores = probes.score(&features).unwrap();
        assert_eq!((scores.knn, scores.linear), (1., 1.));
    }

    #[test]
    fn a_large_share_is_asked_about_once() {
        let probes = Probes::new((0..100).map(|row| Some(row % 2)), 0.6).unwrap();
        assert_eq!(probes.splits.len(), 1);
        assert_eq!(probes.splits[0].queries.rows, (0..60).collect::<Vec<_>>());
    }

    #[test]
    fn too_little_to_learn_from_gives_no_probes() {
        let probes = |labels: &[Option<usize>]| Probes::new(labels.iter().copied(), 0.25);
        assert!(probes(&[]).is_none());
        assert!(probes(&[None; 100]).is_none());
        assert!(probes(&[Some(3); 100]).is_none(), "one class");
        assert!(probes(&[[Some(0); 10], [Some(1); 10]].concat()).is_none(), "five queries");
    }
}
