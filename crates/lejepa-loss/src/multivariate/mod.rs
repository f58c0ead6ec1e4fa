//! Tests of whole embeddings against the standard normal, without slices (paper, appendix on
//! multivariate statistics), for diagnosis.
//!
//! Each compares all samples with all, in `O(N^2 dim)` time (but for [`combined`]), which is why the
//! loss does without them. They are written for embeddings `y` of shape `(samples, dim)` as they come:
//! neither mean nor covariance is taken out, because these are to be 0 and the identity as well. All
//! compute in f64 whatever the tensor's precision is.
//!
//! | function | compares | paper |
//! |---|---|---|
//! | [`bhep`], [`henze_zirkler`] | characteristic functions | `BHEP`, `HZ` |
//! | [`generating`] | moment generating functions | `T_{n,beta}` |
//! | [`combined`], [`combined_simplified`] | the product of both with 1 | `T_{n,gamma}` and its simplified version |
//! | [`derivative`] | the generating function with its derivative | `HV_{n,gamma}` |
//! | [`mardia_skewness`], [`mori_skewness`] | third moments with 0 | `b_{1,d}` and its variant |
//! | [`mardia_kurtosis`] | fourth moments with `dim (dim + 2)` | `b_{2,d}` |
//!
//! The weights `exp(-gamma |t|^2)` have the mass `(pi / gamma)^(dim/2)`: in many dimensions only values
//! of `gamma` (or `beta`) near `pi` keep a statistic within f64's range.
//!
//! ```
//! use candle_core::{Device, Tensor};
//! use lejepa_loss::multivariate;
//!
//! let embeddings = Tensor::randn(0f32, 1., (64, 8), &Device::Cpu)?;
//! let collapsed = embeddings.zeros_like()?;
//! assert!(multivariate::henze_zirkler(&embeddings)? < multivariate::henze_zirkler(&collapsed)?);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod characteristic;
mod combined;
mod generating;
mod moments;
mod points;

pub use characteristic::{bhep, henze_zirkler};
pub use combined::{COMBINED_MOST_SAMPLES, combined, combined_simplified};
pub use generating::{derivative, generating};
pub use moments::{mardia_kurtosis, mardia_skewness, mori_skewness};

use crate::{Error, Result};

/// Refuses what is not a number above a bound.
fn check_above(field: &'static str, bound: f64, expected: &'static str, got: f64) -> Result<()> {
    if got.is_finite() && got > bound {
        return Ok(());
    }
    Err(Error::Setting { field, expected, got: got.to_string() })
}
