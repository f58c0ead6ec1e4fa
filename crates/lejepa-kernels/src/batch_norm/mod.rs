//! Batch normalisation per column with the batch's own statistics, and a ReLU behind it if asked.
//!
//! With `n = (x - mean) / sqrt(var + eps)` and `g` the gradient of `y = n * weight + bias`:
//!
//! ```text
//! d bias = sum g,   d weight = sum g n
//! d x = (g - mean(g) - n mean(g n)) * weight / sqrt(var + eps)
//! ```

mod composed;
mod convolved;
mod cpu;

use candle_core::{Device, Result, Shape, Tensor};

pub use self::composed::normalise;
pub use self::convolved::convolve_and_norm;
use self::cpu::Columns;
use crate::is_fused;
use crate::operation::{Backward, Operation, View, apply, compute, read};

/// The activation behind a normalisation.
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

/// Normalises every column with its own mean and variance.
///
/// # Shapes
/// - `xs` and result: `(samples, dim)`; `weight` and `bias`: `(dim)`
pub fn batch_norm(
    xs: &Tensor,
    [weight, bias]: [&Tensor; 2],
    epsilon: f64,
    activation: Activation,
) -> Result<Normalised> {
    if !is_fused(xs) {
        return composed::batch_norm(xs, [weight, bias], epsilon, activation);
    }
    let xs = xs.contiguous()?;
    let (columns, [mean, variance]) = columns(&xs, [weight, bias], epsilon, activation)?;
    let ys = apply(Normalise(columns), [&xs, weight, bias])?;
    Ok(Normalised { ys, mean, variance })
}

/// The columns of rows, and their mean and biased variance.
fn columns(
    xs: &Tensor,
    [weight, bias]: [&Tensor; 2],
    epsilon: f64,
    activation: Activation,
) -> Result<(Columns, [Tensor; 2])> {
    let (_samples, dim) = xs.dims2()?;
    let moments = compute([xs], (2, dim), |[xs]| cpu::moments(&xs, dim))?;
    let (mean, variance) = (moments.get(0)?, moments.get(1)?);
    let inverse_root = |value: &f32| 1. / (value + epsilon as f32).sqrt();
    let scale = variance.to_vec1()?.iter().map(inverse_root).collect();
    let (weight, bias) = (weight.to_vec1()?, bias.to_vec1()?);
    Ok((Columns { mean: mean.to_vec1()?, scale, weight, bias, activation }, [mean, variance]))
}

/// The gradients of rows before they were normalised, and of weight and bias: `(2, dim)`.
fn gradients(columns: &Columns, xs: &Tensor, gradient: &Tensor) -> Result<(Tensor, Tensor)> {
    let (of_xs, of_affine) = read([xs, gradient], |[xs, gradient]| {
        let of_affine = columns.affine_gradient(&xs, &gradient);
        (columns.input_gradient(&xs, &gradient, &of_affine), of_affine)
    })?;
    let of_affine = Tensor::from_vec(of_affine, (2, columns.mean.len()), &Device::Cpu)?;
    Ok((Tensor::from_vec(of_xs, xs.shape(), &Device::Cpu)?, of_affine))
}

struct Normalise(Columns);

impl Operation<3> for Normalise {
    fn name(&self) -> &'static str {
        "batch-norm"
    }

    fn cpu(&self, [xs, ..]: [View<'_>; 3]) -> Result<(Vec<f32>, Shape)> {
        Ok((self.0.normalise(&xs), xs.shape.clone()))
    }

    fn backward(&self, backward: Backward<3>) -> Result<[Option<Tensor>; 3]> {
        let Backward { inputs: [xs, ..], gradient, .. } = backward;
        let (of_xs, of_affine) = gradients(&self.0, &xs, &gradient)?;
        Ok([of_xs, of_affine.get(0)?, of_affine.get(1)?].map(Some))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MapSize;
    use crate::agreement::assert_fused_agrees;
    use crate::convolve::convolve;
    use crate::window::{Window, Windows};

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
