//! Unit directions on which embeddings are sliced.

mod sobol;

use candle_core::{Device, Tensor};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// Where the directions come from. The step alone decides them: every process that is at the same step
/// has the same ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Directions {
    /// Gaussian vectors of unit norm, drawn anew at every step.
    #[default]
    Gaussian,
    /// Points of a Sobol sequence through the inverse normal distribution function, normalised (paper,
    /// appendix on low-discrepancy sequences); scrambled anew at every step.
    Sobol,
    /// The Gaussian directions of step 0 at every step: what the paper advises against.
    Fixed,
}

impl Directions {
    /// The directions of a step, as f32 columns of unit norm.
    ///
    /// # Shapes
    /// - result: `(dim, slices)`
    pub fn draw(self, dim: usize, slices: usize, step: u64, device: &Device) -> Result<Tensor> {
        if dim == 0 || slices == 0 {
            let got = format!("{dim} dimensions and {slices} slices");
            return Err(Error::Setting {
                field: "slices",
                expected: "at least 1 of at least 1 dimension",
                got,
            });
        }
        let points = match self {
            Self::Gaussian => gaussian(dim, slices, step),
            Self::Sobol => sobol::normal_points(dim, slices, step)?,
            Self::Fixed => gaussian(dim, slices, 0),
        };
        let mut unit = vec![0f32; points.len()];
        unit.par_chunks_mut(dim).zip(points.par_chunks(dim)).for_each(|(unit, point)| {
            let length = point.iter().map(|value| value * value).sum::<f64>().sqrt();
            unit.iter_mut().zip(point).for_each(|(unit, value)| *unit = (value / length) as f32);
        });
        Ok(Tensor::from_vec(unit, (slices, dim), &Device::Cpu)?.t()?.to_device(device)?)
    }
}

/// One row per slice, each from a random stream of its own: on all cores, and the first slices are the
/// same however many there are.
fn gaussian(dim: usize, slices: usize, step: u64) -> Vec<f64> {
    let mut rows = vec![0.; dim * slices];
    rows.par_chunks_mut(dim).enumerate().for_each(|(slice, row)| {
        let mut generator = generator(step, slice as u64);
        row.fill_with(|| StandardNormal.sample(&mut generator));
    });
    rows
}

/// The random numbers of a step and slice. Samples that somebody draws with the same seed must not be
/// the directions: those are on stream 0.
fn generator(step: u64, slice: u64) -> ChaCha8Rng {
    let mut generator = ChaCha8Rng::seed_from_u64(step);
    generator.set_stream(u64::from_be_bytes(*b"slices..").wrapping_add(slice));
    generator
}

#[cfg(test)]
mod tests {
    use candle_core::DType;

    use super::*;

    const ALL: [Directions; 3] = [Directions::Gaussian, Directions::Sobol, Directions::Fixed];

    fn draw(directions: Directions, step: u64) -> Vec<Vec<f32>> {
        directions.draw(16, 5, step, &Device::Cpu).unwrap().to_vec2().unwrap()
    }

    #[test]
    fn the_step_alone_decides_the_directions() {
        for directions in ALL {
            assert_eq!(draw(directions, 3), draw(directions, 3));
            let differs = draw(directions, 3) != draw(directions, 4);
            assert_eq!(differs, directions != Directions::Fixed, "{directions:?}");
        }
    }

    #[test]
    fn columns_have_unit_norm() {
        for directions in ALL {
            let directions = directions.draw(16, 5, 0, &Device::Cpu).unwrap();
            let norms: Vec<f32> = directions.sqr().unwrap().sum(0).unwrap().to_vec1().unwrap();
            assert!(norms.iter().all(|norm| (norm - 1.).abs() < 1e-6), "{norms:?}");
        }
    }

    #[test]
    fn samples_of_the_same_seed_are_not_the_directions() {
        let directions = draw(Directions::Gaussian, 9);
        let mut generator = ChaCha8Rng::seed_from_u64(9);
        let sample: Vec<f32> = (0..16).map(|_| StandardNormal.sample(&mut generator)).collect();
        let length = sample.iter().map(|value| value * value).sum::<f32>().sqrt();
        let cosine: f32 = directions.iter().zip(&sample).map(|(row, value)| row[0] * value / length).sum();
        assert!(cosine.abs() < 0.9, "{cosine}");
    }

    #[test]
    fn more_slices_leave_the_first_ones_alone() {
        for directions in ALL {
            let many = directions.draw(16, 9, 2, &Device::Cpu).unwrap().narrow(1, 0, 5).unwrap();
            assert_eq!(many.to_vec2::<f32>().unwrap(), draw(directions, 2), "{directions:?}");
        }
    }

    /// Mean and second moments of uniform directions are 0 and 1 / dim; a Sobol sequence is nearer to them.
    #[test]
    fn sobol_directions_cover_the_sphere_more_evenly() {
        let unevenness = |directions: Directions| {
            let drawn = directions.draw(4, 1024, 1, &Device::Cpu).unwrap().to_dtype(DType::F64).unwrap();
            let moments = (drawn.matmul(&drawn.t().unwrap()).unwrap() / 1024.).unwrap();
            let isotropic = (Tensor::eye(4, DType::F64, &Device::Cpu).unwrap() / 4.).unwrap();
            let error: f64 =
                (moments - isotropic).unwrap().sqr().unwrap().sum_all().unwrap().to_scalar().unwrap();
            error.sqrt()
        };
        let (sobol, gaussian) = (unevenness(Directions::Sobol), unevenness(Directions::Gaussian));
        assert!(sobol < gaussian / 3., "{sobol} against {gaussian}");
    }

    #[test]
    fn nothing_to_draw_and_too_many_dimensions_are_errors() {
        for directions in ALL {
            assert!(directions.draw(0, 5, 0, &Device::Cpu).is_err());
            assert!(directions.draw(5, 0, 0, &Device::Cpu).is_err());
        }
        let message = Directions::Sobol.draw(30_000, 1, 0, &Device::Cpu).unwrap_err().to_string();
        assert!(message.contains("21201"), "{message}");
    }
}
