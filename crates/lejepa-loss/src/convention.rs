//! How the two terms of the loss are put together, and what a lambda of one convention is in another.
//!
//! A lambda means nothing without its convention. With `K` dimensions and `V` views, in the paper's own
//! ([`Convention::default`]) prediction and SIGReg weigh `1 - lambda : lambda`, and
//!
//! | elsewhere | is the paper's | so its lambda weighs |
//! |---|---|---|
//! | `prediction + lambda * sigreg` | divided by `1 - lambda` | `1 : lambda` |
//! | prediction summed over dimensions | prediction times `K` | `1 : lambda / K` |
//! | SIGReg of all views pooled | SIGReg times `V`, if views agree in distribution | `1 : lambda * V` |
//!
//! because a pooled sample is `V` times as large and the statistic grows with it. The first two
//! conversions are exact up to a factor of the whole loss, which Adam does not feel; the last is exact if
//! every view's embeddings have the same empirical distribution, and a good start otherwise.

use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// What the loss is made of, but for lambda.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Convention {
    /// How squared differences are reduced over dimensions.
    pub prediction: PredictionReduction,
    /// What SIGReg takes for one sample of the embeddings.
    pub views: ViewPooling,
    /// How lambda weighs the terms.
    pub weighting: Weighting,
}

/// How the squared difference between an embedding and its centre is reduced over dimensions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PredictionReduction {
    /// The mean, as the paper's listing has it.
    #[default]
    Mean,
    /// The sum, as the paper's equation has it.
    Sum,
}

/// What SIGReg takes for one sample of the embeddings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ViewPooling {
    /// Each view has a statistic of its own; they are averaged.
    #[default]
    Each,
    /// The embeddings of all views are one sample. Views of one image are alike, so that a perfect
    /// encoder stands between 1 and `V` times the floor.
    Pooled,
}

/// How lambda weighs the terms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Weighting {
    /// `(1 - lambda) * prediction + lambda * sigreg`
    #[default]
    Convex,
    /// `prediction + lambda * sigreg`
    Additive,
}

impl Weighting {
    /// The weights of prediction and SIGReg.
    pub(crate) fn weights(self, lambda: f64) -> Result<(f64, f64)> {
        let expected = match self {
            Self::Convex if (0. ..=1.).contains(&lambda) => return Ok((1. - lambda, lambda)),
            Self::Convex => "between 0 and 1",
            Self::Additive if lambda.is_finite() && lambda >= 0. => return Ok((1., lambda)),
            Self::Additive => "0 or a positive number",
        };
        Err(Error::Setting { field: "lambda", expected, got: lambda.to_string() })
    }
}

impl Convention {
    /// The lambda of another convention that weighs the terms as `lambda` does in this one, for
    /// embeddings with `dim` dimensions and `views` views.
    ///
    /// ```
    /// use lejepa_loss::{Convention, Weighting};
    ///
    /// let elsewhere = Convention { weighting: Weighting::Additive, ..Convention::default() };
    /// let lambda = elsewhere.convert(0.25, Convention::default(), 64, 8)?;
    /// assert!((lambda - 0.2).abs() < 1e-12); // 1 : 0.25 is 0.8 : 0.2
    /// # Ok::<(), lejepa_loss::Error>(())
    /// ```
    pub fn convert(self, lambda: f64, to: Convention, dim: usize, views: usize) -> Result<f64> {
        let (prediction, sigreg) = self.weighting.weights(lambda)?;
        let of_paper = |convention: Convention| {
            let prediction = match convention.prediction {
                PredictionReduction::Mean => 1.,
                PredictionReduction::Sum => dim as f64,
            };
            let sigreg = match convention.views {
                ViewPooling::Each => 1.,
                ViewPooling::Pooled => views as f64,
            };
            (prediction, sigreg)
        };
        let (from_prediction, from_sigreg) = of_paper(self);
        let (to_prediction, to_sigreg) = of_paper(to);
        let prediction = prediction * from_prediction / to_prediction;
        let sigreg = sigreg * from_sigreg / to_sigreg;
        match to.weighting {
            Weighting::Convex => Ok(sigreg / (prediction + sigreg)),
            Weighting::Additive if prediction > 0. => Ok(sigreg / prediction),
            Weighting::Additive => Err(Error::Setting {
                field: "lambda",
                expected: "below 1: without prediction no additive lambda is the same",
                got: lambda.to_string(),
            }),
        }
    }
}
