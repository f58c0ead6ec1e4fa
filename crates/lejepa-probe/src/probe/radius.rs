//! Radius k-NN (paper, equation kNN): the mean of the targets within a radius.
//!
//! ```text
//! score(q) = mean { y_i : |q - x_i| <= r }
//! ```
//!
//! A query without neighbours takes the target of its nearest sample, and is counted.

use serde::{Deserialize, Serialize};

use crate::choice::{Candidates, ScoreKind, a_tenth};
use crate::demand::{Size, distances_memory};
use crate::distance::{Distances, scale};
use crate::estimator::{Estimator, Fitted};
use crate::features::Samples;
use crate::learnt::{Columns, Learnt};
use crate::nearest::{Found, LANES, Nearest, any_from};
use crate::params::{Params, ValidParams};
use crate::real::Real;
use crate::rows::Rows;
use crate::settings::{all_positive, positive, share};
use crate::solution::{Solution, Take, dense};
use crate::tiles::Visitor;
use crate::watch::{Watch, unwatched};
use crate::{Choice, Result, Scores};

/// The probe's settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Radius {
    /// Radii to choose from, as multiples of the root of the mean squared distance between two samples.
    pub radii: Vec<f64>,
    /// Share of the training features on which the radius is chosen; folds of them if that is too few.
    #[serde(default = "crate::choice::a_tenth")]
    pub holdout: f64,
}

/// Settings as linfa has them.
pub type RadiusParams = Params<Radius>;
/// The same, checked.
pub type RadiusValidParams = ValidParams<Radius>;

/// A fitted probe: all training features and a radius.
#[derive(Debug, Clone)]
pub struct RadiusSolution<'a> {
    learnt: Learnt<'a>,
    radius: f64,
}

/// What the probe says.
#[derive(Debug, Clone, PartialEq)]
pub struct RadiusScores {
    /// `(queries, outputs)`
    pub scores: Scores,
    /// Queries without neighbours, which took their nearest sample's target.
    pub alone: usize,
}

/// Samples among which the nearest is looked for once more without rounding.
const CONTENDERS: usize = 8;
/// Rounding of half a squared distance, relative to that of the radius, up to which f32 serves: about that
/// share of the pairs is computed once more.
const SINGLE_LIMIT: f64 = 1e-3;

impl Radius {
    /// Radii to choose from.
    pub fn params(radii: Vec<f64>) -> RadiusParams {
        Self { radii, holdout: a_tenth() }.into()
    }
}

impl RadiusParams {
    /// Share of the training features on which the radius is chosen.
    pub fn holdout(self, holdout: f64) -> Self {
        self.with(|radius| radius.holdout = holdout)
    }
}

impl Estimator for Radius {
    type Solution<'a> = RadiusSolution<'a>;

    const NAME: &'static str = "radius k-NN";
    const SETTING: &'static str = "r";

    fn check(&self) -> Result<()> {
        all_positive("radii", &self.radii)?;
        share(self.holdout)
    }

    fn given(&self) -> &[f64] {
        &self.radii
    }

    /// `radius:holdout0.1:cls`
    fn protocol(&self, features: &str, choice: Option<&Choice>) -> String {
        format!("radius:{}:{features}", Choice::tag(choice, self.holdout))
    }

    fn memory(&self, size: Size) -> u64 {
        distances_memory(size, 1)
    }

    /// The choice is a multiple.
    fn learn<'a>(
        &self,
        train: Samples<'a>,
        seed: u64,
        watch: &mut Watch<'_>,
    ) -> Result<Fitted<RadiusSolution<'a>>> {
        let candidates = Candidates {
            setting: "radii",
            values: &self.radii,
            holdout: self.holdout,
            seed,
            scores: ScoreKind::Ranks,
        };
        let choice = candidates.choose(train, watch, |trial, judge, watch| {
            let unit = scale(trial.fitted.rows());
            let mut solution = RadiusSolution::new(trial.fitted, unit);
            for (index, multiple) in trial.values.iter().enumerate() {
                solution.radius = multiple * unit;
                let watch = &mut watch.step(index, trial.values.len());
                let mut sample = 0;
                solution.visit(trial.held_out.rows(), watch, &mut |scores| {
                    judge.hear((index, sample), solution.columns(), scores);
                    sample += 1;
                })?;
            }
            Ok(())
        })?;
        let solution = RadiusSolution::new(train, choice.value * scale(train.rows()));
        Ok(Fitted { solution, choice: Some(choice) })
    }
}

impl<'a> RadiusSolution<'a> {
    /// Remembers samples; `radius` is a distance between features.
    pub fn new(train: impl Into<Samples<'a>>, radius: f64) -> Self {
        Self { learnt: Learnt::new(train.into()), radius }
    }

    /// The scores, and how many queries were alone.
    ///
    /// # Shapes
    /// - `queries`: `(queries, dim)`
    pub fn scores_and_alone<'q>(&self, queries: impl Into<Rows<'q>>) -> Result<RadiusScores> {
        let queries = queries.into();
        let mut alone = 0;
        let scores = dense((self.columns(), Self::ABSENT), queries.len(), |take| {
            alone = unwatched(|watch| self.visit(queries, watch, take))?;
            Ok(())
        })?;
        Ok(RadiusScores { scores, alone })
    }
}

/// The mean of the targets within the radius.
impl Solution for RadiusSolution<'_> {
    fn columns(&self) -> &Columns {
        &self.learnt.columns
    }

    fn visit(&self, queries: Rows<'_>, watch: &mut Watch<'_>, take: &mut Take<'_>) -> Result<usize> {
        let Self { ref learnt, radius } = *self;
        let train = learnt.samples;
        train.needs_some()?;
        let queries = queries.of_length(train.dim())?;
        positive("radius", radius)?;
        let distances = Distances::new(train.rows(), queries);
        match distances.fit_single(SINGLE_LIMIT * radius * radius / 2.) {
            true => self.within::<f32>(&distances, watch, take),
            false => self.within::<f64>(&distances, watch, take),
        }
    }
}

impl RadiusSolution<'_> {
    /// Returns how many queries were alone.
    fn within<T: Real>(
        &self,
        distances: &Distances<'_>,
        watch: &mut Watch<'_>,
        take: &mut Take<'_>,
    ) -> Result<usize> {
        let learnt = &self.learnt;
        let ball = Ball { distances, learnt, rounding: distances.rounding::<T>(), radius: self.radius };
        let bytes = size_of::<f64>() * (learnt.columns.len() + 2 * CONTENDERS + LANES);
        let mut alone = 0;
        distances.visit((&ball, bytes), watch, |query, content: Content<T>| {
            let Content { mut sums, mut count, mut nearest, .. } = content;
            if count == 0 {
                alone += 1;
                let distance = |row: usize| distances.exact(query, row);
                let rows = nearest.rows().into_iter().map(|(row, _)| (distance(row as usize), row as usize));
                if let Some((_, row)) = rows.min_by(|left, right| left.0.total_cmp(&right.0)) {
                    learnt.add(row, 1., &mut sums);
                    count = 1;
                }
            }
            sums.iter_mut().for_each(|sum| *sum /= count as f64);
            take(&sums);
        })?;
        Ok(alone)
    }
}

/// Gathers the targets within the radius.
struct Ball<'a> {
    distances: &'a Distances<'a>,
    learnt: &'a Learnt<'a>,
    /// By how much half a squared distance may be wrong.
    rounding: f64,
    radius: f64,
}

/// What lies within the radius of one query.
struct Content<T> {
    query: usize,
    sums: Vec<f64>,
    count: usize,
    nearest: Found<T>,
}

const NEAREST: Nearest = Nearest { count: CONTENDERS };

impl<T: Real> Visitor<T> for Ball<'_> {
    type State = Content<T>;

    fn start(&self, query: usize) -> Content<T> {
        let sums = vec![0.; self.learnt.columns.len()];
        Content { query, sums, count: 0, nearest: NEAREST.start(query) }
    }

    #[inline(always)]
    fn visit(&self, content: &mut Content<T>, first: usize, products: &[T]) {
        // Only a query that is still alone needs to know its nearest sample.
        if content.count == 0 {
            NEAREST.visit(&mut content.nearest, first, products);
        }
        let square = self.radius * self.radius;
        let border = (self.distances.squares[content.query] - square) / 2.;
        let rounding = self.rounding;
        let possible = T::rounded(border - rounding);
        for (lanes, first) in products.chunks(LANES).zip((first..).step_by(LANES)) {
            if !any_from(possible, lanes) {
                continue;
            }
            for (row, product) in (first..).zip(lanes).map(|(row, product)| (row, (*product).into())) {
                let inside = product > border + rounding
                    || (product >= border - rounding && self.distances.exact(content.query, row) <= square);
                if inside {
                    self.learnt.add(row, 1., &mut content.sums);
                    content.count += 1;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use ndarray::array;

    use super::*;
    use crate::Features;

    #[test]
    fn a_query_without_neighbours_takes_its_nearest_and_is_counted() {
        let train = Features::labelled(array![[0., 0.], [1., 0.], [10., 0.]], vec![0, 1, 2], 4).unwrap();
        let solution = RadiusSolution::new(&train, 1.);
        // The second lies on the border of two, the third is alone.
        let found = solution.scores_and_alone(&array![[0.1, 0.], [0., 0.], [7., 0.]]).unwrap();
        let expected = array![[0.5, 0.5, 0., 0.], [0.5, 0.5, 0., 0.], [0., 0., 1., 0.]];
        assert_eq!(found, RadiusScores { scores: expected, alone: 1 });
    }
}
