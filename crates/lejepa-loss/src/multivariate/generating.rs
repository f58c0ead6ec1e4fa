//! The empirical moment generating function `M(t) = mean_j exp(t . y_j)` against that of the standard
//! normal, and against the differential equation `M'(t) = t M(t)` that only the latter solves.
//!
//! ```text
//! T_beta   = N integral (M(t) - exp(|t|^2/2))^2 exp(-beta |t|^2) dt
//!          = 1/N (pi / beta)^(dim/2) sum_{jk} exp(|y_j + y_k|^2 / (4 beta))
//!            - 2 (pi / (beta - 1/2))^(dim/2) sum_j exp(|y_j|^2 / (4 beta - 2))
//!            + N (pi / (beta - 1))^(dim/2)
//! HV_gamma = N integral |M'(t) - t M(t)|^2 exp(-gamma |t|^2) dt
//!          = 1/N (pi / gamma)^(dim/2) sum_{jk} exp(s / (4 gamma))
//!            (y_j . y_k + dim / (2 gamma) - s / (2 gamma) + s / (4 gamma^2)),   s = |y_j + y_k|^2
//! ```
//!
//! Powers of pi overflow in a thousand dimensions where the product with the exponential does not, so
//! they are part of the exponent.

use std::f64::consts::PI;

use candle_core::Tensor;

use super::check_above;
use super::points::Points;
use crate::Result;

/// The statistic of the moment generating function, with `beta > 2`.
///
/// # Shapes
/// - `samples`: `(samples, dim)`
pub fn generating(samples: &Tensor, beta: f64) -> Result<f64> {
    // The integral needs 1; with 2 or less the expectation is infinite for normal samples.
    check_above("beta", 2., "a number above 2", beta)?;
    let points = Points::new("generating", samples)?;
    let count = points.count as f64;
    let log_volume = |rate: f64| 0.5 * points.dim as f64 * (PI / rate).ln();
    let (of_pair, of_single) = (log_volume(beta), log_volume(beta - 0.5));
    let pairs = points.sum_over_pairs(|pair| (of_pair + pair.square_of_sum() / (4. * beta)).exp());
    let singles: f64 = points.squares.iter().map(|norm| (of_single + norm / (4. * beta - 2.)).exp()).sum();
    points.finite(pairs / count - 2. * singles + count * log_volume(beta - 1.).exp())
}

/// The statistic of the moment generating function's derivative, with `gamma > 0`.
///
/// For normal samples its expectation is finite with `gamma > 2`.
///
/// # Shapes
/// - `samples`: `(samples, dim)`
pub fn derivative(samples: &Tensor, gamma: f64) -> Result<f64> {
    check_above("gamma", 0., "a positive number", gamma)?;
    let points = Points::new("derivative", samples)?;
    let dim = points.dim as f64;
    let log_volume = 0.5 * dim * (PI / gamma).ln();
    let pairs = points.sum_over_pairs(|pair| {
        let square = pair.square_of_sum();
        let factor = pair.product + (0.5 * dim - 0.5 * square + 0.25 * square / gamma) / gamma;
        (log_volume + 0.25 * square / gamma).exp() * factor
    });
    points.finite(pairs / points.count as f64)
}
