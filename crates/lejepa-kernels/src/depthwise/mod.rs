//! Depthwise convolution, stride 1, the map's size kept: every channel has a kernel of its own.
//!
//! ```text
//! y[place, c] = sum over taps of x[place + tap - padding, c] * weight[tap, c]
//! ```
//!
//! The gradient of `x` is the same with the kernel turned by half a turn; that of `weight` sums
//! `gradient[place, c] * x[place + tap - padding, c]` over places.

mod composed;
mod cpu;

use candle_core::{Result, Shape, Tensor};

pub(crate) use self::cpu::{convolve_image, correlate_image};
use crate::operation::{Backward, Operation, View, apply, compute};
use crate::{Windows, is_fused};

/// Convolves every channel with a kernel of its own.
///
/// # Shapes
/// - `rows` and result: `(images * places, channels)`
/// - `weight`: `(taps, channels)`
pub fn depthwise(rows: &Tensor, weight: &Tensor, windows: &Windows) -> Result<Tensor> {
    if is_fused(rows) {
        apply(Depthwise(*windows), [rows, weight])
    } else {
        composed::depthwise(rows, weight, windows)
    }
}

struct Depthwise(Windows);

impl Operation<2> for Depthwise {
    fn name(&self) -> &'static str {
        "depthwise-convolution"
    }

    fn cpu(&self, [rows, weight]: [View<'_>; 2]) -> Result<(Vec<f32>, Shape)> {
        let (_rows, channels) = rows.shape.dims2()?;
        Ok((cpu::forward(&rows, &weight, &self.0, channels), rows.shape.clone()))
    }

    fn backward(&self, backward: Backward<2>) -> Result<[Option<Tensor>; 2]> {
        let Backward { inputs: [rows, weight], gradient, .. } = backward;
        let (_rows, channels) = rows.dims2()?;
        let turned = weight.flip(&[0])?.contiguous()?;
        let of_rows = compute([&gradient, &turned], rows.shape(), |[gradient, turned]| {
            cpu::forward(&gradient, &turned, &self.0, channels)
        })?;
        let of_weight = compute([&rows, &gradient], weight.shape(), |[rows, gradient]| {
            cpu::weight_gradient(&rows, &gradient, &self.0, channels)
        })?;
        Ok([of_rows, of_weight].map(Some))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MapSize;
    use crate::agreement::assert_fused_agrees;
    use crate::window::Window;

    #[test]
    fn the_fused_form_agrees_with_the_composed_one() {
        for (kernel, height, width, channels) in
            [(7, 1, 1, 3), (7, 2, 9, 21), (7, 8, 5, 40), (3, 5, 6, 5), (9, 4, 12, 18)]
        {
            let window = Window { kernel, stride: 1, padding: kernel / 2 };
            let windows = Windows::new(window, 3, MapSize { height, width }).unwrap();
            assert_fused_agrees(
                &[&[3 * height * width, channels], &[kernel * kernel, channels]],
                |tensors| depthwise(&tensors[0], &tensors[1], &windows).unwrap(),
            );
        }
    }
}
