//! Measures how far embeddings are from an isotropic Gaussian and from each other.
//!
//! The LeJEPA objective for `V` views of `N` samples with embeddings `z` of shape `(V, N, K)`,
//! the first `Vg` views being global (paper, listings 1 and 2):
//!
//! ```text
//! centre     = mean over the global views of z                      (N, K)
//! prediction = mean of (centre - z)^2
//! sigreg     = mean over views, mean over slices of EP(z_v . slice)
//! loss       = (1 - lambda) * prediction + lambda * sigreg
//! ```
//!
//! [`EppsPulley`] is the statistic of one slice, [`Sigreg`] averages it over random directions and
//! [`LejepaLoss`] adds the prediction term. Gradients flow through everything.
//!
//! ```
//! use candle_core::{Device, Tensor, Var};
//! use lejepa_loss::LossConfig;
//!
//! let loss = LossConfig::default().build()?;
//! // 4 views, the first 2 of them global, of 32 samples with 8 dimensions.
//! let embeddings = Var::from_tensor(&Tensor::randn(0f32, 1., (4, 32, 8), &Device::Cpu)?)?;
//! let terms = loss.forward(embeddings.as_tensor(), 2, 0)?;
//! let gradients = terms.loss.backward()?;
//! assert_eq!(gradients.get(&embeddings).unwrap().dims(), [4, 32, 8]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod directions;
mod error;
pub mod gauge;
mod lejepa;
mod sigreg;
mod statistic;

pub use directions::gaussian_directions;
pub use error::{Error, Result};
pub use lejepa::{LejepaLoss, LossConfig, LossTerms, PredictionReduction};
pub use sigreg::Sigreg;
pub use statistic::{EppsPulley, Statistic};
