//! Batch normalisation of features: `y = (x - mean) / sqrt(var + eps) * weight + bias` per column.

use candle_core::{Tensor, Var};

use crate::{Error, Initialisation, Pass, Result, Scope};

/// Batch normalisation of `(samples, dim)` features with PyTorch's conventions.
#[derive(Debug, Clone)]
pub struct BatchNorm {
    weight: Tensor,
    bias: Tensor,
    running_mean: Var,
    running_var: Var,
}

impl BatchNorm {
    const EPSILON: f64 = 1e-5;
    const MOMENTUM: f64 = 0.1;

    /// Starts with unit scale, no shift and standard statistics.
    pub fn new(dim: usize, mut scope: Scope<'_>) -> Result<Self> {
        Ok(Self {
            weight: scope.parameter("weight", dim, Initialisation::Ones)?,
            bias: scope.parameter("bias", dim, Initialisation::Zeros)?,
            running_mean: scope.buffer("running_mean", dim, Initialisation::Zeros)?,
            running_var: scope.buffer("running_var", dim, Initialisation::Ones)?,
        })
    }

    /// # Shapes
    /// - `xs` and result: `(samples, dim)`
    pub fn forward(&self, xs: &Tensor, pass: &Pass) -> Result<Tensor> {
        let (mean, variance) = if pass.is_training() {
            self.batch_statistics(xs, pass)?
        } else {
            (self.running_mean.as_tensor().clone(), self.running_var.as_tensor().clone())
        };
        let scale = ((variance + Self::EPSILON)?.sqrt()?.recip()? * &self.weight)?;
        Ok(xs.broadcast_sub(&mean)?.broadcast_mul(&scale)?.broadcast_add(&self.bias)?)
    }

    /// Mean and biased variance of the batch; the running variance takes the unbiased one.
    fn batch_statistics(&self, xs: &Tensor, pass: &Pass) -> Result<(Tensor, Tensor)> {
        let (samples, _dim) = xs.dims2()?;
        if samples < 2 {
            return Err(Error::Setting {
                field: "batch",
                expected: "at least 2 samples for batch normalisation".into(),
                got: samples.to_string(),
            });
        }
        let mean = xs.mean(0)?;
        let variance = xs.broadcast_sub(&mean)?.sqr()?.mean(0)?;
        let unbiased = (variance.detach() * (samples as f64 / (samples as f64 - 1.)))?;
        if pass.is_tracking() {
            follow(&self.running_mean, &mean.detach())?;
            follow(&self.running_var, &unbiased)?;
        }
        Ok((mean, variance))
    }
}

fn follow(running: &Var, batch: &Tensor) -> Result<()> {
    let kept = (running.as_tensor() * (1. - BatchNorm::MOMENTUM))?;
    Ok(running.set(&(kept + (batch * BatchNorm::MOMENTUM)?)?)?)
}
