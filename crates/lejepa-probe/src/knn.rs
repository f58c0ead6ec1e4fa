//! Weighted k-nearest-neighbour classification as DINO does it: cosine similarity, votes
//! `exp(similarity / temperature)`.

use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, MatRef, Par};
use ndarray::Array2;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::Features;

/// The probe's settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Knn {
    /// Neighbours that vote; all of them if there are fewer.
    pub k: usize,
    /// Softens the votes.
    pub temperature: f64,
}

/// Queries per product, so that memory does not grow with their number squared.
const QUERIES: usize = 512;

impl Knn {
    /// `knn:k20:T0.07:cls:l2`, with the kind of features
    pub fn protocol(&self, features: &str) -> String {
        format!("knn:k{}:T{}:{features}:l2", self.k, self.temperature)
    }

    /// The class with the most votes for every query.
    pub fn predict(&self, train: &Features, queries: &Array2<f32>, classes: usize) -> Vec<usize> {
        self.votes(train, queries, classes).outer_iter().map(|votes| argmax(votes.iter().copied())).collect()
    }

    /// The votes for every class; labels are below `classes`.
    ///
    /// # Shapes
    /// - `queries`: `(queries, dim)`
    /// - result: `(queries, classes)`
    pub fn votes(&self, train: &Features, queries: &Array2<f32>, classes: usize) -> Array2<f64> {
        let neighbours = normalised(&train.values);
        let queries = normalised(queries);
        let (train_count, dim) = (train.values.nrows(), train.values.ncols());
        let neighbours = MatRef::from_row_major_slice(&neighbours, train_count, dim);
        let mut votes = Array2::zeros((queries.len() / dim.max(1), classes));
        let chunks =
            queries.chunks(QUERIES * dim.max(1)).zip(votes.axis_chunks_iter_mut(ndarray::Axis(0), QUERIES));
        for (queries, mut votes) in chunks {
            let queries = MatRef::from_row_major_slice(queries, votes.nrows(), dim);
            // One column per query: its similarities lie side by side in memory.
            let mut similarity = Mat::<f32>::zeros(train_count, votes.nrows());
            matmul(similarity.as_mut(), Accum::Replace, neighbours, queries.transpose(), 1., Par::rayon(0));
            votes.outer_iter_mut().into_par_iter().enumerate().for_each(|(query, mut votes)| {
                let similarities = similarity.col(query).try_as_col_major().map(|column| column.as_slice());
                for (neighbour, similarity) in nearest(similarities.unwrap_or_default(), self.k) {
                    votes[train.labels[neighbour]] += (f64::from(similarity) / self.temperature).exp();
                }
            });
        }
        votes
    }
}

/// The `k` largest with their indices; of equals the first.
fn nearest(similarities: &[f32], k: usize) -> Vec<(usize, f32)> {
    let mut ranked: Vec<(usize, f32)> = similarities.iter().copied().enumerate().collect();
    let before =
        |left: &(usize, f32), right: &(usize, f32)| right.1.total_cmp(&left.1).then(left.0.cmp(&right.0));
    if (1..ranked.len()).contains(&k) {
        ranked.select_nth_unstable_by(k - 1, before);
        ranked.truncate(k);
    }
    ranked
}

/// Rows of unit length, row by row.
fn normalised(values: &Array2<f32>) -> Vec<f32> {
    let mut rows = Vec::with_capacity(values.len());
    for row in values.outer_iter() {
        let norm = row.iter().map(|value| f64::from(*value).powi(2)).sum::<f64>().sqrt().max(1e-12);
        rows.extend(row.iter().map(|value| (f64::from(*value) / norm) as f32));
    }
    rows
}

/// The index of the largest; of equals the first.
pub(crate) fn argmax(values: impl Iterator<Item = f64>) -> usize {
    let first_largest = |best: (usize, f64), next: (usize, f64)| if next.1 > best.1 { next } else { best };
    values.enumerate().fold((0, f64::NEG_INFINITY), first_largest).0
}
