//! The standard normal distribution: density, distribution function, its logarithm and its inverse.
//!
//! ```text
//! cdf(x) = erfc(-x / sqrt(2)) / 2,   density(x) / cdf(x) = d log cdf(x) / dx
//! ```
//!
//! `cdf` underflows at `x = -38`; its logarithm and the logarithm's derivative do not, because far
//! down the tail both come from the ratio `cdf(-x) / density(x)`, which is about `1 / x`.

use std::f64::consts::FRAC_1_SQRT_2;

use libm::erfc;
use statrs::consts::{LN_SQRT_2PI, SQRT_2PI};
use statrs::function::erf::erfc_inv;

/// Below it the tail ratio takes over: there `cdf` still has all its digits, and the continued
/// fraction has them already.
const TAIL: f64 = -10.;
/// Levels of the continued fraction; at `x = 10` as many as f64 can tell from infinitely many.
const LEVELS: u32 = 24;

pub(crate) fn density(x: f64) -> f64 {
    (-0.5 * x * x).exp() / SQRT_2PI
}

/// The probability of a value below `x`.
pub(crate) fn cdf(x: f64) -> f64 {
    0.5 * erfc(-x * FRAC_1_SQRT_2)
}

pub(crate) fn log_cdf(x: f64) -> f64 {
    if x >= 0. {
        (-cdf(-x)).ln_1p()
    } else if x >= TAIL {
        cdf(x).ln()
    } else {
        tail_ratio(-x).ln() - 0.5 * x * x - LN_SQRT_2PI
    }
}

/// The derivative of [`log_cdf`], known as the inverse Mills ratio.
pub(crate) fn log_cdf_slope(x: f64) -> f64 {
    if x >= TAIL { density(x) / cdf(x) } else { 1. / tail_ratio(-x) }
}

/// The value below which a given probability lies.
pub(crate) fn quantile(probability: f64) -> f64 {
    -std::f64::consts::SQRT_2 * erfc_inv(2. * probability)
}

/// `cdf(-x) / density(x)` for large positive `x`, by Laplace's continued fraction
/// `1 / (x + 1 / (x + 2 / (x + 3 / ..)))`.
fn tail_ratio(x: f64) -> f64 {
    1. / (1..=LEVELS).rev().fold(x, |rest, level| x + f64::from(level) / rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `x`, then `cdf`, `log_cdf` and `log_cdf_slope` by mpmath with 60 digits.
    #[rustfmt::skip]
    const TABLE: [(f64, f64, f64, f64); 21] = [
        (-10000.0, 0.0, -50000010.12927891, 10000.000099999997),
        (-1000.0, 0.0, -500007.82669481216, 1000.000999998),
        (-100.0, 0.0, -5005.524208694205, 100.00999800099926),
        (-37.0, 5.725571222524577e-300, -689.0305855768906, 37.02698768612699),
        (-20.0, 2.7536241186062337e-89, -203.91715537109727, 20.04975306852785),
        (-10.5, 4.3190063178092304e-26, -58.404187061073245, 10.593583926132379),
        (-10.0, 7.619853024160525e-24, -53.23128515051247, 10.098093233962512),
        (-9.5, 1.0494515075362608e-21, -48.30601929896523, 9.603050090384283),
        (-5.0, 2.866515718791939e-07, -15.064998393988725, 5.186503967125842),
        (-3.0, 0.0013498980316300946, -6.607726221510349, 3.2830986549304364),
        (-1.0, 0.15865525393145705, -1.8410216450092636, 1.525135276160981),
        (-0.5, 0.3085375387259869, -1.1759117615936185, 1.1410777703680646),
        (-0.001, 0.49960105778608893, -0.6939453834669652, 0.7985212895629114),
        (0.0, 0.5, -std::f64::consts::LN_2, 0.7978845608028654),
        (0.3, 0.6179114221889527, -0.4814101615884812, 0.6172208536127345),
        (0.7, 0.758036347776927, -0.2770239422771313, 0.41192475041929066),
        (1.0, 0.8413447460685429, -0.17275377902344988, 0.2875999709391784),
        (2.0, 0.9772498680518208, -0.02301290932896349, 0.055247862678989956),
        (5.0, 0.9999997133484281, -2.866516129637636e-07, 1.4867199409049056e-06),
        (8.0, 0.9999999999999993, -6.220960574271786e-16, 5.052271083536895e-15),
        (20.0, 1.0, -2.7536241186062337e-89, 5.520948362159764e-88),
    ];

    /// Wanted of every function; f64 alone costs `x^2` times its precision in `exp(-x^2/2)`.
    const RELATIVE: f64 = 1e-12;

    fn assert_close(got: f64, expected: f64, what: &str) {
        assert!((got - expected).abs() <= RELATIVE * expected.abs(), "{what}: {got:e} against {expected:e}");
    }

    #[test]
    fn the_distribution_function_and_its_logarithm_are_accurate_in_both_tails() {
        for (x, expected_cdf, expected_log, expected_slope) in TABLE {
            assert_close(cdf(x), expected_cdf, &format!("cdf({x})"));
            assert_close(log_cdf(x), expected_log, &format!("log_cdf({x})"));
            assert_close(log_cdf_slope(x), expected_slope, &format!("log_cdf_slope({x})"));
        }
    }

    #[test]
    fn the_far_tail_follows_its_asymptote_where_the_probability_underflows() {
        // What is left out is `log(-x)` beside `x^2 / 2`, and `1 / x` beside `x`.
        for x in [-1e8, -1e150] {
            assert_close(log_cdf(x), -0.5 * x * x, "log_cdf");
            assert_close(log_cdf_slope(x), -x, "log_cdf_slope");
        }
    }

    #[test]
    fn the_quantile_inverts_the_distribution_function() {
        for exponent in 1..300 {
            let probability = 10f64.powi(-exponent);
            assert_close(cdf(quantile(probability)), probability, "cdf(quantile)");
        }
        for percent in 1..100 {
            let probability = f64::from(percent) / 100.;
            assert_close(cdf(quantile(probability)), probability, "cdf(quantile)");
        }
        assert_eq!(quantile(0.5), 0.);
    }

    #[test]
    fn what_is_no_number_stays_none() {
        assert!(cdf(f64::NAN).is_nan() && log_cdf(f64::NAN).is_nan() && log_cdf_slope(f64::NAN).is_nan());
    }
}
