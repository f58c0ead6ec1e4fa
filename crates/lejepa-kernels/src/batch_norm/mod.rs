//! Batch normalisation per column with the batch's own statistics, and a ReLU behind it if asked.
//!
//! With `n = (x - mean) / sqrt(var + eps)` and `g` the gradient of `y = n * weight + bias`:
//!
//! ```text
//! d bias = sum g,   d weight = sum g n
//! d x = (g - mean(g) - n mean(g n)) * weight / sqrt(var + eps)
//! ```

mod columns;
mod convolved;
mod gradient;

use std::sync::Arc;

use candle_core::{CpuStorage, CustomOp3, Layout, Result, Shape, Tensor};

use self::columns::Columns;
pub use self::convolved::convolve_and_norm;
use self::gradient::gradients;
use super::contiguous::values;

/// What follows the normalisation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activation {
    /// Nothing.
    Identity,
    /// `max(0, y)`.
    Relu,
}

/// Normalised rows and the statistics they were normalised with.
#[derive(Debug)]
pub struct Normalised {
    /// The rows.
    pub ys: Tensor,
    /// The mean of every column: `(dim)`.
    pub mean: Tensor,
    /// The biased variance of every column: `(dim)`.
    pub variance: Tensor,
}

/// # Shapes
/// - `xs` and result: `(samples, dim)`; `weight` and `bias`: `(dim)`
pub fn batch_norm(
    xs: &Tensor,
    [weight, bias]: [&Tensor; 2],
    epsilon: f64,
    activation: Activation,
) -> Result<Normalised> {
    if !super::is_fused(xs) {
        let mean = xs.mean(0)?;
        let variance = xs.broadcast_sub(&mean)?.sqr()?.mean(0)?;
        let ys = normalise(xs, [&mean, &variance], [weight, bias], epsilon)?;
        let ys = if activation == Activation::Relu { ys.relu()? } else { ys };
        return Ok(Normalised { ys, mean: mean.detach(), variance: variance.detach() });
    }
    let xs = xs.contiguous()?;
    let (columns, [mean, variance]) = Columns::new(&xs.detach(), [weight, bias], epsilon, activation)?;
    let ys = xs.apply_op3(weight, bias, Normalise(Arc::new(columns)))?;
    Ok(Normalised { ys, mean, variance })
}

/// `(x - mean) / sqrt(variance + epsilon) * weight + bias` with elementary operations.
pub fn normalise(
    xs: &Tensor,
    [mean, variance]: [&Tensor; 2],
    [weight, bias]: [&Tensor; 2],
    epsilon: f64,
) -> Result<Tensor> {
    let scale = ((variance + epsilon)?.sqrt()?.recip()? * weight)?;
    xs.broadcast_sub(mean)?.broadcast_mul(&scale)?.broadcast_add(bias)
}

struct Normalise(Arc<Columns>);

impl CustomOp3 for Normalise {
    fn name(&self) -> &'static str {
        "batch-norm"
    }

    fn cpu_fwd(
        &self,
        storage: &CpuStorage,
        layout: &Layout,
        _weight: &CpuStorage,
        _weight_layout: &Layout,
        _bias: &CpuStorage,
        _bias_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let ys = self.0.normalise(values(storage, layout)?);
        Ok((CpuStorage::F32(ys), layout.shape().clone()))
    }

    fn bwd(
        &self,
        xs: &Tensor,
        _weight: &Tensor,
        _bias: &Tensor,
        _ys: &Tensor,
        gradient: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>, Option<Tensor>)> {
        let (of_xs, of_affine) = gradients(&self.0, &xs.detach(), &gradient.detach().contiguous()?)?;
        Ok((Some(of_xs), Some(of_affine.get(0)?), Some(of_affine.get(1)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::agreement::assert_fused_agrees;
    use super::super::convolve::convolve;
    use super::super::window::{Window, Windows};
    use super::*;
    use crate::MapSize;

    #[test]
    fn behind_a_convolution_it_agrees_with_one_after_the_other() {
        let window = Window { kernel: 3, stride: 2, padding: 1 };
        let windows = Windows::new(window, 3, MapSize { height: 5, width: 8 }).unwrap();
        for activation in [Activation::Identity, Activation::Relu] {
            assert_fused_agrees(&[&[3 * 40, 10], &[7, 10, 3, 3], &[7], &[7]], |tensors| {
                let affine = [&tensors[2], &tensors[3]];
                if crate::is_fused(&tensors[0]) {
                    let settings = (1e-5, activation);
                    let ys = convolve_and_norm(&tensors[0], &tensors[1], &windows, affine, settings);
                    let ys = ys.unwrap().ys;
                    // A second pass back has to do without what the first has taken.
                    ys.sum_all().unwrap().backward().unwrap();
                    return ys;
                }
                let xs = convolve(&tensors[0], &tensors[1].flatten_from(2).unwrap(), &windows).unwrap();
                batch_norm(&xs, affine, 1e-5, activation).unwrap().ys
            });
        }
    }

    #[test]
    fn the_fused_form_agrees_with_the_composed_one() {
        for (samples, dim) in [(2, 3), (64, 5), (200, 7), (1000, 48)] {
            for activation in [Activation::Identity, Activation::Relu] {
                assert_fused_agrees(&[&[samples, dim], &[dim], &[dim]], |tensors| {
                    // A mean far from zero is where a careless variance loses its digits.
                    let xs = (&tensors[0] + 3.).unwrap();
                    batch_norm(&xs, [&tensors[1], &tensors[2]], 1e-5, activation).unwrap().ys
                });
            }
        }
    }
}
