//! Chooses one of several values of a setting on held-out training features.

use serde::{Deserialize, Serialize};

use crate::features::Samples;
use crate::learnt::Columns;
use crate::settings::{all_positive, share};
use crate::split::{Split, Splits};
use crate::targets::TargetsView;
use crate::watch::Watch;
use crate::{Error, Result};

/// A chosen value.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Choice {
    /// On a held-out share of the training features the value with the highest accuracy, and of equals that
    /// with the lowest squared error of the scores; on folds of few of them the latter alone where scores are
    /// probabilities, which say more of an image than right or wrong. Values to be predicted are chosen by
    /// squared error always.
    pub value: f64,
    /// Samples on which it was chosen; none if there was nothing to choose or nothing to hold out.
    pub held_out: usize,
    /// How it was chosen.
    pub by: Chosen,
}

/// How a value was chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Chosen {
    /// It was the only one.
    Given,
    /// It is the middle one: nothing could be held out, as with one sample per class.
    Middle,
    /// On a share of the samples.
    Holdout,
    /// On all samples, held out in so many parts one after the other.
    Folds(usize),
}

/// What is held out unless a suite says something else.
pub(crate) fn a_tenth() -> f64 {
    0.1
}

/// What is chosen, and on how much.
pub(crate) struct Candidates<'a> {
    pub(crate) setting: &'static str,
    pub(crate) values: &'a [f64],
    pub(crate) holdout: f64,
    pub(crate) seed: u64,
    pub(crate) scores: ScoreKind,
}

/// What a probe says of a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ScoreKind {
    /// How probable it is.
    Probabilities,
    /// Numbers whose order alone matters: a penalty that shrinks them all would look good.
    Ranks,
}

/// Samples to fit and others to ask about, with all values in rising order.
pub(crate) struct Trial<'a> {
    pub(crate) fitted: Samples<'a>,
    pub(crate) held_out: Samples<'a>,
    pub(crate) values: &'a [f64],
}

/// What is known of the values so far.
pub(crate) struct Judge<'a> {
    held_out: Samples<'a>,
    merits: &'a mut [Merit],
}

/// How good a value is.
#[derive(Debug, Clone, Copy, Default)]
struct Merit {
    correct: usize,
    squared_error: f64,
    /// In some fold nothing could be fitted.
    refused: bool,
}

impl Merit {
    fn is_above(self, other: Self, by: Chosen, scores: ScoreKind) -> bool {
        let closer = self.squared_error < other.squared_error;
        !self.refused
            && match (by, scores) {
                (Chosen::Folds(_), ScoreKind::Probabilities) => closer,
                _ => self.correct > other.correct || (self.correct == other.correct && closer),
            }
    }
}

impl Judge<'_> {
    /// What a value, by its number, says of a held-out sample: of classes shares that add up to about 1.
    pub(crate) fn hear(&mut self, (value, sample): (usize, usize), columns: &Columns, scores: &[f64]) {
        let (image, merit) = (self.held_out.image(sample), &mut self.merits[value]);
        match (self.held_out.targets(), columns) {
            (TargetsView::Classes { labels, .. }, Columns::Classes { known, .. }) => {
                let own = known.binary_search(&labels[image]).ok();
                let (mut best, mut largest) = (None, f64::NEG_INFINITY);
                for (column, &score) in scores.iter().enumerate() {
                    if score > largest {
                        (best, largest) = (Some(column), score);
                    }
                    let target = f64::from(u8::from(own == Some(column)));
                    merit.squared_error += (score - target).powi(2);
                }
                merit.correct += usize::from(own.is_some() && best == own);
            }
            (TargetsView::Values(values), _) => {
                let errors =
                    scores.iter().zip(values.row(image)).map(|(score, value)| (score - value).powi(2));
                merit.squared_error += errors.sum::<f64>();
            }
            (TargetsView::Classes { .. }, Columns::Values(_)) => {}
        }
    }

    /// A value with which nothing can be fitted.
    pub(crate) fn refuse(&mut self, value: usize) {
        self.merits[value].refused = true;
    }
}

impl Candidates<'_> {
    /// `attempt` fits and asks, for values in rising order. Fits of all folds count together.
    pub(crate) fn choose(
        &self,
        train: Samples<'_>,
        watch: &mut Watch<'_>,
        mut attempt: impl FnMut(&Trial<'_>, &mut Judge<'_>, &mut Watch<'_>) -> Result<()>,
    ) -> Result<Choice> {
        let Self { setting, values, holdout, seed, scores } = *self;
        share(holdout)?;
        all_positive(setting, values)?;
        train.needs_some()?;
        let mut values = values.to_vec();
        values.sort_unstable_by(f64::total_cmp);
        let value = *values.get(values.len() / 2).ok_or(Error::NothingToChoose { setting })?;
        if values.len() == 1 {
            return Ok(Choice { value, held_out: 0, by: Chosen::Given });
        }
        let Splits { folds, by } = Splits::of(train, holdout, seed);
        let mut merits = vec![Merit::default(); values.len()];
        for (fold, Split { fitted, held_out }) in folds.iter().enumerate() {
            let (fitted, held_out) = (train.others(fitted), train.others(held_out));
            let trial = Trial { fitted, held_out, values: &values };
            attempt(
                &trial,
                &mut Judge { held_out, merits: &mut merits },
                &mut watch.step(fold, folds.len()),
            )?;
        }
        let held_out = folds.iter().map(|fold| fold.held_out.len()).sum();
        let mut best = Choice { value, held_out, by };
        if held_out > 0 {
            let mut most = Merit { squared_error: f64::INFINITY, ..Merit::default() };
            for (&value, &merit) in values.iter().zip(&merits) {
                if merit.is_above(most, by, scores) {
                    (best.value, most) = (value, merit);
                }
            }
        }
        Ok(best)
    }
}

impl Choice {
    /// How it was chosen, in a protocol string: `holdout0.1`, `folds5`, `middle` or `given`.
    pub(crate) fn tag(choice: Option<&Self>, holdout: f64) -> String {
        match choice.map(|choice| choice.by) {
            None | Some(Chosen::Holdout) => format!("holdout{holdout}"),
            Some(Chosen::Folds(count)) => format!("folds{count}"),
            Some(Chosen::Middle) => "middle".into(),
            Some(Chosen::Given) => "given".into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merit(correct: usize, squared_error: f64) -> Merit {
        Merit { correct, squared_error, refused: false }
    }

    /// A penalty that shrinks all scores of a regression has the smaller error and the worse order.
    #[test]
    fn ranks_are_chosen_by_accuracy_and_probabilities_of_few_by_their_error() {
        let (right, close) = (merit(9, 5.), merit(8, 1.));
        let folds = Chosen::Folds(5);
        assert!(right.is_above(close, folds, ScoreKind::Ranks));
        assert!(close.is_above(right, folds, ScoreKind::Probabilities));
        assert!(right.is_above(close, Chosen::Holdout, ScoreKind::Probabilities));
        assert!(merit(9, 4.).is_above(right, folds, ScoreKind::Ranks));
        assert!(!Merit { refused: true, ..right }.is_above(close, folds, ScoreKind::Ranks));
    }
}
