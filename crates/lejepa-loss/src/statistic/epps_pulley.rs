//! The Epps-Pulley statistic of a slice against the standard normal (paper, section 4.2.3).
//!
//! ```text
//! EP = N * integral |ecf(t) - exp(-t^2/2)|^2 exp(-t^2/2) dt,   ecf(t) = mean_n exp(i t x_n)
//! ```
//!
//! by the trapezoid rule with `knots` points over `[-t_max, t_max]`. The integrand is even and
//! vanishes at `t = 0`, so only the `(knots - 1) / 2` positive knots are computed.

use super::Statistic;
use crate::{Error, Result};

/// The Epps-Pulley statistic with its quadrature rule.
#[derive(Debug, Clone)]
pub struct EppsPulley {
    knots: Vec<Knot>,
}

/// A positive quadrature point, standing for itself and its mirror image.
#[derive(Debug, Clone)]
struct Knot {
    t: f64,
    /// `exp(-t^2/2)`: the characteristic function of the standard normal.
    target: f64,
    /// Trapezoid weight of both mirror images times the Gaussian window.
    weight: f64,
}

impl EppsPulley {
    /// A rule with `knots` points (an odd number, both ends included) over `[-t_max, t_max]`.
    pub fn new(t_max: f64, knots: usize) -> Result<Self> {
        if !(t_max.is_finite() && t_max > 0.) {
            return Err(Error::Setting {
                field: "t_max",
                expected: "a positive number",
                got: t_max.to_string(),
            });
        }
        if knots < 3 || knots.is_multiple_of(2) {
            return Err(Error::Setting {
                field: "knots",
                expected: "an odd number of at least 3",
                got: knots.to_string(),
            });
        }
        let positive = knots / 2;
        let step = t_max / positive as f64;
        let knots = (1..=positive)
            .map(|index| {
                let t = step * index as f64;
                let target = (-0.5 * t * t).exp();
                let both_ends = if index == positive { step } else { 2. * step };
                Knot { t, target, weight: both_ends * target }
            })
            .collect();
        Ok(Self { knots })
    }

    /// Real and imaginary part of `ecf(t) - exp(-t^2/2)` at a knot.
    fn deviation(&self, knot: &Knot, samples: &[f64]) -> (f64, f64) {
        let (mut real, mut imaginary) = (0., 0.);
        for sample in samples {
            let (sine, cosine) = (knot.t * sample).sin_cos();
            real += cosine;
            imaginary += sine;
        }
        let count = samples.len() as f64;
        (real / count - knot.target, imaginary / count)
    }
}

impl Statistic for EppsPulley {
    fn name(&self) -> &'static str {
        "epps-pulley"
    }

    fn value(&self, samples: &[f64]) -> f64 {
        let terms = self.knots.iter().map(|knot| {
            let (real, imaginary) = self.deviation(knot, samples);
            knot.weight * (real * real + imaginary * imaginary)
        });
        samples.len() as f64 * terms.sum::<f64>()
    }

    fn gradient(&self, samples: &[f64], gradient: &mut [f64]) {
        gradient.fill(0.);
        for knot in &self.knots {
            let (real, imaginary) = self.deviation(knot, samples);
            let factor = 2. * knot.weight * knot.t;
            for (gradient, sample) in gradient.iter_mut().zip(samples) {
                let (sine, cosine) = (knot.t * sample).sin_cos();
                *gradient += factor * (imaginary * cosine - real * sine);
            }
        }
    }

    /// The same for any number of samples: `E|ecf - target|^2 = (1 - target^2) / N`, integrated by
    /// the rule.
    fn floor(&self, _samples: usize) -> Option<f64> {
        Some(self.knots.iter().map(|knot| knot.weight * (1. - knot.target * knot.target)).sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_floor_is_that_of_the_exact_integral() {
        // sqrt(2 pi) (1 - 1/sqrt(3)) over the whole line; t_max 5 cuts off next to nothing.
        let exact = (2. * std::f64::consts::PI).sqrt() * (1. - 1. / 3f64.sqrt());
        let floor = EppsPulley::new(5., 17).unwrap().floor(1).unwrap();
        assert!((floor - exact).abs() < 1e-4, "{floor} against {exact}");
    }

    #[test]
    fn a_collapsed_slice_scores_in_proportion_to_the_sample_count() {
        let statistic = EppsPulley::new(5., 17).unwrap();
        let score = statistic.value(&[0.; 1000]);
        assert!((score / 1000. - 0.40).abs() < 0.02, "{score}");
    }

    #[test]
    fn settings_out_of_range_are_refused() {
        assert!(EppsPulley::new(5., 16).is_err());
        assert!(EppsPulley::new(5., 1).is_err());
        assert!(EppsPulley::new(0., 17).is_err());
        assert!(EppsPulley::new(f64::NAN, 17).is_err());
    }
}
