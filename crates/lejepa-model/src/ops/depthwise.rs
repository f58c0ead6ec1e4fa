//! Depthwise convolution, stride 1, the map's size kept: every channel has a kernel of its own.
//!
//! ```text
//! y[place, c] = sum over taps of x[place + tap - padding, c] * weight[tap, c]
//! ```
//!
//! The gradient of `x` is the same with the kernel turned by half a turn; that of `weight` sums
//! `gradient[place, c] * x[place + tap - padding, c]` over places.

use candle_core::{CpuStorage, CustomOp2, Layout, Result, Shape, Tensor};
use rayon::prelude::*;

use super::contiguous::values;
use super::window::Windows;

/// # Shapes
/// - `rows` and result: `(images * places, channels)`
/// - `weight`: `(taps, channels)`
pub(crate) fn depthwise(rows: &Tensor, weight: &Tensor, windows: &Windows) -> Result<Tensor> {
    if super::is_fused(rows) {
        rows.contiguous()?.apply_op2(&weight.contiguous()?, Depthwise(*windows))
    } else {
        composed(rows, weight, windows)
    }
}

fn composed(rows: &Tensor, weight: &Tensor, windows: &Windows) -> Result<Tensor> {
    let (count, channels) = rows.dims2()?;
    let Windows { window, images, input, .. } = windows;
    let (kernel, padding) = (window.kernel, window.padding);
    let maps = rows
        .reshape((*images, input.height, input.width, channels))?
        .pad_with_zeros(1, padding, padding)?
        .pad_with_zeros(2, padding, padding)?;
    let of_tap = |tap: usize| -> Result<Tensor> {
        let shifted = maps.narrow(1, tap / kernel, input.height)?.narrow(2, tap % kernel, input.width)?;
        shifted.broadcast_mul(&weight.get(tap)?)
    };
    let mut sum = of_tap(0)?;
    for tap in 1..windows.taps() {
        sum = (sum + of_tap(tap)?)?;
    }
    sum.reshape((count, channels))
}

struct Depthwise(Windows);
struct WeightGradient(Windows);

impl CustomOp2 for Depthwise {
    fn name(&self) -> &'static str {
        "depthwise-convolution"
    }

    fn cpu_fwd(
        &self,
        storage: &CpuStorage,
        layout: &Layout,
        weight_storage: &CpuStorage,
        weight_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let maps = values(storage, layout)?;
        let weight = values(weight_storage, weight_layout)?;
        let (_rows, channels) = layout.shape().dims2()?;
        let mut ys = vec![0.; maps.len()];
        let image = self.0.input_places() * channels;
        ys.par_chunks_mut(image).zip(maps.par_chunks(image)).for_each(|(ys, map)| {
            pulp::Arch::new().dispatch(Convolve { windows: &self.0, channels, map, weight, ys });
        });
        Ok((CpuStorage::F32(ys), layout.shape().clone()))
    }

    fn bwd(
        &self,
        rows: &Tensor,
        weight: &Tensor,
        _ys: &Tensor,
        gradient: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let gradient = gradient.detach().contiguous()?;
        let turned = weight.detach().flip(&[0])?.contiguous()?;
        let of_rows = gradient.apply_op2_no_bwd(&turned, &Depthwise(self.0))?;
        let of_weight = rows.detach().apply_op2_no_bwd(&gradient, &WeightGradient(self.0))?;
        Ok((Some(of_rows), Some(of_weight)))
    }
}

impl CustomOp2 for WeightGradient {
    fn name(&self) -> &'static str {
        "depthwise-convolution-weight-gradient"
    }

    fn cpu_fwd(
        &self,
        storage: &CpuStorage,
        layout: &Layout,
        gradient_storage: &CpuStorage,
        gradient_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let maps = values(storage, layout)?;
        let gradients = values(gradient_storage, gradient_layout)?;
        let (_rows, channels) = layout.shape().dims2()?;
        let image = self.0.input_places() * channels;
        let length = self.0.taps() * channels;
        // Collected in order and added up by one thread: the same sum for any number of threads.
        let partial_sums: Vec<Vec<f32>> = maps
            .par_chunks(image)
            .zip(gradients.par_chunks(image))
            .map(|(map, gradient)| {
                let mut sums = vec![0.; length];
                let task = Correlate { windows: &self.0, channels, map, gradient, sums: &mut sums };
                pulp::Arch::new().dispatch(task);
                sums
            })
            .collect();
        Ok((CpuStorage::F32(super::add_up(&partial_sums, length)), Shape::from((self.0.taps(), channels))))
    }
}

/// Calls a method for all channels, many side by side: their sums then stay in registers.
macro_rules! for_channel_blocks {
    ($channels:expr, $task:ident, $method:ident) => {
        let mut channel = 0;
        while channel + 16 <= $channels {
            $task.$method::<16>(channel);
            channel += 16;
        }
        while channel + 4 <= $channels {
            $task.$method::<4>(channel);
            channel += 4;
        }
        while channel < $channels {
            $task.$method::<1>(channel);
            channel += 1;
        }
    };
}

#[inline(always)]
fn add_products<const N: usize>(sums: &mut [f32; N], left: &[f32], right: &[f32]) {
    let (Some(left), Some(right)) = (left.first_chunk::<N>(), right.first_chunk::<N>()) else { return };
    for lane in 0..N {
        sums[lane] += left[lane] * right[lane];
    }
}

/// One image forward.
struct Convolve<'a> {
    windows: &'a Windows,
    channels: usize,
    map: &'a [f32],
    weight: &'a [f32],
    ys: &'a mut [f32],
}

impl Convolve<'_> {
    #[inline(always)]
    fn block<const N: usize>(&mut self, channel: usize) {
        let Windows { window, input, .. } = self.windows;
        let channels = self.channels;
        for y in 0..input.height {
            let (rows, top) = self.windows.clip(y, input.height);
            for x in 0..input.width {
                let (columns, left) = self.windows.clip(x, input.width);
                let mut sums = [0f32; N];
                for (tap_y, from_y) in rows.clone().zip(top..) {
                    let values = &self.map[(from_y * input.width + left) * channels + channel..];
                    let weights =
                        &self.weight[(tap_y * window.kernel + columns.start) * channels + channel..];
                    for tap in 0..columns.len() {
                        add_products(&mut sums, &values[tap * channels..], &weights[tap * channels..]);
                    }
                }
                let place = (y * input.width + x) * channels + channel;
                self.ys[place..place + N].copy_from_slice(&sums);
            }
        }
    }
}

impl pulp::NullaryFnOnce for Convolve<'_> {
    type Output = ();

    #[inline(always)]
    fn call(mut self) {
        for_channel_blocks!(self.channels, self, block);
    }
}

/// The weight's gradient from one image.
struct Correlate<'a> {
    windows: &'a Windows,
    channels: usize,
    map: &'a [f32],
    gradient: &'a [f32],
    /// Per tap, then channel.
    sums: &'a mut [f32],
}

impl Correlate<'_> {
    #[inline(always)]
    fn block<const N: usize>(&mut self, channel: usize) {
        let Windows { window, input, .. } = self.windows;
        let channels = self.channels;
        // The output places whose window has this tap on the map.
        let reached = |tap: usize, length: usize| {
            window.padding.saturating_sub(tap)..(length + window.padding).saturating_sub(tap).min(length)
        };
        for tap in 0..self.windows.taps() {
            let (tap_y, tap_x) = (tap / window.kernel, tap % window.kernel);
            let columns = reached(tap_x, input.width);
            let mut sums = [0f32; N];
            for y in reached(tap_y, input.height) {
                if columns.is_empty() {
                    break;
                }
                let from =
                    (y + tap_y - window.padding) * input.width + columns.start + tap_x - window.padding;
                let values = &self.map[from * channels + channel..];
                let gradients = &self.gradient[(y * input.width + columns.start) * channels + channel..];
                for column in 0..columns.len() {
                    add_products(&mut sums, &values[column * channels..], &gradients[column * channels..]);
                }
            }
            self.sums[tap * channels + channel..][..N].copy_from_slice(&sums);
        }
    }
}

impl pulp::NullaryFnOnce for Correlate<'_> {
    type Output = ();

    #[inline(always)]
    fn call(mut self) {
        for_channel_blocks!(self.channels, self, block);
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
        for (height, width, channels) in [(1, 1, 3), (2, 9, 21), (8, 5, 40)] {
            let window = Window { kernel: 7, stride: 1, padding: 3 };
            let windows = Windows::new(window, 3, ImageSize { height, width }).unwrap();
            assert_fused_agrees(&[&[3 * height * width, channels], &[49, channels]], |tensors| {
                depthwise(&tensors[0], &tensors[1], &windows).unwrap()
            });
        }
    }
}
