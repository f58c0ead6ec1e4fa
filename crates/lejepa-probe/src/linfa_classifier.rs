//! Classifiers of linfa as probes.
//!
//! Settings that say how such a classifier is fitted become a probe by two lines in their [`Estimator`]:
//! `type Solution<'a> = LinfaSolution<Self>` and `LinfaSolution::learn(self, train, watch)`.
//!
//! [`Estimator`]: crate::Estimator

use linfa::DatasetBase;
use linfa::traits::{Predict, PredictInplace};
use ndarray::Array2;
use ndarray_linfa as linfa_array;

use crate::dataset::to_linfa;
use crate::demand::Size;
use crate::estimator::Fitted;
use crate::features::Samples;
use crate::learnt::{Columns, Learnt};
use crate::rows::Rows;
use crate::solution::{Solution, Take};
use crate::watch::Watch;
use crate::{Error, Result};

/// Borrowed records `(samples, dim)` and classes `(samples)`.
pub type ClassDataset<'r, 'c> =
    DatasetBase<linfa_array::ArrayView2<'r, f32>, linfa_array::ArrayView1<'c, usize>>;

/// Settings of a classifier of linfa.
pub trait LinfaClassifier {
    /// The fitted classifier.
    type Model: for<'a> PredictInplace<linfa_array::ArrayView2<'a, f32>, linfa_array::Array1<usize>>;

    /// Fits a dataset whose classes are numbered from 0 on and all have samples.
    fn fit_linfa(&self, dataset: &ClassDataset<'_, '_>) -> Result<Self::Model>;

    /// The score of every class, written into zeros. A classifier that only names a class gives it a one; of the others, those
    /// with small numbers then come first in a ranking.
    ///
    /// # Shapes
    /// - `queries`: `(queries, dim)`
    /// - `scores`: `(queries, classes)`, zeros
    fn write_scores(
        model: &Self::Model,
        queries: linfa_array::ArrayView2<'_, f32>,
        scores: &mut linfa_array::Array2<f64>,
    ) {
        let predicted: linfa_array::Array1<usize> = model.predict(&queries);
        scores.outer_iter_mut().zip(predicted).for_each(|(mut scores, class)| scores[class] = 1.);
    }
}

/// A fitted classifier of linfa.
pub struct LinfaSolution<C: LinfaClassifier> {
    model: C::Model,
    dim: usize,
    columns: Columns,
}

/// Queries that are answered at a time.
const QUERIES: usize = 1024;

impl<C: LinfaClassifier> LinfaSolution<C> {
    /// Fits classes. Samples that are not all of a set, or lie in memory in another order, are copied. A fit of
    /// linfa cannot be followed or stopped.
    pub fn learn(settings: &C, train: Samples<'_>, watch: &mut Watch<'_>) -> Result<Fitted<Self>> {
        train.needs_some()?;
        let Learnt { columns, own, .. } = Learnt::new(train);
        columns.known().map_err(|_| Error::ClassesOnly { probe: "a classifier of linfa" })?;
        watch.at(0.)?;
        let labels = own.into_iter().map(|column| column as usize).collect::<Vec<_>>();
        let model = with_matrix(train.rows(), |records| {
            let labels = linfa_array::ArrayView1::from(&labels);
            settings.fit_linfa(&DatasetBase::new(records, labels))
        })?;
        watch.at(1.)?;
        Ok(Fitted { solution: Self { model, dim: train.dim(), columns }, choice: None })
    }
}

/// Bytes of copies that a fit may need: of samples that are not all of a set, and of as many again in the classifier.
pub(crate) fn copies_memory(size: Size) -> u64 {
    let [samples, dim, outputs, _] = size.of();
    let block =
        (QUERIES as u64).saturating_mul(dim.saturating_mul(3).saturating_add(outputs.saturating_mul(2)));
    Size::bytes(samples.saturating_mul(dim).saturating_mul(2).saturating_add(block), size_of::<f32>())
}

impl<C: LinfaClassifier> Solution for LinfaSolution<C> {
    fn columns(&self) -> &Columns {
        &self.columns
    }

    fn visit(&self, queries: Rows<'_>, watch: &mut Watch<'_>, take: &mut Take<'_>) -> Result<usize> {
        let queries = queries.of_length(self.dim)?;
        for (first, block) in queries.blocks(QUERIES) {
            watch.at(first as f64 / queries.len() as f64)?;
            let mut scores = linfa_array::Array2::zeros((block.len(), self.columns.len()));
            with_matrix(block, |queries| {
                C::write_scores(&self.model, queries, &mut scores);
                Ok(())
            })?;
            // Of constant features some classifiers know nothing: that is below any score.
            scores.mapv_inplace(|score| if score.is_nan() { f64::NEG_INFINITY } else { score });
            scores.outer_iter().for_each(|scores| scores.as_slice().into_iter().for_each(&mut *take));
        }
        Ok(0)
    }
}

/// Rows as a matrix of linfa: a view where they follow each other, else a copy.
fn with_matrix<R>(
    rows: Rows<'_>,
    work: impl FnOnce(linfa_array::ArrayView2<'_, f32>) -> Result<R>,
) -> Result<R> {
    if let Some(matrix) = to_linfa(rows) {
        return work(matrix);
    }
    let mut copy = Array2::zeros((rows.len(), rows.dim()));
    copy.outer_iter_mut().enumerate().for_each(|(index, mut to)| to.assign(&rows.row(index)));
    work(to_linfa((&copy).into()).ok_or(Error::Layout)?)
}
