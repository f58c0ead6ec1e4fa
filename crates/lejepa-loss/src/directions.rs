//! Random unit directions on which embeddings are sliced.

use candle_core::{DType, Device, Tensor};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

use crate::Result;

/// Gaussian columns of unit norm, drawn by a generator that the global step seeds: every process
/// that is at the same step has the same directions.
///
/// # Shapes
/// - result: `(dim, slices)`
pub fn gaussian_directions(dim: usize, slices: usize, step: u64, device: &Device) -> Result<Tensor> {
    let mut generator = ChaCha8Rng::seed_from_u64(step);
    let columns: Vec<f64> = (0..dim * slices).map(|_| StandardNormal.sample(&mut generator)).collect();
    let columns = Tensor::from_vec(columns, (dim, slices), &Device::Cpu)?;
    let norms = columns.sqr()?.sum_keepdim(0)?.sqrt()?;
    let unit = columns.broadcast_div(&norms)?;
    Ok(unit.to_dtype(DType::F32)?.to_device(device)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draw(step: u64) -> Vec<Vec<f32>> {
        gaussian_directions(16, 5, step, &Device::Cpu).unwrap().to_vec2().unwrap()
    }

    #[test]
    fn the_step_alone_decides_the_directions() {
        assert_eq!(draw(3), draw(3));
        assert_ne!(draw(3), draw(4));
    }

    #[test]
    fn columns_have_unit_norm() {
        let directions = gaussian_directions(16, 5, 0, &Device::Cpu).unwrap();
        let norms: Vec<f32> = directions.sqr().unwrap().sum(0).unwrap().to_vec1().unwrap();
        assert!(norms.iter().all(|norm| (norm - 1.).abs() < 1e-6), "{norms:?}");
    }
}
