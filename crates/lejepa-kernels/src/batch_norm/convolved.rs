//! A convolution and the normalisation behind it as one operation.

use std::sync::{Arc, Mutex, PoisonError};

use candle_core::{CpuStorage, CustomOp3, Error, Layout, Result, Shape, Storage, Tensor};

use super::super::contiguous::values;
use super::super::convolve::{convolve, convolve_gradients};
use super::super::window::Windows;
use super::columns::Columns;
use super::gradient::gradients;
use super::{Activation, Normalised};
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
    settings: (f64, Activation),
) -> Result<Normalised> {
    let (rows, kernel) = (rows.contiguous()?, kernel.contiguous()?);
    let xs = convolve(&rows.detach(), &flat(&kernel)?, windows)?;
    let (epsilon, activation) = settings;
    let norm = || Columns::new(&xs, [weight, bias], epsilon, activation);
    let (columns, [mean, variance]) = timed("norms", norm)?;
    let affine = Tensor::stack(&[weight, bias], 0)?; // (2, dim)
    let op = ConvolveAndNorm { windows: *windows, xs: Mutex::new(Some(xs)), columns: Arc::new(columns) };
    let ys = rows.apply_op3(&kernel, &affine, op)?;
    Ok(Normalised { ys, mean, variance })
}

/// `(dim, channels, taps)`.
fn flat(kernel: &Tensor) -> Result<Tensor> {
    kernel.detach().flatten_from(2)
}

struct ConvolveAndNorm {
    windows: Windows,
    /// What the convolution gave, until the backward pass takes it.
    xs: Mutex<Option<Tensor>>,
    columns: Arc<Columns>,
}

impl CustomOp3 for ConvolveAndNorm {
    fn name(&self) -> &'static str {
        "convolve-and-norm"
    }

    fn cpu_fwd(
        &self,
        _rows: &CpuStorage,
        _rows_layout: &Layout,
        _kernel: &CpuStorage,
        _kernel_layout: &Layout,
        _affine: &CpuStorage,
        _affine_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let xs = self.xs.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((storage, layout)) = xs.as_ref().map(Tensor::storage_and_layout) else {
            candle_core::bail!("applied twice")
        };
        let Storage::Cpu(storage) = &*storage else { candle_core::bail!("a fused operation off the CPU") };
        let ys = timed("norms", || Ok::<_, Error>(self.columns.normalise(values(storage, layout)?)))?;
        Ok((CpuStorage::F32(ys), layout.shape().clone()))
    }

    fn bwd(
        &self,
        rows: &Tensor,
        kernel: &Tensor,
        _affine: &Tensor,
        _ys: &Tensor,
        gradient: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>, Option<Tensor>)> {
        let gradient = gradient.detach().contiguous()?;
        let xs = self.xs.lock().unwrap_or_else(PoisonError::into_inner).take();
        let xs = match xs {
            Some(xs) => xs,
            // For those who go back a second time.
            None => convolve(&rows.detach(), &flat(kernel)?, &self.windows)?,
        };
        let (of_xs, of_affine) = timed("norms", || gradients(&self.columns, &xs, &gradient))?;
        drop(xs);
        let (of_rows, of_kernel) = convolve_gradients(rows, &flat(kernel)?, &of_xs, &self.windows)?;
        Ok((of_rows, Some(of_kernel.reshape(kernel.shape())?), Some(of_affine)))
    }
}
