//! Seeded random numbers for tests.

use candle_core::{Device, Shape, Tensor};
use rand::SeedableRng;
use rand_distr::{Distribution, StandardNormal};

/// Standard normal numbers in f64.
pub(crate) fn normal(shape: impl Into<Shape>, seed: u64) -> Tensor {
    let shape = shape.into();
    let mut generator = rand_chacha::ChaCha8Rng::seed_from_u64(seed);
    let values: Vec<f64> = (0..shape.elem_count()).map(|_| StandardNormal.sample(&mut generator)).collect();
    Tensor::from_vec(values, shape, &Device::Cpu).unwrap()
}
