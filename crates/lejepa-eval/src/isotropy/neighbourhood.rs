//! Probes that average the targets of neighbours: plain k-NN, radius k-NN and kernel (paper, equations kNN
//! and NW), at many settings from the same distances.
//!
//! ```text
//! score(q) = sum_i w_i y_i / sum_i w_i
//! k-NN     w_i = 1 for the k nearest, and all as near as the last of them
//! radius   w_i = 1 if |q - x_i| <= r; the nearest alone if there is none
//! kernel   w_i = exp(-|q - x_i|^2 / 2 h^2)
//! ```
//!
//! `lejepa_probe::Radius` and `Kernel` give the same scores for one setting at a time.

use lejepa_probe::Scores;
use ndarray::{Array2, ArrayView2, ArrayViewMut1, Axis};
use serde::{Deserialize, Serialize};

use super::ProbeKind;

/// Queries whose distances are held at a time.
const BLOCK: usize = 256;
/// Weights below `exp(-40)` change no score.
const NEGLIGIBLE: f64 = 40.;

/// Settings to measure; an empty list leaves a probe out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Neighbourhoods {
    /// `k` of plain k-NN: Euclidean distances, equal votes.
    pub neighbours: Vec<usize>,
    /// Radii as multiples of the root of the mean squared distance between two samples.
    pub radii: Vec<f64>,
    /// Bandwidths as multiples of the same.
    pub bandwidths: Vec<f64>,
}

/// What one setting says.
pub(crate) struct NeighbourScores {
    pub(crate) probe: ProbeKind,
    /// As in [`Neighbourhoods`].
    pub(crate) setting: f64,
    /// `(queries, outputs)`
    pub(crate) scores: Scores,
    /// Queries without a sample within the radius.
    pub(crate) alone: usize,
}

/// What neighbours are looked for in.
#[derive(Clone, Copy)]
pub(crate) struct Bank<'a> {
    /// `(samples, dim)`
    pub(crate) features: ArrayView2<'a, f64>,
    /// `(samples, outputs)`
    pub(crate) targets: ArrayView2<'a, f64>,
    /// The root of the mean squared distance between two samples.
    pub(crate) unit: f64,
}

enum Weighting {
    Nearest(usize),
    /// A squared radius.
    Within(f64),
    /// A squared bandwidth.
    Gaussian(f64),
}

impl Neighbourhoods {
    /// Scores at every setting, in the order k-NN, radius, kernel.
    ///
    /// # Shapes
    /// - `queries`: `(queries, dim)`
    pub(crate) fn scores(&self, bank: Bank<'_>, queries: ArrayView2<'_, f64>) -> Vec<NeighbourScores> {
        let shape = (queries.nrows(), bank.targets.ncols());
        let mut all: Vec<(Weighting, NeighbourScores)> = self
            .weightings(bank.unit)
            .map(|(probe, setting, weighting)| {
                (weighting, NeighbourScores { probe, setting, scores: Array2::zeros(shape), alone: 0 })
            })
            .collect();
        let squares = squared_lengths(bank.features);
        for (block, queries) in queries.axis_chunks_iter(Axis(0), BLOCK).enumerate() {
            let mut distances = queries.dot(&bank.features.t()); // (block, samples)
            for (mut row, square) in distances.outer_iter_mut().zip(squared_lengths(queries)) {
                row.iter_mut().zip(&squares).for_each(|(entry, other)| {
                    *entry = (square + other - 2. * *entry).max(0.);
                });
            }
            let mut weights = distances.clone();
            for (weighting, result) in &mut all {
                weights.assign(&distances);
                result.alone += weights.outer_iter_mut().map(|row| weighting.weigh(row)).sum::<usize>();
                let totals = weights.sum_axis(Axis(1));
                let sums = weights.dot(&bank.targets); // (block, outputs)
                let rows = result.scores.outer_iter_mut().skip(block * BLOCK).zip(sums.outer_iter());
                for ((mut scores, sums), total) in rows.zip(totals) {
                    scores.assign(&(&sums / total));
                }
            }
        }
        all.into_iter().map(|(_, result)| result).collect()
    }

    fn weightings(&self, unit: f64) -> impl Iterator<Item = (ProbeKind, f64, Weighting)> {
        let nearest = self.neighbours.iter().map(|&k| (ProbeKind::Knn, k as f64, Weighting::Nearest(k)));
        let within = self
            .radii
            .iter()
            .map(move |&radius| (ProbeKind::Radius, radius, Weighting::Within((radius * unit).powi(2))));
        let gaussian = self.bandwidths.iter().map(move |&bandwidth| {
            (ProbeKind::Kernel, bandwidth, Weighting::Gaussian((bandwidth * unit).powi(2)))
        });
        nearest.chain(within).chain(gaussian)
    }
}

impl Weighting {
    /// Squared distances become weights. Returns 1 if nothing lies within the radius, else 0.
    fn weigh(&self, mut row: ArrayViewMut1<'_, f64>) -> usize {
        let nearest = row.iter().copied().fold(f64::INFINITY, f64::min);
        match *self {
            Self::Nearest(k) => {
                let mut ordered = row.to_vec();
                let last = k.clamp(1, row.len().max(1)) - 1;
                let limit = match ordered.is_empty() {
                    true => 0.,
                    false => *ordered.select_nth_unstable_by(last, f64::total_cmp).1,
                };
                row.iter_mut().for_each(|entry| *entry = indicator(*entry <= limit));
                0
            }
            Self::Within(square) => {
                let limit = square.max(nearest);
                row.iter_mut().for_each(|entry| *entry = indicator(*entry <= limit));
                usize::from(nearest > square)
            }
            Self::Gaussian(square) => {
                // Relative to the nearest, whose weight is 1: no query is too far from all samples.
                for entry in row {
                    let exponent = (*entry - nearest) / (2. * square);
                    *entry = if exponent < NEGLIGIBLE { (-exponent).exp() } else { 0. };
                }
                0
            }
        }
    }
}

fn indicator(inside: bool) -> f64 {
    f64::from(u8::from(inside))
}

fn squared_lengths(rows: ArrayView2<'_, f64>) -> Vec<f64> {
    rows.outer_iter().map(|row| row.dot(&row)).collect()
}

#[cfg(test)]
mod tests {
    use lejepa_probe::{Features, KernelSolution, RadiusSolution, Solution, Targets};

    use super::*;
    use crate::isotropy::random::{Stream, normal, stream};

    /// Features of the library's probes are f32.
    const SINGLE_PRECISION: f64 = 1e-5;

    fn close(left: &Scores, right: &Scores) {
        for (left, right) in left.iter().zip(right) {
            assert!((left - right).abs() < SINGLE_PRECISION, "{left} {right}");
        }
    }

    #[test]
    fn scores_are_those_of_the_probes() {
        [1, 3].into_iter().for_each(compare);
    }

    fn compare(dim: usize) {
        let mut generator = stream(1, Stream::Queries, 0);
        let [features, queries] = [90, 300].map(|rows| normal((rows, dim), &mut generator));
        let (features, queries) = (features.mapv(|v| v as f32), queries.mapv(|v| v as f32));
        let targets = normal((90, 2), &mut generator);
        let settings =
            Neighbourhoods { neighbours: vec![1, 500], radii: vec![0.1, 0.4], bandwidths: vec![0.05, 0.3] };
        let bank = features.mapv(f64::from);
        let bank = Bank { features: bank.view(), targets: targets.view(), unit: 2. };
        let found = settings.scores(bank, queries.mapv(f64::from).view());

        let train = Features::new(features.clone(), Targets::Values(targets.clone())).unwrap();
        for (found, radius) in found[2..4].iter().zip([0.2, 0.8]) {
            let expected = RadiusSolution::new(&train, radius).scores_and_alone(&queries).unwrap();
            close(&found.scores, &expected.scores);
            assert_eq!(found.alone, expected.alone);
        }
        for (found, bandwidth) in found[4..].iter().zip([0.1, 0.6]) {
            close(&found.scores, &KernelSolution::new(&train, bandwidth).scores(&queries).unwrap());
        }
        let tiny = RadiusSolution::new(&train, 1e-9).scores(&queries).unwrap();
        close(&found[0].scores, &tiny);
        let mean = targets.mean_axis(Axis(0)).unwrap();
        assert!((found[1].scores[(7, 1)] - mean[1]).abs() < SINGLE_PRECISION);
    }
}
