//! Probes as estimators of linfa: `Fit` on datasets of views, and fitted models with `Predict`.
//!
//! These implementations are a front: they borrow the dataset as [`Samples`], and the probe's own
//! [`Estimator::learn`] and [`Solution::visit`] do the work. Whoever wants to follow a fit or to stop it calls
//! [`Estimator::fit`] with a [`Watch`](crate::Watch), which linfa's traits have no room for.

use std::marker::PhantomData;

use linfa::DatasetBase;
use linfa::traits::{Fit, PredictInplace};
use ndarray_linfa::{Array1, Array2, ArrayBase, ArrayView2, Axis, Data, Ix2};

use crate::dataset::{DatasetTargets, from_linfa};
use crate::estimator::{Estimator, Fitted};
use crate::features::Samples;
use crate::params::ValidParams;
use crate::rows::Rows;
use crate::solution::Solution;
use crate::watch::unwatched;
use crate::{Choice, Error, Result};

/// The seed of a fit by linfa's trait: it draws the training features that are held out.
const SEED: u64 = 0;

/// A probe that was fitted to a dataset of linfa, whose targets it predicts as arrays `T`. k-NN, radius and kernel
/// borrow the dataset's records.
#[derive(Debug, Clone)]
pub struct Model<S, T> {
    fitted: Fitted<S>,
    predicted: PhantomData<fn() -> T>,
}

impl<S, T> Model<S, T> {
    /// The fitted probe, which has scores and rankings too.
    pub fn solution(&self) -> &S {
        &self.fitted.solution
    }

    /// The value that was chosen, of a probe that chooses one.
    pub fn choice(&self) -> Option<&Choice> {
        self.fitted.choice.as_ref()
    }
}

/// The records must be views: `params.fit(&dataset.view())`.
impl<'a, P, T> Fit<ArrayView2<'a, f32>, T, Error> for ValidParams<P>
where
    P: Estimator,
    T: DatasetTargets<'a>,
{
    type Object = Model<P::Solution<'a>, T::Predicted>;

    fn fit(&self, dataset: &DatasetBase<ArrayView2<'a, f32>, T>) -> Result<Self::Object> {
        let samples = Samples::from_linfa(dataset)?;
        let fitted = unwatched(|watch| self.settings().learn(samples, SEED, watch))?;
        Ok(Model { fitted, predicted: PhantomData })
    }
}

impl<S: Solution, D: Data<Elem = f32>> PredictInplace<ArrayBase<D, Ix2>, Array1<usize>>
    for Model<S, Array1<usize>>
{
    /// Panics where queries have another length than the records, as linfa's models do.
    fn predict_inplace<'a>(&'a self, queries: &'a ArrayBase<D, Ix2>, targets: &mut Array1<usize>) {
        let ranking =
            with_rows(queries, |rows| unwatched(|watch| self.solution().ranking(rows, 1, watch))).predicted();
        assert_eq!(ranking.len(), targets.len(), "as many targets as queries");
        targets.iter_mut().zip(ranking).for_each(|(target, class)| *target = class);
    }

    fn default_target(&self, queries: &ArrayBase<D, Ix2>) -> Array1<usize> {
        Array1::zeros(queries.nrows())
    }
}

impl<S: Solution, D: Data<Elem = f32>> PredictInplace<ArrayBase<D, Ix2>, Array1<f64>>
    for Model<S, Array1<f64>>
{
    /// Panics where queries have another length than the records, as linfa's models do.
    fn predict_inplace<'a>(&'a self, queries: &'a ArrayBase<D, Ix2>, targets: &mut Array1<f64>) {
        predict_values(self.solution(), queries, targets.view_mut().insert_axis(Axis(1)));
    }

    fn default_target(&self, queries: &ArrayBase<D, Ix2>) -> Array1<f64> {
        Array1::zeros(queries.nrows())
    }
}

impl<S: Solution, D: Data<Elem = f32>> PredictInplace<ArrayBase<D, Ix2>, Array2<f64>>
    for Model<S, Array2<f64>>
{
    /// Panics where queries have another length than the records, as linfa's models do.
    fn predict_inplace<'a>(&'a self, queries: &'a ArrayBase<D, Ix2>, targets: &mut Array2<f64>) {
        predict_values(self.solution(), queries, targets.view_mut());
    }

    fn default_target(&self, queries: &ArrayBase<D, Ix2>) -> Array2<f64> {
        Array2::zeros((queries.nrows(), self.solution().columns().outputs()))
    }
}

fn predict_values<S: Solution, D: Data<Elem = f32>>(
    solution: &S,
    queries: &ArrayBase<D, Ix2>,
    mut targets: ndarray_linfa::ArrayViewMut2<'_, f64>,
) {
    let scores = with_rows(queries, |rows| solution.scores(rows));
    assert_eq!(scores.dim(), targets.dim(), "as many targets as queries");
    targets.iter_mut().zip(&scores).for_each(|(target, score)| *target = *score);
}

/// Queries as rows; copied if they do not lie in memory row by row.
#[expect(clippy::panic, reason = "linfa's `predict` has no way to return an error")]
fn with_rows<D: Data<Elem = f32>, R>(
    queries: &ArrayBase<D, Ix2>,
    predict: impl FnOnce(Rows<'_>) -> Result<R>,
) -> R {
    let queries = queries.as_standard_layout();
    match from_linfa(queries.view()).and_then(|rows| predict(rows.into())) {
        Ok(predicted) => predicted,
        Err(error) => panic!("{error}"),
    }
}
