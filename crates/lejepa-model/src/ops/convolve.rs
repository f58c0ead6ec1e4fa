//! The product of a map's windows with a kernel, without keeping the unfolded windows.
//!
//! ```text
//! y = unfold(x) W^T,   d W = g^T unfold(x),   d x = fold(g W)
//! ```
//!
//! Unfolded windows are nine times the map for a 3x3 kernel. They are made for a few images at a time,
//! small enough for the cache, and again for the backward pass; a product recorded by Candle would
//! keep them all and pass over their gradient three times.

use std::sync::{Mutex, PoisonError};

use candle_core::{CpuStorage, CustomOp2, Layout, Result, Shape, Tensor};

use super::unfold::{fold, unfold};
use super::window::Windows;

/// Unfolded values that are made at a time.
const VALUES_AT_A_TIME: usize = 1 << 21;

/// # Shapes
/// - `rows`: `(images * input places, channels)`
/// - `weight`: `(outputs, taps * channels)`
/// - result: `(images * output places, outputs)`
pub(crate) fn convolve(rows: &Tensor, weight: &Tensor, windows: &Windows) -> Result<Tensor> {
    if !super::is_fused(rows) {
        return unfold(rows, windows, 1)?.squeeze(0)?.matmul(&weight.t()?);
    }
    let (rows, weight) = (rows.contiguous()?, weight.contiguous()?);
    let (outputs, columns) = weight.dims2()?;
    let kernel = weight.detach().t()?;
    let mut values = Vec::with_capacity(windows.images * windows.output_places() * outputs);
    for part in Part::all(windows, columns) {
        let product = part.unfolded(&rows.detach())?.matmul(&kernel)?;
        values.extend(product.flatten_all()?.to_vec1::<f32>()?);
    }
    rows.apply_op2(&weight, Convolve { windows: *windows, values: Mutex::new(values) })
}

/// Some images of a batch.
struct Part {
    first: usize,
    windows: Windows,
}

impl Part {
    fn all(windows: &Windows, columns: usize) -> impl Iterator<Item = Self> {
        let of_image = (windows.output_places() * columns).max(1);
        let images = (VALUES_AT_A_TIME / of_image).max(1);
        let windows = *windows;
        (0..windows.images).step_by(images).map(move |first| {
            let images = images.min(windows.images - first);
            Self { first, windows: Windows { images, ..windows } }
        })
    }

    /// # Shapes
    /// - result: `(images * output places, taps * channels)`
    fn unfolded(&self, rows: &Tensor) -> Result<Tensor> {
        let places = self.windows.input_places();
        let rows = rows.narrow(0, self.first * places, self.windows.images * places)?;
        unfold(&rows, &self.windows, 1)?.squeeze(0)
    }

    /// The output rows of these images.
    fn outputs(&self, rows: &Tensor) -> Result<Tensor> {
        let places = self.windows.output_places();
        rows.narrow(0, self.first * places, self.windows.images * places)
    }
}

/// The recorded operation; its values are known before it is applied.
struct Convolve {
    windows: Windows,
    values: Mutex<Vec<f32>>,
}

impl CustomOp2 for Convolve {
    fn name(&self) -> &'static str {
        "convolve"
    }

    fn cpu_fwd(
        &self,
        _rows: &CpuStorage,
        _rows_layout: &Layout,
        _weight: &CpuStorage,
        weight_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let (outputs, _columns) = weight_layout.shape().dims2()?;
        let values = std::mem::take(&mut *self.values.lock().unwrap_or_else(PoisonError::into_inner));
        let places = self.windows.images * self.windows.output_places();
        Ok((CpuStorage::F32(values), Shape::from((places, outputs))))
    }

    fn bwd(
        &self,
        rows: &Tensor,
        weight: &Tensor,
        _ys: &Tensor,
        gradient: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let gradient = gradient.detach().contiguous()?;
        let kernel = weight.detach();
        // The pixels at the very beginning need no gradient.
        let needed = rows.track_op();
        let mut of_weight: Option<Tensor> = None;
        let mut of_rows = Vec::new();
        for part in Part::all(&self.windows, kernel.dim(1)?) {
            let gradient = part.outputs(&gradient)?;
            let of_part = gradient.t()?.matmul(&part.unfolded(&rows.detach())?)?;
            of_weight = Some(match of_weight {
                Some(sum) => (sum + of_part)?,
                None => of_part,
            });
            if needed {
                of_rows.push(fold(&gradient.matmul(&kernel)?, &part.windows)?);
            }
        }
        let of_rows = if needed { Some(Tensor::cat(&of_rows, 0)?) } else { None };
        Ok((of_rows, of_weight))
    }
}

#[cfg(test)]
mod tests {
    use super::super::agreement::assert_fused_agrees;
    use super::super::window::Window;
    use super::*;
    use crate::ImageSize;

    #[test]
    fn the_fused_form_agrees_with_the_composed_one() {
        // The last has more windows than are made at a time.
        for (images, height, width, channels) in [(3, 5, 8, 6), (1, 1, 1, 4), (3, 31, 64, 70)] {
            let window = Window { kernel: 3, stride: 1, padding: 1 };
            let windows = Windows::new(window, images, ImageSize { height, width }).unwrap();
            assert_fused_agrees(&[&[images * height * width, channels], &[2, 9 * channels]], |tensors| {
                convolve(&tensors[0], &tensors[1], &windows).unwrap()
            });
        }
    }
}
