//! Radius k-NN (paper, equation kNN): the mean of the targets within a radius.
//!
//! ```text
//! score(q) = mean { y_i : |q - x_i| <= r }
//! ```
//!
//! A query without neighbours takes the target of its nearest sample, and is counted.

use serde::{Deserialize, Serialize};

use crate::choice::{Candidates, ScoreKind};
use crate::distance::{Distances, scale};
use crate::features::Samples;
use crate::learnt::Learnt;
use crate::nearest::{Found, LANES, Nearest, any_from};
use crate::ranking::{Ranking, Take, dense, rank};
use crate::real::Real;
use crate::rows::Rows;
use crate::tiles::Visitor;
use crate::watch::{Watch, unwatched};
use crate::{Choice, Error, Result, Scores};

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

/// A fitted probe: all training features and a radius.
#[derive(Debug, Clone, Copy)]
pub struct RadiusSolution<'a> {
    train: Samples<'a>,
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
    /// `radius:holdout0.1:cls`, with the kind of features and how the radius was chosen
    pub fn protocol(&self, features: &str, choice: Option<&Choice>) -> String {
        format!("radius:{}:{features}", Choice::tag(choice, self.holdout))
    }

    /// Chooses the radius on held-out training features. Returns the choice, a multiple, too.
    pub fn fit<'a>(
        &self,
        train: impl Into<Samples<'a>>,
        seed: u64,
        watch: &mut Watch<'_>,
    ) -> Result<(RadiusSolution<'a>, Choice)> {
        let train = train.into();
        let candidates = Candidates {
            setting: "radii",
            values: &self.radii,
            holdout: self.holdout,
            seed,
            scores: ScoreKind::Ranks,
        };
        let choice = candidates.choose(train, watch, |trial, judge, watch| {
            let learnt = Learnt::new(trial.fitted);
            let unit = scale(trial.fitted.rows());
            for (index, multiple) in trial.values.iter().enumerate() {
                let solution = RadiusSolution::new(trial.fitted, multiple * unit);
                let watch = &mut watch.step(index, trial.values.len());
                let mut sample = 0;
                solution.visit(&learnt, trial.held_out.rows(), watch, &mut |scores| {
                    judge.hear((index, sample), &learnt.columns, scores);
                    sample += 1;
                })?;
            }
            Ok(())
        })?;
        Ok((RadiusSolution::new(train, choice.value * scale(train.rows())), choice))
    }
}

impl<'a> RadiusSolution<'a> {
    /// Remembers samples; `radius` is a distance between features.
    pub fn new(train: impl Into<Samples<'a>>, radius: f64) -> Self {
        Self { train: train.into(), radius }
    }

    /// The mean of the targets within the radius.
    ///
    /// # Shapes
    /// - `queries`: `(queries, dim)`
    pub fn scores<'q>(&self, queries: impl Into<Rows<'q>>) -> Result<RadiusScores> {
        let (learnt, queries) = (Learnt::new(self.train), queries.into());
        let mut alone = 0;
        let scores = dense(&learnt.columns, (queries.len(), 0.), |take| {
            alone = unwatched(|watch| self.visit(&learnt, queries, watch, take))?;
            Ok(())
        })?;
        Ok(RadiusScores { scores, alone })
    }

    /// The first `count` classes of every query, and how many queries were alone.
    pub fn ranking<'q>(
        &self,
        queries: impl Into<Rows<'q>>,
        count: usize,
        watch: &mut Watch<'_>,
    ) -> Result<(Ranking, usize)> {
        let learnt = Learnt::new(self.train);
        let mut alone = 0;
        let ranking = rank(&learnt.columns, count, |take| {
            alone = self.visit(&learnt, queries.into(), watch, take)?;
            Ok(())
        })?;
        Ok((ranking, alone))
    }

    /// Returns how many queries were alone.
    fn visit(
        &self,
        learnt: &Learnt<'_>,
        queries: Rows<'_>,
        watch: &mut Watch<'_>,
        take: &mut Take<'_>,
    ) -> Result<usize> {
        let Self { train, radius } = *self;
        train.needs_some()?;
        let queries = queries.of_length(train.dim())?;
        if !(radius.is_finite() && radius > 0.) {
            return Err(Error::NotPositive { setting: "radius", got: radius });
        }
        let distances = Distances::new(train.rows(), queries);
        match distances.fit_single(SINGLE_LIMIT * radius * radius / 2.) {
            true => self.within::<f32>(&distances, learnt, watch, take),
            false => self.within::<f64>(&distances, learnt, watch, take),
        }
    }

    fn within<T: Real>(
        &self,
        distances: &Distances<'_>,
        learnt: &Learnt<'_>,
        watch: &mut Watch<'_>,
        take: &mut Take<'_>,
    ) -> Result<usize> {
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
        let found = solution.scores(&array![[0.1, 0.], [0., 0.], [7., 0.]]).unwrap();
        let expected = array![[0.5, 0.5, 0., 0.], [0.5, 0.5, 0., 0.], [0., 0., 1., 0.]];
        assert_eq!(found, RadiusScores { scores: expected, alone: 1 });
    }
}
