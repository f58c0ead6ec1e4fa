//! A convolution and the normalisation behind it as one operation.

use candle_core::{Result, Shape, Tensor, bail};

use super::cpu::Columns;
use super::{Activation, Normalised, columns, gradients};
use crate::Windows;
use crate::convolve::{convolve, input_gradient, kernel_gradient};
use crate::operation::{Backward, Kept, Operation, View, apply, read};
use crate::profile::timed;

/// Convolves and normalises; as two operations Candle would set up and add a gradient in between.
///
/// # Shapes
/// - `rows`: `(images * input places, channels)`, f32 on the CPU
/// - `kernel`: `(dim, channels, ..)`, taps in as many dimensions as the parameter has: the gradient of a reshaped one
///   would be set up and added once more; `weight` and `bias`: `(dim)`
/// - result: `(images * output places, dim)`
pub fn convolve_and_norm(
    rows: &Tensor,
    kernel: &Tensor,
    windows: &Windows,
    [weight, bias]: [&Tensor; 2],
    (epsilon, activation): (f64, Activation),
) -> Result<Normalised> {
    let (rows, kernel) = (rows.contiguous()?, kernel.contiguous()?);
    let xs = convolve(&rows.detach(), &flat(&kernel)?, windows)?;
    let norm = || columns(&xs, [weight, bias], epsilon, activation);
    let (columns, [mean, variance]) = timed("norms", norm)?;
    let affine = Tensor::stack(&[weight, bias], 0)?; // (2, dim)
    let ys =
        apply(ConvolveAndNorm { windows: *windows, xs: Kept::new(xs), columns }, [&rows, &kernel, &affine])?;
    Ok(Normalised { ys, mean, variance })
}

/// `(dim, channels, taps)`.
fn flat(kernel: &Tensor) -> Result<Tensor> {
    kernel.detach().flatten_from(2)
}

struct ConvolveAndNorm {
    windows: Windows,
    /// The result of the convolution.
    xs: Kept<Tensor>,
    columns: Columns,
}

impl Operation<3> for ConvolveAndNorm {
    fn name(&self) -> &'static str {
        "convolve-and-norm"
    }

    fn cpu(&self, _: [View<'_>; 3]) -> Result<(Vec<f32>, Shape)> {
        let xs = self.xs.lock();
        let Some(xs) = &*xs else { bail!("applied twice") };
        let ys = timed("norms", || read([xs], |[xs]| self.columns.normalise(&xs)))?;
        Ok((ys, xs.shape().clone()))
    }

    fn backward(&self, backward: Backward<3>) -> Result<[Option<Tensor>; 3]> {
        let Backward { inputs: [rows, kernel, _], is_needed: [of_rows_is_needed, ..], gradient, .. } =
            backward;
        let flat = flat(&kernel)?;
        let xs = match self.xs.take() {
            Some(xs) => xs,
            // For those who go back a second time.
            None => convolve(&rows, &flat, &self.windows)?,
        };
        let (of_xs, of_affine) = timed("norms", || gradients(&self.columns, &xs, &gradient))?;
        drop(xs);
        let of_rows = of_rows_is_needed.then(|| input_gradient(&flat, &of_xs, &self.windows)).transpose()?;
        let of_kernel = kernel_gradient(&rows, &of_xs, flat.dims3()?, &self.windows)?;
        Ok([of_rows, Some(of_kernel.reshape(kernel.shape())?), Some(of_affine)])
    }
}
