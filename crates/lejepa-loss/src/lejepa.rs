//! The LeJEPA objective: prediction plus SIGReg (paper, listing 2).

use candle_core::{D, Tensor};
use serde::{Deserialize, Serialize};

use crate::{
    Convention, Directions, Error, PredictionReduction, Reduction, Result, Sigreg, StatisticConfig,
    ViewPooling, Weighting,
};

/// More slices are a slip of the finger.
const MAX_SLICES: usize = 1 << 16;

/// The settings of the loss, as they are written in a recipe.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LossConfig {
    /// Weight of SIGReg, by the convention of `weighting`.
    pub lambda: f64,
    /// How lambda weighs the terms.
    pub weighting: Weighting,
    /// How squared differences are reduced over dimensions.
    pub prediction: PredictionReduction,
    /// What SIGReg takes for one sample of the embeddings.
    pub views: ViewPooling,
    /// Directions per step.
    pub slices: usize,
    /// Where the directions come from.
    pub directions: Directions,
    /// How the slices' statistics become one number.
    pub reduction: Reduction,
    /// The test that is done on every slice.
    pub statistic: StatisticConfig,
}

impl Default for LossConfig {
    fn default() -> Self {
        Self {
            lambda: 0.05,
            weighting: Weighting::default(),
            prediction: PredictionReduction::default(),
            views: ViewPooling::default(),
            slices: 1024,
            directions: Directions::default(),
            reduction: Reduction::default(),
            statistic: StatisticConfig::default(),
        }
    }
}

impl LossConfig {
    /// Checks the settings and makes the loss.
    pub fn build(&self) -> Result<LejepaLoss> {
        let weights = self.weighting.weights(self.lambda)?;
        if !(1..=MAX_SLICES).contains(&self.slices) {
            let expected = "between 1 and 65536";
            return Err(Error::Setting { field: "slices", expected, got: self.slices.to_string() });
        }
        let sigreg = Sigreg::of(self.statistic.build()?, self.slices)
            .with_directions(self.directions)
            .with_reduction(self.reduction);
        Ok(LejepaLoss { weights, prediction: self.prediction, views: self.views, sigreg })
    }

    /// How the terms are put together, for [`Convention::convert`].
    pub fn convention(&self) -> Convention {
        Convention { prediction: self.prediction, views: self.views, weighting: self.weighting }
    }
}

/// The LeJEPA loss, made by [`LossConfig::build`].
#[derive(Debug, Clone)]
pub struct LejepaLoss {
    /// Of prediction and SIGReg.
    weights: (f64, f64),
    prediction: PredictionReduction,
    views: ViewPooling,
    sigreg: Sigreg,
}

/// The loss and its two parts, all scalars.
#[derive(Debug, Clone)]
pub struct LossTerms {
    /// The weighted sum of the others.
    pub loss: Tensor,
    /// How far the views of a sample are from their centre.
    pub prediction: Tensor,
    /// How far each view's embeddings are from an isotropic Gaussian.
    pub sigreg: Tensor,
}

/// The views of a batch as the loss sees them.
#[derive(Debug, Clone, Copy)]
pub struct EmbeddedViews<'a> {
    /// `(views, samples, dim)`, the global views first.
    pub embeddings: &'a Tensor,
    /// How many of the views the centres are the mean of.
    pub global_views: usize,
    /// What a predictor makes of the embeddings, `(views, samples, dim)`: compared with the centres in
    /// their place.
    pub predictions: Option<&'a Tensor>,
    /// Centres from elsewhere, such as an averaged encoder: `(samples, dim)`.
    pub centres: Option<&'a Tensor>,
}

impl LejepaLoss {
    /// The loss at a global step, which draws the slices.
    ///
    /// # Shapes
    /// - `embeddings`: `(views, samples, dim)`, the first `global_views` of them global
    pub fn forward(&self, embeddings: &Tensor, global_views: usize, step: u64) -> Result<LossTerms> {
        let views = EmbeddedViews { embeddings, global_views, predictions: None, centres: None };
        self.forward_views(&views, step)
    }

    /// The loss at a global step with a predictor or centres from elsewhere.
    pub fn forward_views(&self, views: &EmbeddedViews<'_>, step: u64) -> Result<LossTerms> {
        let sigreg = self.sigreg.forward(&self.sigreg_input(views.embeddings)?, step)?;
        self.combine(views, sigreg)
    }

    /// The loss along given `(dim, slices)` directions.
    pub fn forward_along(
        &self,
        embeddings: &Tensor,
        global_views: usize,
        directions: &Tensor,
    ) -> Result<LossTerms> {
        let views = EmbeddedViews { embeddings, global_views, predictions: None, centres: None };
        let sigreg = self.sigreg.forward_along(&self.sigreg_input(embeddings)?, directions)?;
        self.combine(&views, sigreg)
    }

    /// The value of the `sigreg` term for so many views of so many samples, all of them drawn from an isotropic
    /// Gaussian, if it is known. Pooled views are one sample of that many more rows.
    ///
    /// Pooled views that agree, as they should in the end, are not drawn one by one: their term stays above.
    pub fn sigreg_floor(&self, views: usize, samples: usize) -> Option<f64> {
        self.sigreg.floor(match self.views {
            ViewPooling::Each => samples,
            ViewPooling::Pooled => views * samples,
        })
    }

    fn sigreg_input(&self, embeddings: &Tensor) -> Result<Tensor> {
        Ok(match self.views {
            ViewPooling::Each => embeddings.clone(),
            ViewPooling::Pooled => embeddings.flatten_to(D::Minus2)?, // (views * samples, dim)
        })
    }

    fn combine(&self, views: &EmbeddedViews<'_>, sigreg: Tensor) -> Result<LossTerms> {
        let prediction = self.prediction_term(views)?;
        let (of_prediction, of_sigreg) = self.weights;
        let loss = ((&prediction * of_prediction)? + (&sigreg * of_sigreg)?)?;
        Ok(LossTerms { loss, prediction, sigreg })
    }

    fn prediction_term(&self, views: &EmbeddedViews<'_>) -> Result<Tensor> {
        let EmbeddedViews { embeddings, global_views, predictions, centres } = *views;
        if !matches!(embeddings.dims(), [views, _, _] if (1..=*views).contains(&global_views)) {
            return Err(Error::Shape {
                expected: format!("(views, samples, dim) with at least {} views", global_views.max(1)),
                got: embeddings.dims().to_vec(),
            });
        }
        let centre = match centres {
            Some(centres) => centres.unsqueeze(0)?,
            None => embeddings.narrow(0, 0, global_views)?.mean_keepdim(0)?,
        }; // (1, samples, dim)
        let squared = predictions.unwrap_or(embeddings).broadcast_sub(&centre)?.sqr()?;
        Ok(match self.prediction {
            PredictionReduction::Mean => squared.mean_all()?,
            PredictionReduction::Sum => squared.sum(D::Minus1)?.mean_all()?,
        })
    }
}
