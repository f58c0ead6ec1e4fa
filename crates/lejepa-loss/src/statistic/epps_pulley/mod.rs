//! The Epps-Pulley statistic of a slice against the standard normal (paper, section 4.2.3).
//!
//! ```text
//! EP = N * integral |ecf(t) - exp(-t^2/2)|^2 exp(-t^2/2) dt,   ecf(t) = mean_n exp(i t x_n)
//! ```
//!
//! by the trapezoid rule with `knots` points over `[-t_max, t_max]`. The integrand is even and
//! vanishes at `t = 0`, so only the `(knots - 1) / 2` positive knots are computed.

mod composed;
mod fused;

use std::sync::Arc;

use candle_core::{D, DType, Tensor};
use num_complex::Complex;

use super::{Statistic, check_samples, sliced};
use crate::{Error, Result};

/// Knots between two fresh sines and cosines; those between are powers of the first.
const KNOTS_PER_BLOCK: usize = 16;

/// The Epps-Pulley statistic with its quadrature rule.
#[derive(Debug, Clone)]
pub struct EppsPulley {
    knots: Vec<Knot>,
}

/// A positive quadrature point, standing for itself and its mirror image.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Knot {
    pub(crate) t: f64,
    /// `exp(-t^2/2)`: the characteristic function of the standard normal.
    pub(crate) target: f64,
    /// Trapezoid weight of both mirror images times the Gaussian window.
    pub(crate) weight: f64,
}

/// More knots are a slip of the finger.
const MAX_KNOTS: usize = (1 << 16) - 1;

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
        if !(3..=MAX_KNOTS).contains(&knots) || knots.is_multiple_of(2) {
            return Err(Error::Setting {
                field: "knots",
                expected: "an odd number from 3 to 65535",
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

    /// The positive knots, which stand for themselves and their mirror images.
    pub(crate) fn knots(&self) -> &[Knot] {
        &self.knots
    }

    /// `ecf(t) - exp(-t^2/2)` at every knot.
    fn deviations(&self, samples: &[f64]) -> Vec<Complex<f64>> {
        let mut sums = vec![Complex::new(0., 0.); self.knots.len()];
        for &sample in samples {
            self.for_each_power(sample, |index, power| sums[index] += power);
        }
        let count = samples.len() as f64;
        sums.iter().zip(&self.knots).map(|(sum, knot)| sum / count - knot.target).collect()
    }

    /// Calls with every knot's index and `exp(i t x)`: powers of the first, computed afresh now and then.
    fn for_each_power(&self, sample: f64, mut call: impl FnMut(usize, Complex<f64>)) {
        let step = Complex::cis(self.knots[0].t * sample);
        for (block, knots) in self.knots.chunks(KNOTS_PER_BLOCK).enumerate() {
            let mut power = Complex::cis(knots[0].t * sample);
            for index in 0..knots.len() {
                call(block * KNOTS_PER_BLOCK + index, power);
                power *= step;
            }
        }
    }
}

impl Statistic for EppsPulley {
    fn name(&self) -> &'static str {
        "epps-pulley"
    }

    fn value(&self, samples: &[f64]) -> f64 {
        let deviations = self.deviations(samples);
        let terms =
            deviations.iter().zip(&self.knots).map(|(deviation, knot)| knot.weight * deviation.norm_sqr());
        samples.len() as f64 * terms.sum::<f64>()
    }

    fn gradient(&self, samples: &[f64], gradient: &mut [f64]) {
        let deviations = self.deviations(samples);
        for (gradient, &sample) in gradient.iter_mut().zip(samples) {
            *gradient = 0.;
            self.for_each_power(sample, |index, power| {
                let (knot, deviation) = (&self.knots[index], deviations[index]);
                *gradient += 2. * knot.weight * knot.t * (deviation.im * power.re - deviation.re * power.im);
            });
        }
    }

    fn per_slice(self: Arc<Self>, projected: &Tensor) -> Result<Tensor> {
        if projected.device().is_cpu() {
            return sliced::per_slice(self, projected);
        }
        check_samples(&*self, projected.dim(D::Minus1)?)?;
        Ok(composed::per_slice(&self, &sliced::at_least_f32(projected)?)?)
    }

    fn along(self: Arc<Self>, embeddings: &Tensor, directions: &Tensor) -> Result<Tensor> {
        if !embeddings.device().is_cpu() || embeddings.dtype() == DType::F64 {
            return self.per_slice(&sliced::project(embeddings, directions)?);
        }
        sliced::check_shapes(embeddings, directions)?;
        let samples = embeddings.dim(D::Minus2)?;
        let deviations =
            fused::deviations(&self, &embeddings.to_dtype(DType::F32)?, &directions.to_dtype(DType::F32)?)?;
        let weights = self.knots.iter().map(|knot| (knot.weight * samples as f64) as f32);
        let weights = weights.clone().chain(weights).collect::<Vec<_>>();
        let weights = Tensor::new(weights, embeddings.device())?;
        Ok(deviations.sqr()?.broadcast_mul(&weights)?.sum(D::Minus1)?)
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
