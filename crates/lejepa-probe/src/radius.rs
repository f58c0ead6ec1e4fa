//! Radius k-NN (paper, equation kNN): the mean of the targets within a radius.
//!
//! ```text
//! score(q) = mean { y_i : |q - x_i| <= r }
//! ```
//!
//! A query without neighbours takes the target of its nearest sample, and is counted.

use ndarray::Array2;
use serde::{Deserialize, Serialize};

use crate::choice::Candidates;
use crate::distance::{Distances, Layout, scale};
use crate::nearest::{Found, LANES, Nearest, any_from};
use crate::real::Real;
use crate::tiles::{Visitor, visit_products};
use crate::{Choice, Error, Features, Result, Scores, Targets};

/// The probe's settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Radius {
    /// Radii to choose from, as multiples of the root of the mean squared distance between two samples.
    pub radii: Vec<f64>,
    /// Share of the training features on which the radius is chosen.
    pub holdout: f64,
}

/// A fitted probe: all training features and a radius.
#[derive(Debug, Clone, Copy)]
pub struct RadiusSolution<'a> {
    /// What it remembers.
    pub train: &'a Features,
    /// A distance between features.
    pub radius: f64,
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
    /// `radius:holdout0.1:cls`, with the kind of features
    pub fn protocol(&self, features: &str) -> String {
        format!("radius:holdout{}:{features}", self.holdout)
    }

    /// Chooses the radius on held-out training features. Returns the choice, a multiple, too.
    pub fn fit<'a>(&self, train: &'a Features, seed: u64) -> Result<(RadiusSolution<'a>, Choice)> {
        let candidates = Candidates { setting: "radii", values: &self.radii, holdout: self.holdout, seed };
        let choice = candidates.choose(train, |fitted, held_out, radii| {
            let unit = scale(fitted.values());
            let solution = |multiple: &f64| RadiusSolution { train: fitted, radius: multiple * unit };
            radii.iter().map(|multiple| Ok(solution(multiple).scores(held_out.values())?.scores)).collect()
        })?;
        Ok((RadiusSolution { train, radius: choice.value * scale(train.values()) }, choice))
    }
}

impl RadiusSolution<'_> {
    /// The mean of the targets within the radius.
    ///
    /// # Shapes
    /// - `queries`: `(queries, dim)`
    pub fn scores(&self, queries: &Array2<f32>) -> Result<RadiusScores> {
        let Self { train, radius } = *self;
        train.compare(queries)?;
        if !(radius.is_finite() && radius > 0.) {
            return Err(Error::NotPositive { setting: "radius", got: radius });
        }
        let distances = Distances::new(train.values(), queries);
        Ok(match distances.fit_single(SINGLE_LIMIT * radius * radius / 2.) {
            true => self.within::<f32>(&distances),
            false => self.within::<f64>(&distances),
        })
    }

    fn within<T: Real>(&self, distances: &Distances<'_>) -> RadiusScores {
        let (layout, targets) = (distances.layout::<T>(), self.train.targets());
        let ball = Ball { distances, targets, layout: &layout, radius: self.radius };
        let balls = visit_products(&layout.queries, &layout.bank, &ball);
        let mut scores = Array2::zeros((layout.squares.len(), targets.outputs()));
        let mut alone = 0;
        for (query, (content, mut scores)) in balls.into_iter().zip(scores.outer_iter_mut()).enumerate() {
            let Content { mut sums, mut count, mut nearest, .. } = content;
            if count == 0 {
                alone += 1;
                let distance = |row: usize| distances.exact(query, row);
                let rows = nearest.rows().into_iter().map(|(row, _)| (distance(row), row));
                if let Some((_, row)) = rows.min_by(|left, right| left.0.total_cmp(&right.0)) {
                    targets.add(row, 1., &mut sums);
                    count = 1;
                }
            }
            scores.iter_mut().zip(sums).for_each(|(score, sum)| *score = sum / count as f64);
        }
        RadiusScores { scores, alone }
    }
}

/// Gathers the targets within the radius.
struct Ball<'a, T> {
    distances: &'a Distances<'a>,
    targets: &'a Targets,
    layout: &'a Layout<T>,
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

impl<T: Real> Visitor<T> for Ball<'_, T> {
    type State = Content<T>;

    fn start(&self, query: usize) -> Content<T> {
        Content { query, sums: vec![0.; self.targets.outputs()], count: 0, nearest: NEAREST.start(query) }
    }

    #[inline(always)]
    fn visit(&self, content: &mut Content<T>, first: usize, products: &[T]) {
        // Only a query that is still alone needs to know its nearest sample.
        if content.count == 0 {
            NEAREST.visit(&mut content.nearest, first, products);
        }
        let square = self.radius * self.radius;
        let border = (self.layout.squares[content.query] - square) / 2.;
        let rounding = self.layout.rounding;
        let possible = T::rounded(border - rounding);
        for (lanes, first) in products.chunks(LANES).zip((first..).step_by(LANES)) {
            if !any_from(possible, lanes) {
                continue;
            }
            for (row, product) in (first..).zip(lanes).map(|(row, product)| (row, (*product).into())) {
                let inside = product > border + rounding
                    || (product >= border - rounding && self.distances.exact(content.query, row) <= square);
                if inside {
                    self.targets.add(row, 1., &mut content.sums);
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

    #[test]
    fn a_query_without_neighbours_takes_its_nearest_and_is_counted() {
        let train = Features::labelled(array![[0., 0.], [1., 0.], [10., 0.]], vec![0, 1, 2], 4).unwrap();
        let solution = RadiusSolution { train: &train, radius: 1. };
        // The second lies on the border of two, the third is alone.
        let found = solution.scores(&array![[0.1, 0.], [0., 0.], [7., 0.]]).unwrap();
        let expected = array![[0.5, 0.5, 0., 0.], [0.5, 0.5, 0., 0.], [0., 0., 1., 0.]];
        assert_eq!(found, RadiusScores { scores: expected, alone: 1 });
    }
}
