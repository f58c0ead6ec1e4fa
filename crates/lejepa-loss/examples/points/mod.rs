//! Points that are moved freely by a loss: an encoder without an architecture.

use candle_core::{Device, Tensor, Var};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

/// `(count, dim)` points under Adam.
pub(crate) struct Points {
    values: Vec<f32>,
    dim: usize,
    variable: Var,
    mean: Vec<f32>,
    square: Vec<f32>,
    step: i32,
}

impl Points {
    pub(crate) fn new(values: Vec<f32>, dim: usize) -> candle_core::Result<Self> {
        let variable = Var::from_slice(&values, (values.len() / dim, dim), &Device::Cpu)?;
        let (mean, square) = (vec![0.; values.len()], vec![0.; values.len()]);
        Ok(Self { values, dim, variable, mean, square, step: 0 })
    }

    pub(crate) fn tensor(&self) -> &Tensor {
        self.variable.as_tensor()
    }

    /// The first two coordinates of every point.
    #[allow(dead_code)] // Not every example looks at them.
    pub(crate) fn first_two(&self) -> Vec<(f64, f64)> {
        self.values.chunks(self.dim).map(|point| (point[0].into(), point[1].into())).collect()
    }

    /// A step of Adam down the gradient of a loss.
    pub(crate) fn descend(
        &mut self,
        loss: &Tensor,
        learning_rate: f32,
    ) -> Result<(), Box<dyn std::error::Error>> {
        let gradients = loss.backward()?;
        let gradient: Vec<f32> =
            gradients.get(&self.variable).ok_or("no gradient")?.flatten_all()?.to_vec1()?;
        self.step += 1;
        let (of_mean, of_square) = (1. - 0.9f32.powi(self.step), 1. - 0.999f32.powi(self.step));
        for (index, slope) in gradient.into_iter().enumerate() {
            let (mean, square) = (&mut self.mean[index], &mut self.square[index]);
            *mean += 0.1 * (slope - *mean);
            *square += 0.001 * (slope * slope - *square);
            self.values[index] -= learning_rate * (*mean / of_mean) / ((*square / of_square).sqrt() + 1e-8);
        }
        Ok(self.variable.set(&Tensor::from_slice(&self.values, self.tensor().dims(), &Device::Cpu)?)?)
    }
}

/// Standard normal points whose second coordinate is the first or its negative: an "X" with standard
/// normal marginals and unit covariance that is not Gaussian.
pub(crate) fn x_shape(count: usize, dim: usize, seed: u64) -> Vec<f32> {
    let mut generator = ChaCha8Rng::seed_from_u64(seed);
    let mut values: Vec<f32> = (0..count * dim).map(|_| StandardNormal.sample(&mut generator)).collect();
    for point in values.chunks_mut(dim) {
        point[1] = if generator.random() { point[0] } else { -point[0] };
    }
    values
}
