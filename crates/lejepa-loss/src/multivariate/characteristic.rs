//! The empirical characteristic function against that of the standard normal, integrated exactly.
//!
//! ```text
//! BHEP = N integral |ecf(t) - exp(-|t|^2/2)|^2 w(t) dt,   w the density of N(0, beta^2 I)
//!      = 1/N sum_{jk} exp(-beta^2 |y_j - y_k|^2 / 2)
//!        - 2 (1 + beta^2)^(-dim/2) sum_j exp(-beta^2 |y_j|^2 / (2 + 2 beta^2))
//!        + N (1 + 2 beta^2)^(-dim/2)
//! ```
//!
//! The paper's closed form is right. Its weight lacks the `beta^2` of the exponent and its normal
//! characteristic function the square.

use candle_core::Tensor;

use super::check_above;
use super::points::Points;
use crate::Result;

/// The statistic of Baringhaus, Henze, Epps and Pulley, with `beta > 0`.
///
/// # Shapes
/// - `samples`: `(samples, dim)`
pub fn bhep(samples: &Tensor, beta: f64) -> Result<f64> {
    check_above("beta", 0., "a positive number", beta)?;
    of(&Points::new("bhep", samples)?, beta)
}

/// [`bhep`] with the `beta` of Henze and Zirkler: `((2 dim + 1) N / 4)^(1 / (dim + 4)) / sqrt(2)`.
///
/// # Shapes
/// - `samples`: `(samples, dim)`
pub fn henze_zirkler(samples: &Tensor) -> Result<f64> {
    let points = Points::new("henze-zirkler", samples)?;
    let (count, dim) = (points.count as f64, points.dim as f64);
    let beta = ((2. * dim + 1.) * count / 4.).powf(1. / (dim + 4.)) / std::f64::consts::SQRT_2;
    of(&points, beta)
}

fn of(points: &Points, beta: f64) -> Result<f64> {
    let (count, half_dim, square) = (points.count as f64, points.dim as f64 / 2., beta * beta);
    let pairs = points.centred().sum_over_pairs(|pair| (-0.5 * square * pair.square_of_difference()).exp());
    let singles: f64 = points.squares.iter().map(|norm| (-0.5 * norm * square / (1. + square)).exp()).sum();
    let target = count * (1. + 2. * square).powf(-half_dim);
    points.finite(pairs / count - 2. * (1. + square).powf(-half_dim) * singles + target)
}
