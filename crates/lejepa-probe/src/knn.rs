//! Weighted k-nearest-neighbour classification as DINO does it: cosine similarity, votes
//! `exp(similarity / temperature)`.

use ndarray::{Array2, ArrayView1};
use serde::{Deserialize, Serialize};

use crate::nearest::Nearest;
use crate::tiles::{self, visit_products};
use crate::{Error, Features, Result, Scores};

/// The probe's settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Knn {
    /// Neighbours that vote; all of them if there are fewer.
    pub k: usize,
    /// Softens the votes.
    pub temperature: f64,
}

impl Knn {
    /// `knn:k20:T0.07:cls:l2`, with the kind of features
    pub fn protocol(&self, features: &str) -> String {
        format!("knn:k{}:T{}:{features}:l2", self.k, self.temperature)
    }

    /// The share of every class in the votes. A class without training samples gets none.
    ///
    /// # Shapes
    /// - `queries`: `(queries, dim)`
    /// - result: `(queries, classes)`
    pub fn scores(&self, train: &Features, queries: &Array2<f32>) -> Result<Scores> {
        train.compare(queries)?;
        let labels = train.labels("k-NN")?;
        for (setting, got) in [("k", self.k as f64), ("temperature", self.temperature)] {
            if !(got.is_finite() && got > 0.) {
                return Err(Error::NotPositive { setting, got });
            }
        }
        let nearest = Nearest { count: self.k.min(labels.len()) };
        let found = visit_products(
            &tiles::queries(queries, train.dim(), write_unit),
            &tiles::bank(train.values(), train.dim(), write_unit),
            &nearest,
        );
        let mut scores = Array2::zeros((queries.nrows(), train.targets().outputs()));
        for (mut shares, mut found) in scores.outer_iter_mut().zip(found) {
            let neighbours = found.rows();
            // Votes relative to the nearest neighbour's: shares are the same, and no temperature is too low.
            let most = neighbours.first().map_or(0., |&(_, similarity)| similarity);
            for (row, similarity) in neighbours {
                shares[labels[row]] += (f64::from(similarity - most) / self.temperature).exp();
            }
            let total = shares.sum();
            shares /= total;
        }
        Ok(scores)
    }
}

/// A row of unit length.
fn write_unit(row: ArrayView1<'_, f32>, unit: &mut [f32]) {
    let norm = row.iter().map(|value| f64::from(*value).powi(2)).sum::<f64>().sqrt().max(1e-12);
    unit.iter_mut().zip(row).for_each(|(unit, value)| *unit = (f64::from(*value) / norm) as f32);
}
