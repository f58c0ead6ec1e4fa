//! The projector: an MLP with batch normalisation between the encoder and the loss.
//!
//! ```text
//! (linear, batch norm, relu) for every hidden layer, then linear
//! ```
//!
//! Hidden linear layers have no bias: the batch normalisation behind them would subtract it.

use candle_core::Tensor;
use lejepa_kernels::profile::part;
use serde::{Deserialize, Serialize};

use crate::layers::{BatchNorm, Linear};
use crate::{Error, Pass, Result, Scope};

/// The `[projector]` table of a recipe.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ProjectorConfig {
    /// Widths of the hidden layers.
    pub hidden: Vec<usize>,
    /// Width of the embedding that the loss sees.
    pub dim: usize,
}

impl Default for ProjectorConfig {
    fn default() -> Self {
        Self { hidden: vec![2048, 2048], dim: 64 }
    }
}

impl ProjectorConfig {
    /// The widest layer; more is a slip of the finger, and no machine has the memory.
    pub const MAX_WIDTH: usize = 1 << 16;

    /// Refuses layers without width, and those that nothing could hold.
    pub fn check(&self) -> Result<()> {
        check_widths("projector.dim", &[self.dim], self.dim.to_string())?;
        check_widths("projector.hidden", &self.hidden, format!("{:?}", self.hidden))
    }
}

/// Refuses widths of layers that are out of range.
pub fn check_widths(field: &'static str, widths: &[usize], got: String) -> Result<()> {
    match widths.iter().all(|width| (1..=ProjectorConfig::MAX_WIDTH).contains(width)) {
        true => Ok(()),
        false => Err(Error::Setting { field, expected: "between 1 and 65536".into(), got }),
    }
}

/// An MLP with batch normalisation and ReLU.
#[derive(Debug, Clone)]
pub struct Projector {
    hidden: Vec<(Linear, BatchNorm)>,
    output: Linear,
}

impl Projector {
    /// From features of `inputs` dimensions.
    pub fn new(inputs: usize, config: &ProjectorConfig, mut scope: Scope<'_>) -> Result<Self> {
        config.check()?;
        let mut hidden = Vec::with_capacity(config.hidden.len());
        let mut width = inputs;
        for (index, &next) in config.hidden.iter().enumerate() {
            let mut scope = scope.enter(format!("layers.{index}"));
            let linear = Linear::without_bias(width, next, scope.enter("linear"))?;
            hidden.push((linear, BatchNorm::new(next, scope.enter("norm"))?));
            width = next;
        }
        let output = Linear::with_fan_in(width, config.dim, scope.enter("output"))?;
        Ok(Self { hidden, output })
    }

    /// # Shapes
    /// - `features`: `(samples, inputs)`
    /// - result: `(samples, dim)`
    pub fn forward(&self, features: &Tensor, pass: &Pass) -> Result<Tensor> {
        part("projector", features, |features| {
            let mut xs = features.clone();
            for (index, (linear, norm)) in self.hidden.iter().enumerate() {
                xs = norm.forward_relu(&linear.forward(&xs)?, pass)?;
                pass.see(format_args!("layers.{index}"), &xs)?;
            }
            self.output.forward(&xs)
        })
    }
}
