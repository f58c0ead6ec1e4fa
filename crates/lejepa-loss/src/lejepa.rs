//! The LeJEPA objective: prediction plus SIGReg (paper, listing 2).

use candle_core::{D, Tensor};
use serde::{Deserialize, Serialize};

use crate::{EppsPulley, Error, Result, Sigreg};

/// The settings of the loss, as they are written in a recipe.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LossConfig {
    /// Weight of SIGReg; `1 - lambda` weighs the prediction.
    pub lambda: f64,
    /// Quadrature points over `[-t_max, t_max]`, an odd number.
    pub knots: usize,
    /// Where the quadrature ends.
    pub t_max: f64,
    /// Random directions per step.
    pub slices: usize,
    /// How squared differences are reduced over dimensions.
    pub prediction: PredictionReduction,
}

impl Default for LossConfig {
    fn default() -> Self {
        Self { lambda: 0.05, knots: 17, t_max: 5., slices: 1024, prediction: PredictionReduction::Mean }
    }
}

impl LossConfig {
    /// Checks the settings and makes the loss.
    pub fn build(&self) -> Result<LejepaLoss> {
        if !(0. ..=1.).contains(&self.lambda) {
            return Err(Error::Setting {
                field: "lambda",
                expected: "between 0 and 1",
                got: self.lambda.to_string(),
            });
        }
        if self.slices == 0 {
            return Err(Error::Setting { field: "slices", expected: "at least 1", got: "0".into() });
        }
        let sigreg = Sigreg::new(EppsPulley::new(self.t_max, self.knots)?, self.slices);
        Ok(LejepaLoss { lambda: self.lambda, prediction: self.prediction, sigreg })
    }
}

/// How the squared difference between an embedding and its centre is reduced over dimensions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PredictionReduction {
    /// The mean, as the paper's listing has it.
    Mean,
    /// The sum, as the paper's equation has it.
    Sum,
}

/// The LeJEPA loss, made by [`LossConfig::build`].
#[derive(Debug, Clone)]
pub struct LejepaLoss {
    lambda: f64,
    prediction: PredictionReduction,
    sigreg: Sigreg,
}

/// The loss and its two parts, all scalars.
#[derive(Debug, Clone)]
pub struct LossTerms {
    /// `(1 - lambda) * prediction + lambda * sigreg`
    pub loss: Tensor,
    /// How far the views of a sample are from their centre.
    pub prediction: Tensor,
    /// How far each view's embeddings are from an isotropic Gaussian.
    pub sigreg: Tensor,
}

impl LejepaLoss {
    /// The loss at a global step, which draws the slices.
    ///
    /// # Shapes
    /// - `embeddings`: `(views, samples, dim)`, the first `global_views` of them global
    pub fn forward(&self, embeddings: &Tensor, global_views: usize, step: u64) -> Result<LossTerms> {
        let sigreg = self.sigreg.forward(embeddings, step)?;
        self.combine(embeddings, global_views, sigreg)
    }

    /// The loss along given `(dim, slices)` directions.
    pub fn forward_along(
        &self,
        embeddings: &Tensor,
        global_views: usize,
        directions: &Tensor,
    ) -> Result<LossTerms> {
        let sigreg = self.sigreg.forward_along(embeddings, directions)?;
        self.combine(embeddings, global_views, sigreg)
    }

    /// The value of the `sigreg` term for a perfect isotropic Gaussian.
    pub fn sigreg_floor(&self, samples: usize) -> Option<f64> {
        self.sigreg.floor(samples)
    }

    fn combine(&self, embeddings: &Tensor, global_views: usize, sigreg: Tensor) -> Result<LossTerms> {
        let prediction = self.prediction_term(embeddings, global_views)?;
        let loss = ((&prediction * (1. - self.lambda))? + (&sigreg * self.lambda)?)?;
        Ok(LossTerms { loss, prediction, sigreg })
    }

    fn prediction_term(&self, embeddings: &Tensor, global_views: usize) -> Result<Tensor> {
        if !matches!(embeddings.dims(), [views, _, _] if (1..=*views).contains(&global_views)) {
            return Err(Error::Shape {
                expected: format!("(views, samples, dim) with at least {} views", global_views.max(1)),
                got: embeddings.dims().to_vec(),
            });
        }
        let centre = embeddings.narrow(0, 0, global_views)?.mean_keepdim(0)?; // (1, samples, dim)
        let squared = embeddings.broadcast_sub(&centre)?.sqr()?;
        Ok(match self.prediction {
            PredictionReduction::Mean => squared.mean_all()?,
            PredictionReduction::Sum => squared.sum(D::Minus1)?.mean_all()?,
        })
    }
}
