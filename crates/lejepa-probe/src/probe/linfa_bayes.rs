//! Gaussian naive Bayes by `linfa-bayes`: any classifier of linfa becomes a probe as this one does.
//!
//! ```text
//! score_c(x) = log p_c - sum_j (log(2 pi s_cj) + (x_j - m_cj)^2 / s_cj) / 2
//! ```
//!
//! `p`, `m` and `s` are the share of a class and the mean and variance of its features, in f32; `s` and a share of the
//! largest variance.

use linfa::traits::Fit;
use linfa_bayes::{GaussianNb, NaiveBayes};
use ndarray_linfa::{Array2, ArrayView2};
use serde::{Deserialize, Serialize};

use crate::demand::Size;
use crate::estimator::{Estimator, Fitted};
use crate::features::Samples;
use crate::linfa_classifier::{ClassDataset, LinfaClassifier, LinfaSolution, copies_memory};
use crate::settings::positive;
use crate::watch::Watch;
use crate::{Choice, Error, Result};

/// The probe's settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinfaBayes {
    /// The share of the largest variance of a feature that is added to all variances.
    #[serde(default = "default_smoothing")]
    pub smoothing: f64,
}

fn default_smoothing() -> f64 {
    1e-9
}

impl LinfaClassifier for LinfaBayes {
    type Model = GaussianNb<f32, usize>;

    fn fit_linfa(&self, dataset: &ClassDataset<'_, '_>) -> Result<Self::Model> {
        let fitted = GaussianNb::params().var_smoothing(self.smoothing as f32).fit(dataset);
        fitted.map_err(|source| Error::Classifier { probe: Self::NAME, source: source.into() })
    }

    fn write_scores(model: &Self::Model, queries: ArrayView2<'_, f32>, scores: &mut Array2<f64>) {
        for (&class, likelihoods) in model.joint_log_likelihood(queries) {
            scores.column_mut(class).zip_mut_with(&likelihoods, |score, value| *score = f64::from(*value));
        }
    }
}

impl Estimator for LinfaBayes {
    type Solution<'a> = LinfaSolution<Self>;

    const NAME: &'static str = "Gaussian naive Bayes";

    fn check(&self) -> Result<()> {
        positive("smoothing", self.smoothing)
    }

    /// `linfa-bayes:gaussian:s0.000000001:cls`
    fn protocol(&self, features: &str, _choice: Option<&Choice>) -> String {
        format!("linfa-bayes:gaussian:s{}:{features}", self.smoothing)
    }

    fn memory(&self, size: Size) -> u64 {
        copies_memory(size)
    }

    fn learn<'a>(
        &self,
        train: Samples<'a>,
        _seed: u64,
        watch: &mut Watch<'_>,
    ) -> Result<Fitted<LinfaSolution<Self>>> {
        LinfaSolution::learn(self, train, watch)
    }
}
