//! Third and fourth moments of several dimensions.
//!
//! ```text
//! Mardia's skewness = mean_{jk} (y_j . y_k)^3
//! Móri's skewness   = mean_{jk} (y_j . y_k) |y_j|^2 |y_k|^2 = |mean_j |y_j|^2 y_j|^2
//! Mardia's kurtosis = mean_j |y_j|^4
//! ```

use candle_core::Tensor;

use super::points::Points;
use crate::Result;

/// Mardia's skewness, 0 for a normal distribution.
///
/// # Shapes
/// - `samples`: `(samples, dim)`
pub fn mardia_skewness(samples: &Tensor) -> Result<f64> {
    let points = Points::new("mardia-skewness", samples)?;
    let sum = points.sum_over_pairs(|pair| pair.product.powi(3));
    points.finite(sum / (points.count as f64).powi(2))
}

/// The skewness of Móri, Rohatgi and Székely, 0 for a normal distribution.
///
/// # Shapes
/// - `samples`: `(samples, dim)`
pub fn mori_skewness(samples: &Tensor) -> Result<f64> {
    let points = Points::new("mori-skewness", samples)?;
    let sum = points.sum_over_pairs(|pair| pair.product * pair.squares[0] * pair.squares[1]);
    points.finite(sum / (points.count as f64).powi(2))
}

/// Mardia's kurtosis, `dim (dim + 2)` for the standard normal.
///
/// # Shapes
/// - `samples`: `(samples, dim)`
pub fn mardia_kurtosis(samples: &Tensor) -> Result<f64> {
    let points = Points::new("mardia-kurtosis", samples)?;
    let sum: f64 = points.squares.iter().map(|square| square * square).sum();
    points.finite(sum / points.count as f64)
}
