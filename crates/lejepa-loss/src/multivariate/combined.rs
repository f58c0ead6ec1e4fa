//! The real part of the empirical characteristic function times the moment generating function, whose
//! product is 1 for the standard normal.
//!
//! ```text
//! U(t) = sqrt(N) (R(t) M(t) - 1),   R(t) = mean_j cos(t . y_j),   M(t) = mean_j exp(t . y_j)
//!
//! T_gamma          = integral U(t)^2 exp(-gamma |t|^2) dt
//! T_gamma (simple) = integral U(t)   exp(-gamma |t|^2) dt
//! ```
//!
//! Their closed forms are those of the paper: sums over all pairs of pairs, and over all pairs, of
//! `exp((|a|^2 - |b|^2) / (4 gamma)) cos(a . b / (2 gamma))`.

use std::f64::consts::PI;

use candle_core::Tensor;
use rayon::prelude::*;

use super::check_above;
use super::points::{Pair, Points};
use crate::{Error, Result};

/// The most samples that [`combined`] takes; they have 68 million pairs of pairs, a matter of seconds.
pub const COMBINED_MOST_SAMPLES: usize = 128;

/// The statistic of the product's squared distance from 1, with `gamma > 0`.
///
/// Takes `O(N^4)` time, and so at most [`COMBINED_MOST_SAMPLES`] samples.
///
/// # Shapes
/// - `samples`: `(samples, dim)`
pub fn combined(samples: &Tensor, gamma: f64) -> Result<f64> {
    check_above("gamma", 0., "a positive number", gamma)?;
    let points = Points::new("combined", samples)?;
    if points.count > COMBINED_MOST_SAMPLES {
        let (most, got) = (COMBINED_MOST_SAMPLES, points.count);
        return Err(Error::TooManySamples { statistic: "combined", most, got });
    }
    let count = points.count as f64;
    let quadruples = sum_over_pairs_of_pairs(&points, gamma);
    let pairs = points.sum_over_pairs(|pair| kernel(pair, gamma));
    let volume = (PI / gamma).powf(0.5 * points.dim as f64);
    points.finite(volume * (quadruples / (2. * count.powi(3)) - 2. * pairs / count + count))
}

/// The statistic of the product's distance from 1, with `gamma > 0`; it may be negative.
///
/// # Shapes
/// - `samples`: `(samples, dim)`
pub fn combined_simplified(samples: &Tensor, gamma: f64) -> Result<f64> {
    check_above("gamma", 0., "a positive number", gamma)?;
    let points = Points::new("combined-simplified", samples)?;
    let count = points.count as f64;
    let pairs = points.sum_over_pairs(|pair| kernel(pair, gamma));
    let volume = (PI / gamma).powf(0.5 * points.dim as f64);
    points.finite(volume * count.sqrt() * (pairs / (count * count) - 1.))
}

/// Half of `exp((|a|^2 - |b|^2) / (4 gamma)) cos(a . b / (2 gamma))` and of the same with `a` and `b`
/// exchanged, which makes no difference to a sum over all pairs.
fn kernel(Pair { product, squares: [a, b] }: Pair, gamma: f64) -> f64 {
    ((a - b) / (4. * gamma)).cosh() * (product / (2. * gamma)).cos()
}

/// Two samples, the second not after the first.
struct TwoSamples {
    indices: [usize; 2],
    /// `|y_j + y_k|^2 / (4 gamma)`
    sum: f64,
    /// `|y_j - y_k|^2 / (4 gamma)`
    difference: f64,
    /// How many ordered pairs this stands for: nothing here depends on the order.
    weight: f64,
}

/// The sum over `j, k, l, m` of `exp((|a|^2 - |b|^2) / (4 gamma)) cos(a . b / (2 gamma))` for
/// `a = y_j + y_k` with `b = y_l - y_m` and with `b = y_l + y_m`.
fn sum_over_pairs_of_pairs(points: &Points, gamma: f64) -> f64 {
    let gram = points.gram(0..points.count);
    let two_samples = |j: usize, k: usize| {
        let pair = Pair { product: gram[(j, k)], squares: [points.squares[j], points.squares[k]] };
        TwoSamples {
            indices: [j, k],
            sum: pair.square_of_sum() / (4. * gamma),
            difference: pair.square_of_difference() / (4. * gamma),
            weight: if j == k { 1. } else { 2. },
        }
    };
    let pairs: Vec<TwoSamples> = (0..points.count)
        .flat_map(|j| (0..=j).map(move |k| (j, k)))
        .map(|(j, k)| two_samples(j, k))
        .collect();
    let sums: Vec<f64> = pairs
        .par_iter()
        .map(|a| {
            let [j, k] = a.indices;
            let products: Vec<f64> =
                (0..points.count).map(|l| (gram[(l, j)] + gram[(l, k)]) / (2. * gamma)).collect();
            let over_pairs = pairs.iter().map(|b| {
                let [with_l, with_m] = b.indices.map(|index| products[index]);
                let minus = (a.sum - b.difference).exp() * (with_l - with_m).cos();
                let plus = (a.sum - b.sum).exp() * (with_l + with_m).cos();
                b.weight * (minus + plus)
            });
            a.weight * over_pairs.sum::<f64>()
        })
        .collect();
    sums.iter().sum()
}
