//! LayerNorm and a linear layer, trained by AdamW, as LeJEPA probes its features.
//!
//! ```text
//! z      = (x - mean(x)) / sqrt(var(x) + 1e-6 v)      per feature; v is the mean of var(x) over samples
//! scores = (gamma * z + beta) W + b                   gamma, beta, W and b are learnt
//! ```
//!
//! Classes are learnt by cross-entropy, values by squared error around their mean and in units of their
//! standard deviation.

use faer::Mat;
use lejepa_data::{Output, Purpose, generator};
use ndarray::ArrayView1;
use rand::seq::SliceRandom;
use serde::{Deserialize, Serialize};

use crate::adamw::{AdamW, schedule};
use crate::centred::block_rows;
use crate::choice::{Candidates, ScoreKind, a_tenth};
use crate::demand::Size;
use crate::estimator::{Estimator, Fitted};
use crate::features::Samples;
use crate::layer::{Batch, Layer, Loss};
use crate::learnt::{Columns, Learnt};
use crate::params::{Params, ValidParams};
use crate::rows::Rows;
use crate::settings::{all_positive, share, whole};
use crate::softmax::softmax;
use crate::solution::{Solution, Take};
use crate::targets::TargetsView;
use crate::watch::Watch;
use crate::{Choice, Error, Result};

/// The probe's settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Linear {
    /// Learning rates to choose from.
    pub learning_rates: Vec<f64>,
    /// Share of the training features on which the learning rate is chosen; folds of them if that is too few.
    #[serde(default = "crate::choice::a_tenth")]
    pub holdout: f64,
    /// How often every sample is seen.
    pub epochs: usize,
    /// Samples per step.
    pub batch: usize,
    /// Epochs over which the learning rate rises.
    pub warmup: usize,
    /// Pulls all parameters towards 0.
    #[serde(default = "default_weight_decay")]
    pub weight_decay: f64,
}

fn default_weight_decay() -> f64 {
    1e-6
}

/// Settings as linfa has them.
pub type LinearParams = Params<Linear>;
/// The same, checked.
pub type LinearValidParams = ValidParams<Linear>;

/// A fitted probe.
#[derive(Debug, Clone)]
pub struct LinearSolution {
    layer: Layer,
    norm: Norm,
    /// Mean and standard deviation of every output; 0 and 1 for classes.
    units: Vec<(f64, f64)>,
    columns: Columns,
}

/// timm's, for features whose variance is about 1.
const LAYER_NORM_EPSILON: f64 = 1e-6;

impl Linear {
    /// Learning rates to choose from; 50 epochs, the first 5 of which warm up, in batches of 256.
    pub fn params(learning_rates: Vec<f64>) -> LinearParams {
        let (holdout, weight_decay) = (a_tenth(), default_weight_decay());
        Self { learning_rates, holdout, epochs: 50, batch: 256, warmup: 5, weight_decay }.into()
    }

    /// Trains with a given learning rate.
    pub fn train<'a>(
        &self,
        train: impl Into<Samples<'a>>,
        rate: f64,
        seed: u64,
        watch: &mut Watch<'_>,
    ) -> Result<LinearSolution> {
        let train = train.into();
        train.needs_some()?;
        let (learnt, rows, norm) = (Learnt::new(train), train.rows(), Norm::of(train.rows()));
        let units = units(&learnt);
        let mut layer = Layer::new(train.dim(), units.len());
        let loss = match train.targets() {
            TargetsView::Classes { .. } => Loss::CrossEntropy,
            TargetsView::Values(_) => Loss::SquaredError,
        };
        let (samples, size) = (train.len(), self.batch.min(train.len()));
        // The last samples of an epoch that do not fill a batch are left out: the next order has others.
        let per_epoch = samples / size;
        let steps = self.epochs * per_epoch;
        let mut optimiser = AdamW::new(layer.parameters.len(), self.weight_decay);
        let mut gradient = vec![0.; layer.parameters.len()];
        let mut order: Vec<usize> = (0..samples).collect();
        let mut target = vec![0.; units.len()];
        let mut batch = Batch { rows: Mat::zeros(size, train.dim()), targets: Mat::zeros(size, units.len()) };
        for epoch in 0..self.epochs {
            order.shuffle(&mut generator(seed, Purpose::Evaluation, epoch as u64, 2));
            for (index, images) in order.chunks_exact(size).enumerate() {
                let step = epoch * per_epoch + index;
                watch.at(step as f64 / steps as f64)?;
                for (row, &image) in images.iter().enumerate() {
                    norm.write(rows.row(image), row, &mut batch.rows);
                    target.fill(0.);
                    learnt.add(image, 1., &mut target);
                    for (output, (target, (mean, unit))) in target.iter().zip(&units).enumerate() {
                        batch.targets[(row, output)] = (target - mean) / unit;
                    }
                }
                if !layer.evaluate(&batch, loss, &mut gradient).is_finite() {
                    return Err(Error::Diverged { rate });
                }
                let share = schedule(step, self.warmup * per_epoch, steps);
                optimiser.step(&mut layer.parameters, &gradient, rate * share);
            }
        }
        Ok(LinearSolution { layer, norm, units, columns: learnt.columns })
    }
}

impl LinearParams {
    /// Share of the training features on which the learning rate is chosen.
    pub fn holdout(self, holdout: f64) -> Self {
        self.with(|linear| linear.holdout = holdout)
    }

    /// How often every sample is seen.
    pub fn epochs(self, epochs: usize) -> Self {
        self.with(|linear| linear.epochs = epochs)
    }

    /// Samples per step.
    pub fn batch(self, batch: usize) -> Self {
        self.with(|linear| linear.batch = batch)
    }

    /// Epochs over which the learning rate rises.
    pub fn warmup(self, warmup: usize) -> Self {
        self.with(|linear| linear.warmup = warmup)
    }

    /// Pulls all parameters towards 0.
    pub fn weight_decay(self, weight_decay: f64) -> Self {
        self.with(|linear| linear.weight_decay = weight_decay)
    }
}

impl Estimator for Linear {
    type Solution<'a> = LinearSolution;

    const NAME: &'static str = "linear";
    const SETTING: &'static str = "lr";
    const OUTPUT: Output = Output::ClsLast2;

    fn check(&self) -> Result<()> {
        all_positive("learning_rates", &self.learning_rates)?;
        whole("epochs", self.epochs)?;
        whole("batch", self.batch)?;
        share(self.holdout)
    }

    fn given(&self) -> &[f64] {
        &self.learning_rates
    }

    /// `linear:ln:adamw:wd0.000001:100ep:w10:b256:holdout0.1:cls`
    fn protocol(&self, features: &str, choice: Option<&Choice>) -> String {
        let Self { weight_decay, epochs, batch, warmup, holdout, .. } = self;
        let tag = Choice::tag(choice, *holdout);
        format!("linear:ln:adamw:wd{weight_decay}:{epochs}ep:w{warmup}:b{batch}:{tag}:{features}")
    }

    fn memory(&self, size: Size) -> u64 {
        let [_, dim, outputs, _] = size.of();
        let parameters = (dim + 1).saturating_mul(outputs).saturating_mul(6);
        let batch = (self.batch as u64).saturating_mul(3 * dim + 2 * outputs);
        Size::bytes(parameters.saturating_add(batch).saturating_add(size.asked()), size_of::<f64>())
    }

    fn learn<'a>(
        &self,
        train: Samples<'a>,
        seed: u64,
        watch: &mut Watch<'_>,
    ) -> Result<Fitted<LinearSolution>> {
        let values = &self.learning_rates;
        let candidates = Candidates {
            setting: "learning_rates",
            values,
            holdout: self.holdout,
            seed,
            scores: ScoreKind::Probabilities,
        };
        let choosing = if values.len() > 1 { 0.8 } else { 0. };
        let choice = candidates.choose(train, &mut watch.part(0., choosing), |trial, judge, watch| {
            for (index, &rate) in trial.values.iter().enumerate() {
                let mut watch = watch.step(index, trial.values.len());
                let solution = match self.train(trial.fitted, rate, seed, &mut watch) {
                    // A rate that diverges is no candidate; that of the final fit is an error.
                    Err(Error::Diverged { .. }) => {
                        judge.refuse(index);
                        continue;
                    }
                    solution => solution?,
                };
                let (mut sample, mut shares) = (0, Vec::new());
                solution.visit(trial.held_out.rows(), &mut watch.part(1., 1.), &mut |scores| {
                    shares.clear();
                    shares.extend_from_slice(scores);
                    if let Columns::Classes { .. } = solution.columns {
                        softmax(&mut shares);
                    }
                    judge.hear((index, sample), &solution.columns, &shares);
                    sample += 1;
                })?;
            }
            Ok(())
        })?;
        let solution = self.train(train, choice.value, seed, &mut watch.part(choosing, 1.))?;
        Ok(Fitted { solution, choice: Some(choice) })
    }
}

/// The predicted values, or the score of every class before the softmax.
impl Solution for LinearSolution {
    const ABSENT: f64 = f64::NEG_INFINITY;

    fn columns(&self) -> &Columns {
        &self.columns
    }

    fn visit(&self, queries: Rows<'_>, watch: &mut Watch<'_>, take: &mut Take<'_>) -> Result<usize> {
        let queries = queries.of_length(self.layer.dim)?;
        let mut scores = vec![0.; self.units.len()];
        for (first, block) in queries.blocks(block_rows(queries.dim())) {
            watch.at(first as f64 / queries.len() as f64)?;
            let mut rows = Mat::zeros(block.len(), queries.dim());
            (0..block.len()).for_each(|row| self.norm.write(block.row(row), row, &mut rows));
            let (_, found) = self.layer.forward(&rows);
            for row in 0..block.len() {
                for (output, (score, (mean, unit))) in scores.iter_mut().zip(&self.units).enumerate() {
                    *score = mean + unit * found[(row, output)];
                }
                take(&scores);
            }
        }
        Ok(0)
    }
}

/// Gives rows a mean of 0 and a variance of 1.
#[derive(Debug, Clone, Copy)]
struct Norm {
    /// Added to the variance of a row: a share of the usual one, so that the unit of features does not matter.
    epsilon: f64,
}

impl Norm {
    fn of(rows: Rows<'_>) -> Self {
        let total: f64 = (0..rows.len()).map(|row| moments(rows.row(row)).1).sum();
        match total / rows.len().max(1) as f64 {
            mean if mean > 0. => Self { epsilon: LAYER_NORM_EPSILON * mean },
            _ => Self { epsilon: LAYER_NORM_EPSILON },
        }
    }

    /// Writes one row of a matrix.
    fn write(self, row: ArrayView1<'_, f32>, index: usize, to: &mut Mat<f64>) {
        let (mean, variance) = moments(row);
        let scale = 1. / (variance + self.epsilon).sqrt();
        row.iter()
            .enumerate()
            .for_each(|(column, &value)| to[(index, column)] = (f64::from(value) - mean) * scale);
    }
}

/// Mean and variance.
fn moments(row: ArrayView1<'_, f32>) -> (f64, f64) {
    let dim = row.len() as f64;
    let mean = row.iter().map(|value| f64::from(*value)).sum::<f64>() / dim;
    (mean, row.iter().map(|value| (f64::from(*value) - mean).powi(2)).sum::<f64>() / dim)
}

/// Mean and standard deviation of every output of values; 1 for a constant.
fn units(learnt: &Learnt<'_>) -> Vec<(f64, f64)> {
    let TargetsView::Values(values) = learnt.samples.targets() else {
        return vec![(0., 1.); learnt.columns.len()];
    };
    let samples = learnt.samples.len();
    let of = |(output, mean): (usize, f64)| {
        let deviation = |sample| (values.row(learnt.samples.image(sample))[output] - mean).powi(2);
        let unit = ((0..samples).map(deviation).sum::<f64>() / samples as f64).sqrt();
        (mean, if unit > 0. { unit } else { 1. })
    };
    learnt.mean().into_iter().enumerate().map(of).collect()
}

#[cfg(test)]
mod tests {
    use ndarray::Array2;

    use super::*;
    use crate::{Features, Targets, accuracy, predicted, r_squared, unwatched};

    const SETTINGS: Linear = Linear {
        learning_rates: Vec::new(),
        holdout: 0.2,
        epochs: 30,
        batch: 16,
        warmup: 2,
        weight_decay: 1e-6,
    };

    fn values() -> Array2<f32> {
        Array2::from_shape_fn((200, 6), |(row, column)| ((row * (7 * column + 3) + column) % 31) as f32 - 15.)
    }

    #[test]
    fn classes_are_learnt_with_a_rate_that_was_chosen() {
        let values = values();
        let label = |row: ArrayView1<'_, f32>| usize::from(row[0] > row[1]);
        let labels: Vec<usize> = values.outer_iter().map(label).collect();
        let train = Features::labelled(values.clone(), labels.clone(), 3).unwrap();
        let linear = Linear { learning_rates: vec![1e-9, 1e-2], ..SETTINGS };
        let fit = || unwatched(|watch| linear.fit(&train, 0, watch)).unwrap();
        let Fitted { solution, choice } = fit();
        assert_eq!(choice.unwrap().value, 1e-2);
        let scores = solution.scores(&values).unwrap();
        assert!(accuracy(&predicted(&scores), &labels) > 0.95);
        assert_eq!(fit().solution.scores(&values).unwrap(), scores, "the same seed");
    }

    #[test]
    fn values_are_learnt_in_their_own_units() {
        let values = values();
        let mut scaled = Mat::zeros(200, 6);
        let norm = Norm::of((&values).into());
        values.outer_iter().enumerate().for_each(|(index, row)| norm.write(row, index, &mut scaled));
        let targets = Array2::from_shape_fn((200, 2), |(row, output)| 1e3 + 50. * scaled[(row, output)]);
        let train = Features::new(values.clone(), Targets::Values(targets.clone())).unwrap();
        let linear = Linear { learning_rates: vec![3e-2], ..SETTINGS };
        let Fitted { solution, .. } = unwatched(|watch| linear.fit(&train, 0, watch)).unwrap();
        let explained = r_squared(&solution.scores(&values).unwrap(), &targets);
        assert!(explained.iter().all(|share| *share > 0.99), "{explained:?}");
    }
}
