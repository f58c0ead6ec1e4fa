//! Weighted k-nearest-neighbour classification as DINO does it: cosine similarity, votes
//! `exp(similarity / temperature)`.

use ndarray::ArrayView1;
use serde::{Deserialize, Serialize};

use crate::features::Samples;
use crate::learnt::Learnt;
use crate::nearest::Nearest;
use crate::ranking::{Ranking, dense};
use crate::rows::Rows;
use crate::tiles::{Products, visit_products};
use crate::watch::{Watch, unwatched};
use crate::{Error, Result, Scores};

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
    pub fn scores<'a>(&self, train: impl Into<Samples<'a>>, queries: impl Into<Rows<'a>>) -> Result<Scores> {
        let (train, queries) = (train.into(), queries.into());
        train.needs_some()?;
        let learnt = Learnt::new(train);
        dense(&learnt.columns, (queries.len(), 0.), |take| {
            unwatched(|watch| votes(&[self], &learnt, queries, watch, &mut |_, shares| take(shares)))
        })
    }

    /// The first `count` classes of every query for several settings, from one pass over the neighbours.
    pub fn rankings<'a>(
        settings: &[&Self],
        train: impl Into<Samples<'a>>,
        queries: impl Into<Rows<'a>>,
        count: usize,
        watch: &mut Watch<'_>,
    ) -> Result<Vec<Ranking>> {
        let learnt = Learnt::new(train.into());
        let known = learnt.columns.known().map_err(|_| CLASSES_ONLY)?;
        let empty = Ranking::new(&learnt.columns, count)?;
        let mut rankings = vec![empty; settings.len()];
        votes(settings, &learnt, queries.into(), watch, &mut |setting, shares| {
            rankings[setting].push(shares, known);
        })?;
        Ok(rankings)
    }

    fn check(&self) -> Result<()> {
        for (setting, got) in [("k", self.k as f64), ("temperature", self.temperature)] {
            if !(got.is_finite() && got > 0.) {
                return Err(Error::NotPositive { setting, got });
            }
        }
        Ok(())
    }
}

/// Queries whose neighbours are looked for at the same time.
const QUERIES: usize = 1 << 16;
const CLASSES_ONLY: Error = Error::ClassesOnly { probe: "k-NN" };

/// Tells `take` the shares of the known classes, for every query those of every setting.
fn votes(
    settings: &[&Knn],
    learnt: &Learnt<'_>,
    queries: Rows<'_>,
    watch: &mut Watch<'_>,
    take: &mut dyn FnMut(usize, &[f64]),
) -> Result<()> {
    let train = learnt.samples;
    train.needs_some()?;
    let queries = queries.of_length(train.dim())?;
    learnt.columns.known().map_err(|_| CLASSES_ONLY)?;
    settings.iter().try_for_each(|settings| settings.check())?;
    let most = settings.iter().map(|settings| settings.k).max().unwrap_or(1);
    let nearest = Nearest { count: most.min(train.len()) };
    let products = Products {
        queries,
        bank: train.rows(),
        dim: train.dim(),
        write_query: &write_unit,
        write_bank: &write_unit,
        states: QUERIES,
    };
    let mut shares = vec![0.; learnt.columns.len()];
    visit_products(&products, &nearest, watch, |_, mut found| {
        let neighbours = found.rows();
        // Votes relative to the nearest neighbour's: shares are the same, and no temperature is too low.
        let highest = neighbours.first().map_or(0., |&(_, similarity)| similarity);
        for (setting, Knn { k, temperature }) in settings.iter().enumerate() {
            shares.fill(0.);
            for &(row, similarity) in &neighbours[..neighbours.len().min(*k)] {
                let vote = (f64::from(similarity - highest) / temperature).exp();
                shares[learnt.own[row as usize] as usize] += vote;
            }
            let total: f64 = shares.iter().sum();
            shares.iter_mut().for_each(|share| *share /= total);
            take(setting, &shares);
        }
    })
}

/// A row of unit length.
fn write_unit(row: ArrayView1<'_, f32>, unit: &mut [f32]) {
    let norm = row.iter().map(|value| f64::from(*value).powi(2)).sum::<f64>().sqrt().max(f64::MIN_POSITIVE);
    unit.iter_mut().zip(row).for_each(|(unit, value)| *unit = (f64::from(*value) / norm) as f32);
}
