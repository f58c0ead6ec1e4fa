//! Convolution of feature maps, and its two gradients, without unfolding the windows.
//!
//! ```text
//! y[place, o] = sum over taps, c of x[stride * place + tap - padding, c] W[o, c, tap]
//! d x[place, c] = sum over taps, o of g[(place + padding - tap) / stride, o] W[o, c, tap]     where that is a place
//! d W[o, c, tap] = sum over places of g[place, o] x[stride * place + tap - padding, c]
//! ```
//!
//! The first two are the same product of [`Sources`] with kernels in [`Panels`]; taps beyond the edge are passed over,
//! which saves more than half of the work on maps of 2x2 places. Every value is summed by one thread in one order, so
//! that the number of threads does not matter.

mod kernel_gradient;
mod padded;
mod panels;
mod reach;
mod sources;

use candle_core::{CpuStorage, CustomOp2, Layout, Result, Shape, Tensor};

use self::kernel_gradient::kernel_gradient;
use self::padded::Padded;
use self::panels::Panels;
use self::reach::Reaches;
use self::sources::Sources;
use super::contiguous::values;
use super::unfold::unfold;
use super::window::Windows;

/// # Shapes
/// - `rows`: `(images * input places, channels)`
/// - `weight`: `(outputs, channels, taps)`
/// - result: `(images * output places, outputs)`
pub fn convolve(rows: &Tensor, weight: &Tensor, windows: &Windows) -> Result<Tensor> {
    if super::is_fused(rows) {
        return rows.contiguous()?.apply_op2(&weight.contiguous()?, Convolve(*windows));
    }
    // Unfolded rows have the channels of a tap together, the weight has the taps of a channel.
    let (outputs, channels, taps) = weight.dims3()?;
    let weight = weight.transpose(1, 2)?.reshape((outputs, taps * channels))?;
    unfold(rows, windows, 1)?.squeeze(0)?.matmul(&weight.t()?)
}

struct Convolve(Windows);
struct InputGradient(Windows);
struct KernelGradient {
    windows: Windows,
    weight: Shape,
}

impl CustomOp2 for Convolve {
    fn name(&self) -> &'static str {
        "convolve"
    }

    fn cpu_fwd(
        &self,
        storage: &CpuStorage,
        layout: &Layout,
        weight_storage: &CpuStorage,
        weight_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let weight = values(weight_storage, weight_layout)?;
        let (outputs, channels, _taps) = weight_layout.shape().dims3()?;
        let maps = Padded::new(values(storage, layout)?, &self.0, channels);
        let reaches = Reaches::forward(&maps.windows);
        let panels = Panels::of_outputs(weight, weight_layout.shape().dims3()?);
        let ys = Sources { maps: &maps.rows, images: self.0.images, reaches: &reaches }.multiply(&panels);
        Ok((CpuStorage::F32(ys), Shape::from((self.0.images * self.0.output_places(), outputs))))
    }

    fn bwd(
        &self,
        rows: &Tensor,
        weight: &Tensor,
        _ys: &Tensor,
        gradient: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let (of_rows, of_weight) =
            convolve_gradients(rows, weight, &gradient.detach().contiguous()?, &self.0)?;
        Ok((of_rows, Some(of_weight)))
    }
}

/// The gradients of rows, if they need one, and weight.
pub(super) fn convolve_gradients(
    rows: &Tensor,
    weight: &Tensor,
    gradient: &Tensor,
    windows: &Windows,
) -> Result<(Option<Tensor>, Tensor)> {
    // The pixels at the very beginning need none.
    let of_rows = if rows.track_op() {
        Some(gradient.apply_op2_no_bwd(&weight.detach(), &InputGradient(*windows))?)
    } else {
        None
    };
    let of_kernel = KernelGradient { windows: *windows, weight: weight.shape().clone() };
    Ok((of_rows, rows.detach().apply_op2_no_bwd(gradient, &of_kernel)?))
}

impl CustomOp2 for InputGradient {
    fn name(&self) -> &'static str {
        "convolve-input-gradient"
    }

    fn cpu_fwd(
        &self,
        storage: &CpuStorage,
        layout: &Layout,
        weight_storage: &CpuStorage,
        weight_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let gradients = values(storage, layout)?;
        let weight = values(weight_storage, weight_layout)?;
        let (_outputs, channels, _taps) = weight_layout.shape().dims3()?;
        let reaches = Reaches::backward(&self.0);
        let panels = Panels::of_inputs(weight, weight_layout.shape().dims3()?, &reaches);
        let result = Sources { maps: gradients, images: self.0.images, reaches: &reaches }.multiply(&panels);
        Ok((CpuStorage::F32(result), Shape::from((self.0.images * self.0.input_places(), channels))))
    }
}

impl CustomOp2 for KernelGradient {
    fn name(&self) -> &'static str {
        "convolve-kernel-gradient"
    }

    fn cpu_fwd(
        &self,
        storage: &CpuStorage,
        layout: &Layout,
        gradient_storage: &CpuStorage,
        gradient_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let gradients = values(gradient_storage, gradient_layout)?;
        let (outputs, channels, _taps) = self.weight.dims3()?;
        let maps = Padded::new(values(storage, layout)?, &self.windows, channels);
        let result = kernel_gradient(&maps, gradients, [channels, outputs]);
        Ok((CpuStorage::F32(result), self.weight.clone()))
    }
}

#[cfg(test)]
mod tests {
    use candle_core::{Device, Var};

    use super::super::agreement::{assert_fused_agrees, random};
    use super::super::window::Window;
    use super::*;
    use crate::MapSize;

    fn windows(kernel: usize, stride: usize, padding: usize, images: usize, size: (usize, usize)) -> Windows {
        let (height, width) = size;
        Windows::new(Window { kernel, stride, padding }, images, MapSize { height, width }).unwrap()
    }

    #[test]
    fn the_fused_form_agrees_with_the_composed_one() {
        for (kernel, stride, padding) in [
            (3, 1, 1),
            (3, 2, 1),
            (1, 1, 0),
            (1, 2, 0),
            (7, 2, 3),
            (2, 2, 0),
            (4, 4, 0),
            (5, 3, 1),
            (2, 3, 2),
        ] {
            for (size, images, channels, outputs) in
                [((5, 8), 3, 6, 2), ((9, 4), 2, 3, 40), ((4, 4), 9, 70, 33), ((7, 7), 1, 8, 16)]
            {
                let windows = windows(kernel, stride, padding, images, size);
                let weight = [outputs, channels, kernel * kernel];
                assert_fused_agrees(&[&[images * size.0 * size.1, channels], &weight], |tensors| {
                    convolve(&tensors[0], &tensors[1], &windows).unwrap()
                });
            }
        }
    }

    #[test]
    fn maps_smaller_than_the_kernel_agree_too() {
        for (kernel, padding, size) in [(3, 1, (1, 1)), (3, 1, (2, 2)), (7, 3, (2, 1)), (5, 4, (1, 3))] {
            let windows = windows(kernel, 1, padding, 5, size);
            assert_fused_agrees(&[&[5 * size.0 * size.1, 9], &[4, 9, kernel * kernel]], |tensors| {
                convolve(&tensors[0], &tensors[1], &windows).unwrap()
            });
        }
    }

    #[test]
    fn more_places_than_are_worked_on_at_a_time_agree_too() {
        let windows = windows(3, 1, 1, 3, (31, 64));
        assert_fused_agrees(&[&[3 * 31 * 64, 10], &[17, 10, 9]], |tensors| {
            convolve(&tensors[0], &tensors[1], &windows).unwrap()
        });
    }

    #[test]
    fn the_number_of_threads_changes_no_bit() {
        let windows = windows(3, 2, 1, 7, (12, 11));
        let run = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                let tensor = |shape: &[usize], seed| {
                    Var::from_tensor(&random(shape, seed).to_dtype(candle_core::DType::F32).unwrap()).unwrap()
                };
                let (rows, weight) = (tensor(&[7 * 132, 20], 1), tensor(&[24, 20, 9], 2));
                let ys = convolve(&rows, &weight, &windows).unwrap();
                let gradients = ys.sqr().unwrap().sum_all().unwrap().backward().unwrap();
                [&ys, gradients.get(&rows).unwrap(), gradients.get(&weight).unwrap()]
                    .map(|tensor| tensor.flatten_all().unwrap().to_vec1::<f32>().unwrap())
            })
        };
        assert_eq!(run(1), run(3));
    }

    #[test]
    fn pixels_without_a_gradient_get_none() {
        let rows = Tensor::ones((4, 3), candle_core::DType::F32, &Device::Cpu).unwrap();
        let weight = Var::ones((2, 3, 9), candle_core::DType::F32, &Device::Cpu).unwrap();
        let ys = convolve(&rows, &weight, &windows(3, 1, 1, 1, (2, 2))).unwrap();
        let gradients = ys.sum_all().unwrap().backward().unwrap();
        assert!(gradients.get(&rows).is_none() && gradients.get(&weight).is_some());
    }
}
