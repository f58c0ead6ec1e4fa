//! Batch normalisation in evaluation, as a part of the layer before it:
//! `y = s x + (bias - s mean)` with `s = weight / sqrt(variance + epsilon)`.

use candle_core::Tensor;
use lejepa_model::layers::BatchNorm;

use crate::Result;
use crate::graph::Graph;

/// `y = scale x + shift` per channel.
pub(crate) struct ScaleAndShift {
    /// `(channels)`.
    pub(crate) scale: Tensor,
    /// `(channels)`.
    pub(crate) shift: Tensor,
}

impl ScaleAndShift {
    /// Of the batch normalisation of this name.
    pub(crate) fn named(graph: &Graph<'_>, norm: &str) -> Result<Self> {
        let part = |part: &str| graph.weight(&format!("{norm}.{part}"));
        let scale = (part("weight")? / (part("running_var")? + BatchNorm::EPSILON)?.sqrt()?)?;
        let shift = (part("bias")? - (part("running_mean")? * &scale)?)?;
        Ok(Self { scale, shift })
    }

    /// The weight of the layer before, scaled.
    ///
    /// # Shapes
    /// - `weight` and result: `(channels, ..)`
    pub(crate) fn scaled(&self, weight: &Tensor) -> Result<Tensor> {
        let rows = weight.flatten_from(1)?;
        Ok(rows.broadcast_mul(&self.scale.unsqueeze(1)?)?.reshape(weight.shape())?)
    }
}
