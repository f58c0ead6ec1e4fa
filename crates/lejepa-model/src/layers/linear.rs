//! `y = x W^T + b` for every row, in the type of `x`.

use candle_core::Tensor;
use lejepa_kernels::{LinearActivation, linear};

use crate::{Initialisation, Result, Scope};

/// A linear layer with weight `(outputs, inputs)`, or `(outputs, inputs, 1, 1)` as a 1x1 convolution has it.
#[derive(Debug, Clone)]
pub struct Linear {
    weight: Tensor,
    bias: Option<Tensor>,
}

impl Linear {
    /// With timm's initialisation inside transformers: truncated normal weights, zero bias.
    pub fn new(inputs: usize, outputs: usize, mut scope: Scope<'_>) -> Result<Self> {
        let weight = scope.parameter("weight", (outputs, inputs), Initialisation::TruncatedNormal(0.02))?;
        let bias = Some(scope.parameter("bias", outputs, Initialisation::Zeros)?);
        Ok(Self { weight, bias })
    }

    /// As [`new`](Self::new), with the weight in the shape of a 1x1 convolution.
    pub fn pointwise(inputs: usize, outputs: usize, mut scope: Scope<'_>) -> Result<Self> {
        let first = Initialisation::TruncatedNormal(0.02);
        let weight = scope.parameter("weight", (outputs, inputs, 1, 1), first)?;
        let bias = Some(scope.parameter("bias", outputs, Initialisation::Zeros)?);
        Ok(Self { weight, bias })
    }

    /// With PyTorch's default initialisation.
    pub fn with_fan_in(inputs: usize, outputs: usize, mut scope: Scope<'_>) -> Result<Self> {
        let weight = scope.parameter("weight", (outputs, inputs), Initialisation::FanIn(inputs))?;
        let bias = Some(scope.parameter("bias", outputs, Initialisation::FanIn(inputs))?);
        Ok(Self { weight, bias })
    }

    /// With PyTorch's default initialisation and no bias, for use before a normalisation that would
    /// subtract it.
    pub fn without_bias(inputs: usize, outputs: usize, mut scope: Scope<'_>) -> Result<Self> {
        let weight = scope.parameter("weight", (outputs, inputs), Initialisation::FanIn(inputs))?;
        Ok(Self { weight, bias: None })
    }

    /// # Shapes
    /// - `xs`: `(rows, inputs)`
    /// - result: `(rows, outputs)`
    pub fn forward(&self, xs: &Tensor) -> Result<Tensor> {
        self.forward_and(xs, LinearActivation::None)
    }

    /// The same with the exact GELU behind it.
    pub fn forward_gelu(&self, xs: &Tensor) -> Result<Tensor> {
        self.forward_and(xs, LinearActivation::Gelu)
    }

    fn forward_and(&self, xs: &Tensor, activation: LinearActivation) -> Result<Tensor> {
        let weight = self.weight.flatten_from(1)?.to_dtype(xs.dtype())?; // (outputs, inputs)
        let bias = self.bias.as_ref().map(|bias| bias.to_dtype(xs.dtype())).transpose()?;
        Ok(linear(xs, &weight, bias.as_ref(), activation)?)
    }

    /// Weight, and bias if there is one.
    pub(crate) fn parameters(&self) -> (&Tensor, Option<&Tensor>) {
        (&self.weight, self.bias.as_ref())
    }
}
