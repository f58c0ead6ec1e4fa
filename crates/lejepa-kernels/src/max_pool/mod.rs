//! The largest value of every window, per channel; its gradient goes to the first of equals.

mod composed;
mod cpu;

use candle_core::{Result, Shape, Tensor};

use crate::operation::{Backward, Operation, View, apply, compute};
use crate::{Windows, is_fused};

/// The largest value of every window.
///
/// # Shapes
/// - `rows`: `(images * input places, channels)`
/// - result: `(images * output places, channels)`
pub fn max_pool(rows: &Tensor, windows: &Windows) -> Result<Tensor> {
    if is_fused(rows) { apply(MaxPool(*windows), [rows]) } else { composed::max_pool(rows, windows) }
}

struct MaxPool(Windows);

impl Operation<1> for MaxPool {
    fn name(&self) -> &'static str {
        "max-pool"
    }

    fn cpu(&self, [rows]: [View<'_>; 1]) -> Result<(Vec<f32>, Shape)> {
        let (_rows, channels) = rows.shape.dims2()?;
        let shape = (self.0.images * self.0.output.places(), channels);
        Ok((cpu::forward(&rows, &self.0, channels), Shape::from(shape)))
    }

    fn backward(&self, backward: Backward<1>) -> Result<[Option<Tensor>; 1]> {
        let Backward { inputs: [rows], gradient, .. } = backward;
        let (_rows, channels) = rows.dims2()?;
        let of_rows = compute([&rows, &gradient], rows.shape(), |[rows, gradient]| {
            cpu::gradient(&rows, &gradient, &self.0, channels)
        })?;
        Ok([Some(of_rows)])
    }
}

#[cfg(test)]
mod tests {
    use candle_core::{Device, Var};

    use super::*;
    use crate::MapSize;
    use crate::agreement::assert_fused_agrees;
    use crate::window::Window;

    const STEM: Window = Window { kernel: 3, stride: 2, padding: 1 };

    #[test]
    fn the_fused_form_agrees_with_the_composed_one() {
        for (height, width) in [(1, 1), (5, 8), (7, 3)] {
            let windows = Windows::new(STEM, 3, MapSize { height, width }).unwrap();
            assert_fused_agrees(&[&[3 * height * width, 5]], |tensors| {
                max_pool(&tensors[0], &windows).unwrap()
            });
        }
    }

    #[test]
    fn the_first_of_equal_values_receives_the_gradient() {
        let windows = Windows::new(STEM, 1, MapSize { height: 2, width: 2 }).unwrap();
        for dtype in [candle_core::DType::F32, candle_core::DType::F64] {
            let rows = Var::ones((4, 1), dtype, &Device::Cpu).unwrap();
            let gradients = max_pool(&rows, &windows).unwrap().sum_all().unwrap().backward().unwrap();
            let gradient = gradients.get(&rows).unwrap().to_dtype(candle_core::DType::F32).unwrap();
            assert_eq!(gradient.flatten_all().unwrap().to_vec1::<f32>().unwrap(), [1., 0., 0., 0.]);
        }
    }
}
