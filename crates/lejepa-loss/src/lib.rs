//! Measures how far embeddings are from an isotropic Gaussian and from each other.
//!
//! LeJEPA trains an encoder so that views of one sample agree and samples fill the space like `N(0, I)`,
//! the distribution that serves unknown tasks best. For embeddings `z` of shape `(views, samples, dim)`,
//! the first views being global (paper, listings 1 and 2):
//!
//! ```text
//! prediction = mean of (centre - z)^2,        centre = mean over the global views of z
//! sigreg     = mean over views, mean over slices a of T(z a),            |a| = 1
//! loss       = (1 - lambda) * prediction + lambda * sigreg
//! ```
//!
//! A distribution is `N(0, I)` if and only if it is `N(0, 1)` along every direction, so a test `T` of
//! numbers, done on a few hundred random directions that are drawn anew at every step, does the work of
//! a test in hundreds of dimensions, in time and memory linear in the number of samples. The
//! paper's choice is the Epps-Pulley statistic, the distance of characteristic functions,
//!
//! ```text
//! EP(x) = N * integral |mean_n exp(i t x_n) - exp(-t^2/2)|^2 exp(-t^2/2) dt
//! ```
//!
//! whose gradient is bounded whatever the embeddings do. A perfect Gaussian scores about 1.06 (the
//! floor) for every `N`, a collapsed encoder 0.4 `N`.
//!
//! - [`LossConfig`] builds the whole loss, [`Sigreg`] is the regulariser alone, for any training code.
//! - [`EppsPulley`] and the other [`Statistic`]s score a slice; implement the trait to add one.
//! - [`Convention`] converts lambda from and to other implementations.
//! - [`gauge`] reads the health of finished embeddings, calibrated for any size; [`multivariate`] has the
//!   classical tests of whole embeddings.
//!
//! On the CPU, f32 and half precision run a fused operation with an analytic gradient that keeps nothing
//! per knot or projected sample; other devices run the same mathematics in tensor operations.
//!
//! A few steps that pull embeddings apart which start in one place:
//!
//! ```
//! use candle_core::{Device, Tensor, Var};
//! use lejepa_loss::LossConfig;
//!
//! let loss = LossConfig { slices: 64, ..LossConfig::default() }.build()?;
//! // 4 views, the first 2 of them global, of 32 samples with 8 dimensions.
//! let start = Tensor::randn(0f32, 0.1, (4, 32, 8), &Device::Cpu)?;
//! let embeddings = Var::from_tensor(&start)?;
//! let sigreg_at = |step| -> Result<f32, Box<dyn std::error::Error>> {
//!     let terms = loss.forward(embeddings.as_tensor(), 2, step)?;
//!     let gradients = terms.loss.backward()?;
//!     let gradient = gradients.get(&embeddings).ok_or("no gradient")?;
//!     embeddings.set(&(embeddings.as_tensor() - (gradient * 50.)?)?)?;
//!     Ok(terms.sigreg.to_scalar()?)
//! };
//! let first = sigreg_at(0)?;
//! let last = (1..20).try_fold(first, |_, step| sigreg_at(step))?;
//! assert!(last < first / 2.);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod convention;
mod directions;
mod error;
pub mod gauge;
mod lejepa;
pub mod multivariate;
mod normal;
mod sigreg;
mod statistic;

pub use convention::{Convention, PredictionReduction, ViewPooling, Weighting};
pub use directions::Directions;
pub use error::{Error, Result};
pub use lejepa::{EmbeddedViews, LejepaLoss, LossConfig, LossTerms};
pub use sigreg::{Reduction, Sigreg};
pub use statistic::{
    AndersonDarling, Covariance, CramerVonMises, EppsPulley, ExtendedJarqueBera, JarqueBera, Moments,
    OrderStatistics, ShapiroWilk, Statistic, StatisticConfig, VicregLimit, Watson,
};
