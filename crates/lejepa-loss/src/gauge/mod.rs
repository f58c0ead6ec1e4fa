//! Tells whether embeddings are healthy, for any number of samples, slices and dimensions.
//!
//! A loss of 1.3 says little by itself: what a perfect Gaussian scores depends on samples, slices and
//! dimensions. [`Gauge`] compares with that: the mean statistic with its null distribution
//! ([`Null`]), the eigenvalues of the covariance with those that an isotropic Gaussian sample of the
//! same size has ([`Spectrum`]), and concludes ([`Verdict`]).
//!
//! ```
//! use candle_core::{DType, Device, Tensor};
//! use lejepa_loss::gauge::{Gauge, Verdict};
//!
//! // 256 samples that all have the same embedding.
//! let embeddings = Tensor::ones((256, 8), DType::F32, &Device::Cpu)?;
//! let reading = Gauge::default().measure(&embeddings)?;
//! assert_eq!(reading.verdict, Verdict::Collapsed);
//! # Ok::<(), lejepa_loss::Error>(())
//! ```

mod cumulants;
mod features;
mod marchenko_pastur;
mod null;
mod quadrature;
mod reading;
mod slices;
mod spectrum;
mod verdict;

use candle_core::{DType, Device, Tensor, WithDType};

use features::Features;
pub use null::{Design, Null};
use quadrature::Quadrature;
pub use reading::{Quantiles, Reading, Reference, SigregReading};
pub use slices::{Histogram, Slice};
use slices::{Slices, largest};
use spectrum::Principal;
pub use spectrum::{Deviations, Spectrum};
pub use verdict::Verdict;

use crate::{Directions, EppsPulley, Error, Result};

/// Measures embeddings.
#[derive(Debug, Clone, PartialEq)]
pub struct Gauge {
    /// What they are compared with.
    pub reference: Reference,
    /// Random directions.
    pub slices: usize,
    /// What draws the directions.
    pub seed: u64,
    /// Where the quadrature of the Epps-Pulley statistic ends.
    pub t_max: f64,
    /// Its quadrature points over `[-t_max, t_max]`, an odd number.
    pub knots: usize,
}

impl Default for Gauge {
    fn default() -> Self {
        Self { reference: Reference::Standard, slices: 1024, seed: 0, t_max: 5., knots: 17 }
    }
}

/// More directions than anyone needs; all of them are in memory.
const MOST_SLICES: usize = 1 << 16;
/// How many of the worst slices, directions and dimensions are described.
const WORST: usize = 3;

impl Gauge {
    /// Measures the rows of a matrix that is given row by row.
    pub fn measure_rows<T: WithDType>(&self, values: &[T], dim: usize) -> Result<Reading> {
        let samples = values.len().checked_div(dim).unwrap_or(0);
        if samples * dim != values.len() {
            let expected = format!("rows of {dim} values");
            return Err(Error::Shape { expected, got: vec![values.len()] });
        }
        self.measure(&Tensor::from_slice(values, (samples, dim), &Device::Cpu)?)
    }

    /// Measures embeddings. Beside them there is at most one copy in memory, their covariance and a
    /// block of projections.
    ///
    /// # Shapes
    /// - `embeddings`: `(samples, dim)`, at least 16 samples, all numbers finite
    pub fn measure(&self, embeddings: &Tensor) -> Result<Reading> {
        if !(1..=MOST_SLICES).contains(&self.slices) {
            let expected = "between 1 and 65536";
            return Err(Error::Setting { field: "slices", expected, got: self.slices.to_string() });
        }
        let rule = Quadrature::new(self.t_max, self.knots)?;
        let statistic = EppsPulley::new(self.t_max, self.knots)?;
        let features = Features::new(embeddings)?;
        let principal = Principal::of(&features)?;
        let spectrum = Spectrum::of(&features, &principal, self.reference);
        let slices = Slices::new(features.compared_with(self.reference)?, statistic);
        let directions = Directions::Gaussian.draw(features.dim, self.slices, self.seed, &Device::Cpu)?;
        let sigreg = self.sigreg(&rule, &features, slices.statistics(&directions)?);
        let verdict = Verdict::of(&spectrum, &sigreg);

        let null = Some(&sigreg.slice_null);
        let random = |index: usize| -> Result<Vec<f64>> {
            Ok(directions.narrow(1, index, 1)?.flatten_all()?.to_dtype(DType::F64)?.to_vec1()?)
        };
        let axis = |index: usize| -> Vec<f64> {
            (0..features.dim).map(|other| if other == index { 1. } else { 0. }).collect()
        };
        let worst = largest(&sigreg.per_slice, WORST);
        let worst_slices: Vec<Slice> = worst
            .iter()
            .map(|&index| slices.describe(index, &random(index)?, null))
            .collect::<Result<_>>()?;
        let worst_slice_histogram = Histogram::of(&worst_slices[0], &slices.project(&random(worst[0])?)?);
        let worst_principal_directions = largest(&spectrum.log_ratios(), WORST)
            .into_iter()
            .map(|rank| slices.describe(rank, &principal.direction(rank), None))
            .collect::<Result<_>>()?;
        let worst_dimensions = largest(&slices.dimension_statistics()?, WORST)
            .into_iter()
            .map(|index| slices.describe(index, &axis(index), null))
            .collect::<Result<_>>()?;
        Ok(Reading {
            verdict,
            explanation: verdict.explanation(&features, &spectrum, &sigreg, self.reference),
            reference: self.reference,
            samples: features.samples,
            dim: features.dim,
            scale: features.mean_variance().sqrt(),
            offset: features.offset(),
            sigreg,
            spectrum,
            worst_slices,
            worst_principal_directions,
            worst_dimensions,
            worst_slice_histogram,
        })
    }

    /// The statistic of all slices against its null distribution.
    fn sigreg(&self, rule: &Quadrature, features: &Features, per_slice: Vec<f64>) -> SigregReading {
        let Self { reference, slices, seed, t_max, knots } = *self;
        let design = Design { samples: features.samples, dim: features.dim, slices, reference };
        let null = Null::of(rule, design);
        let slice_null = Null::of(rule, Design { slices: 1, ..design });
        let mean = per_slice.iter().sum::<f64>() / slices as f64;
        let collapse = features.samples as f64 * rule.point_mass();
        let worst = per_slice.iter().copied().fold(0., f64::max);
        // In one dimension there is but one slice, whatever its sign.
        let independent = if features.dim == 1 { 1 } else { slices };
        SigregReading {
            slices,
            seed,
            t_max,
            knots,
            mean,
            floor: null.mean,
            ratio: mean / null.mean,
            quantiles: Quantiles::of(&null),
            p_value: null.p_value(mean),
            departure: (mean - null.mean) / collapse,
            departure_deviation: null.deviation / collapse,
            slice_quantiles: Quantiles::of(&slice_null),
            worst_p_value: any_of(independent, slice_null.p_value(worst)),
            null,
            slice_null,
            per_slice,
        }
    }
}

/// The probability that one of `count` independent events happens.
fn any_of(count: usize, probability: f64) -> f64 {
    -(count as f64 * (-probability).ln_1p()).exp_m1()
}
