//! The Shapiro-Wilk statistic and its approximations (paper, appendix on the Shapiro-Wilk test).
//!
//! ```text
//! 1 - W,   W = (a . y)^2 / sum_i (y_i - mean)^2,   a = V^-1 m / |V^-1 m|
//! ```
//!
//! of the samples `y` in ascending order, with the expected values `m` and the covariance `V` of the
//! order statistics of a standard normal. The paper leaves the square of the numerator out, without
//! which W is not free of the scale.
//!
//! Like every correlation W sees no mean and no variance. Equal samples have no correlation with
//! anything: their W counts as 0, with gradient 0.

use std::f64::consts::FRAC_PI_8;

use serde::{Deserialize, Serialize};

use super::Statistic;
use super::ascending::ascending;
use super::centred::Centred;
use crate::normal;

/// How the expected order statistics `m_i` are approximated: by the quantile of
/// `(i - alpha) / (n + 1 - 2 alpha)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OrderStatistics {
    /// Weisberg and Bingham: `alpha = 3/8`, elsewhere known as Blom's scores.
    #[default]
    WeisbergBingham,
    /// Elfving: `alpha = pi/8`.
    Elfving,
    /// `alpha = 0`, which the paper takes from Blom through Rahman and Govindarajulu.
    Blom,
}

/// How the covariance `V` of the order statistics is approximated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Covariance {
    /// By the identity: the statistic of Shapiro and Francia.
    #[default]
    Identity,
    /// By `p_i (1 - p_j) / ((n + 2) f(m_i) f(m_j))` for `i <= j`, with `p_i = i / (n + 1)`: that of
    /// Rahman and Govindarajulu. Its inverse is tridiagonal; the paper gives the inverse correctly and
    /// the covariance without the `1 -`.
    Asymptotic,
}

/// One minus the statistic W of Shapiro and Wilk.
#[derive(Debug, Clone, Copy, Default)]
pub struct ShapiroWilk {
    /// What is expected of the order statistics.
    pub order_statistics: OrderStatistics,
    /// What their covariance is taken to be.
    pub covariance: Covariance,
}

impl ShapiroWilk {
    /// The statistic W itself: from 0 to 1, where 1 is nearest to a normal distribution.
    pub fn w(&self, samples: &[f64]) -> f64 {
        Projection::new(self, samples).w()
    }

    /// The expected order statistics.
    fn expected(&self, samples: usize) -> Vec<f64> {
        let alpha = match self.order_statistics {
            OrderStatistics::WeisbergBingham => 0.375,
            OrderStatistics::Elfving => FRAC_PI_8,
            OrderStatistics::Blom => 0.,
        };
        let quantile =
            |rank: usize| normal::quantile((rank as f64 - alpha) / (samples as f64 + 1. - 2. * alpha));
        let mut expected = vec![0.; samples];
        // Mirrored, so that the coefficients sum to exactly 0 and a middle one is exactly 0.
        for rank in 1..=samples / 2 {
            expected[rank - 1] = quantile(rank);
            expected[samples - rank] = -expected[rank - 1];
        }
        expected
    }

    /// The coefficients `a`, of unit norm.
    fn coefficients(&self, samples: usize) -> Vec<f64> {
        let expected = self.expected(samples);
        let mut coefficients = match self.covariance {
            Covariance::Identity => expected,
            Covariance::Asymptotic => asymptotic_inverse_times(&expected),
        };
        let norm = coefficients.iter().map(|a| a * a).sum::<f64>().sqrt();
        coefficients.iter_mut().for_each(|a| *a /= norm);
        coefficients
    }
}

/// `V^-1 m` up to a factor: `f_i (2 f_i m_i - f_{i-1} m_{i-1} - f_{i+1} m_{i+1})`.
fn asymptotic_inverse_times(expected: &[f64]) -> Vec<f64> {
    let weighted = |m: f64| normal::density(m) * m;
    let neighbour = |index: Option<usize>| index.and_then(|i| expected.get(i)).map_or(0., |m| weighted(*m));
    let row = |(i, &m): (usize, &f64)| {
        let (below, above) = (neighbour(i.checked_sub(1)), neighbour(i.checked_add(1)));
        normal::density(m) * (2. * weighted(m) - below - above)
    };
    expected.iter().enumerate().map(row).collect()
}

/// A slice on its coefficients.
struct Projection {
    centred: Centred,
    /// The coefficient of each sample, in the slice's order.
    coefficients: Vec<f64>,
    /// `a . y`
    along: f64,
}

impl Projection {
    fn new(statistic: &ShapiroWilk, samples: &[f64]) -> Self {
        let centred = Centred::new(samples);
        let mut coefficients = vec![0.; samples.len()];
        for (at, coefficient) in ascending(samples).iter().zip(statistic.coefficients(samples.len())) {
            coefficients[at.index] = coefficient;
        }
        let along = coefficients.iter().zip(&centred.deviations).map(|(a, y)| a * y).sum();
        Self { centred, coefficients, along }
    }

    fn w(&self) -> f64 {
        if self.centred.squares == 0. { 0. } else { self.along * self.along / self.centred.squares }
    }
}

impl Statistic for ShapiroWilk {
    fn name(&self) -> &'static str {
        "shapiro-wilk"
    }

    fn value(&self, samples: &[f64]) -> f64 {
        1. - self.w(samples)
    }

    fn gradient(&self, samples: &[f64], gradient: &mut [f64]) {
        let projection = Projection::new(self, samples);
        let (squares, along) = (projection.centred.squares, projection.along);
        if squares == 0. {
            return gradient.fill(0.);
        }
        let pairs = projection.centred.deviations.iter().zip(&projection.coefficients);
        for (gradient, (deviation, coefficient)) in gradient.iter_mut().zip(pairs) {
            *gradient = 2. * along / squares * (along / squares * deviation - coefficient);
        }
    }

    /// Not known in closed form.
    fn floor(&self, _samples: usize) -> Option<f64> {
        None
    }

    fn least_samples(&self) -> usize {
        2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Products of a few dozen f64 of about 1.
    const TOLERANCE: f64 = 1e-12;

    #[test]
    fn the_tridiagonal_matrix_is_the_inverse_of_the_covariance() {
        let statistic =
            ShapiroWilk { order_statistics: OrderStatistics::Blom, covariance: Covariance::Asymptotic };
        for n in [2, 3, 10] {
            let m = statistic.expected(n);
            let p = |i: usize| (i + 1) as f64 / (n + 1) as f64;
            let covariance = |i: usize, j: usize| {
                p(i.min(j)) * (1. - p(i.max(j))) / (normal::density(m[i]) * normal::density(m[j]))
            };
            let solved = asymptotic_inverse_times(&m);
            for (i, expected) in m.iter().enumerate() {
                // The factor (n + 1)(n + 2) of the inverse, over (n + 2) of the covariance.
                let product: f64 = (0..n).map(|j| covariance(i, j) * solved[j]).sum::<f64>() * (n + 1) as f64;
                assert!((product - expected).abs() < TOLERANCE, "{n}, {i}: {product} against {expected}");
            }
        }
    }

    #[test]
    fn samples_at_their_expected_places_have_w_one_whatever_their_mean_and_scale() {
        for order_statistics in
            [OrderStatistics::WeisbergBingham, OrderStatistics::Elfving, OrderStatistics::Blom]
        {
            let statistic = ShapiroWilk { order_statistics, ..ShapiroWilk::default() };
            let samples: Vec<f64> = statistic.expected(51).iter().map(|m| 3. - 0.01 * m).collect();
            assert!((statistic.w(&samples) - 1.).abs() < TOLERANCE);
        }
    }

    #[test]
    fn equal_samples_have_w_zero_and_no_gradient() {
        let mut gradient = [f64::NAN; 3];
        ShapiroWilk::default().gradient(&[0.1; 3], &mut gradient);
        assert_eq!((ShapiroWilk::default().w(&[0.1; 3]), gradient), (0., [0.; 3]));
    }
}
