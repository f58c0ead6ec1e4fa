//! Weighted k-nearest-neighbour classification as DINO does it: cosine similarity, votes
//! `exp(similarity / temperature)`.

use ndarray::ArrayView1;
use serde::{Deserialize, Serialize};

use crate::demand::Size;
use crate::estimator::{Answer, Estimator, Fitted, Question};
use crate::features::Samples;
use crate::learnt::{Columns, Learnt};
use crate::nearest::{Found, Nearest};
use crate::params::{Params, ValidParams};
use crate::ranking::Ranking;
use crate::real::Real;
use crate::rows::Rows;
use crate::settings::{positive, whole};
use crate::solution::{Solution, Take};
use crate::tiles::{Products, visit_products};
use crate::watch::Watch;
use crate::{Choice, Error, Result, Scores};

/// The probe's settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Knn {
    /// Neighbours that vote; all of them if there are fewer.
    pub k: usize,
    /// Softens the votes.
    pub temperature: f64,
}

/// Settings as linfa has them.
pub type KnnParams = Params<Knn>;
/// The same, checked.
pub type KnnValidParams = ValidParams<Knn>;

/// A fitted probe: all training features.
#[derive(Debug, Clone)]
pub struct KnnSolution<'a> {
    settings: Knn,
    learnt: Learnt<'a>,
}

impl Knn {
    /// `k` neighbours vote, at DINO's temperature of 0.07.
    pub fn params(k: usize) -> KnnParams {
        Self { k, temperature: 0.07 }.into()
    }

    /// The share of every class in the votes. A class without training samples gets none.
    ///
    /// # Shapes
    /// - `queries`: `(queries, dim)`
    /// - result: `(queries, classes)`
    pub fn scores<'a>(&self, train: impl Into<Samples<'a>>, queries: impl Into<Rows<'a>>) -> Result<Scores> {
        let train = train.into();
        train.needs_some()?;
        KnnSolution::new(train, self.clone()).scores(queries)
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
}

impl KnnParams {
    /// Softens the votes.
    pub fn temperature(self, temperature: f64) -> Self {
        self.with(|knn| knn.temperature = temperature)
    }
}

impl Estimator for Knn {
    type Solution<'a> = KnnSolution<'a>;

    const NAME: &'static str = "k-NN";
    const SETTING: &'static str = "k";
    const SHARES_PASS: bool = true;

    fn check(&self) -> Result<()> {
        whole("k", self.k)?;
        positive("temperature", self.temperature)
    }

    fn title(&self) -> String {
        format!("k-NN (k = {})", self.k)
    }

    /// `knn:k20:T0.07:cls:l2`
    fn protocol(&self, features: &str, _choice: Option<&Choice>) -> String {
        format!("knn:k{}:T{}:{features}:l2", self.k, self.temperature)
    }

    fn memory(&self, size: Size) -> u64 {
        let [samples, dim, _, queries] = size.of();
        let (queries, k) = (queries.min(QUERIES as u64), (self.k as u64).min(samples));
        Size::bytes(queries.saturating_mul(dim + 4 * k + 32), size_of::<f32>())
    }

    fn learn<'a>(
        &self,
        train: Samples<'a>,
        _seed: u64,
        _watch: &mut Watch<'_>,
    ) -> Result<Fitted<KnnSolution<'a>>> {
        train.needs_some()?;
        train.needs_classes(Self::NAME)?;
        Ok(Fitted { solution: KnnSolution::new(train, self.clone()), choice: None })
    }

    /// From one pass over the neighbours.
    fn answers(settings: &[&Self], question: &Question<'_>, watch: &mut Watch<'_>) -> Result<Vec<Answer>> {
        let Question { train, queries, count, .. } = *question;
        let rankings = Self::rankings(settings, train, queries, count, watch)?;
        Ok(rankings.into_iter().map(|ranking| Answer { ranking, choice: None }).collect())
    }
}

impl<'a> KnnSolution<'a> {
    /// Remembers samples.
    pub fn new(train: impl Into<Samples<'a>>, settings: Knn) -> Self {
        Self { settings, learnt: Learnt::new(train.into()) }
    }
}

impl Solution for KnnSolution<'_> {
    fn columns(&self) -> &Columns {
        &self.learnt.columns
    }

    fn visit(&self, queries: Rows<'_>, watch: &mut Watch<'_>, take: &mut Take<'_>) -> Result<usize> {
        votes(&[&self.settings], &self.learnt, queries, watch, &mut |_, shares| take(shares))?;
        Ok(0)
    }
}

/// Queries whose neighbours are looked for at the same time.
const QUERIES: usize = 1 << 16;
/// Similarities that differ less than this are computed in f64: a product in f32 errs by 1e-7.
const SINGLE_SPREAD: f64 = 1e-4;
const CLASSES_ONLY: Error = Error::ClassesOnly { probe: Knn::NAME };

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
    match spread(train.rows()) < SINGLE_SPREAD {
        true => vote::<f64>(settings, learnt, queries, watch, take),
        false => vote::<f32>(settings, learnt, queries, watch, take),
    }
}

fn vote<T: Real>(
    settings: &[&Knn],
    learnt: &Learnt<'_>,
    queries: Rows<'_>,
    watch: &mut Watch<'_>,
    take: &mut dyn FnMut(usize, &[f64]),
) -> Result<()> {
    let train = learnt.samples;
    let most = settings.iter().map(|settings| settings.k).max().unwrap_or(1);
    let nearest = Nearest { count: most.min(train.len()) };
    let products = Products {
        queries,
        bank: train.rows(),
        dim: train.dim(),
        write_query: &write_unit::<T>,
        write_bank: &write_unit::<T>,
        states: QUERIES,
    };
    let mut shares = vec![0.; learnt.columns.len()];
    visit_products(&products, &nearest, watch, |_, mut found: Found<T>| {
        let neighbours = found.rows();
        // Votes relative to the nearest neighbour's: shares are the same, and no temperature is too low.
        let highest = neighbours.first().map_or(T::rounded(0.), |&(_, similarity)| similarity);
        for (setting, Knn { k, temperature }) in settings.iter().enumerate() {
            shares.fill(0.);
            for &(row, similarity) in &neighbours[..neighbours.len().min(*k)] {
                let vote = ((similarity - highest).into() / temperature).exp();
                shares[learnt.own[row as usize] as usize] += vote;
            }
            let total: f64 = shares.iter().sum();
            shares.iter_mut().for_each(|share| *share /= total);
            take(setting, &shares);
        }
    })
}

/// The variance of rows of unit length around their mean: how much similarities differ from each other. Of some
/// thousand rows, which is near enough.
fn spread(rows: Rows<'_>) -> f64 {
    const ENOUGH: usize = 4096;
    let (mut mean, mut unit) = (vec![0.; rows.dim()], vec![0f64; rows.dim()]);
    let mut count = 0.;
    for row in (0..rows.len()).step_by(rows.len().div_ceil(ENOUGH).max(1)) {
        write_unit(rows.row(row), &mut unit);
        mean.iter_mut().zip(&unit).for_each(|(mean, unit)| *mean += unit);
        count += 1.;
    }
    1. - mean.iter().map(|sum| (sum / count).powi(2)).sum::<f64>()
}

/// A row of unit length.
fn write_unit<T: Real>(row: ArrayView1<'_, f32>, unit: &mut [T]) {
    let norm = row.iter().map(|value| f64::from(*value).powi(2)).sum::<f64>().sqrt().max(f64::MIN_POSITIVE);
    unit.iter_mut().zip(row).for_each(|(unit, value)| *unit = T::rounded(f64::from(*value) / norm));
}
