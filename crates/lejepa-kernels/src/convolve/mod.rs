//! Convolution of feature maps, and its two gradients.
//!
//! ```text
//! y[place, o] = sum over taps, c of x[stride * place + tap - padding, c] W[o, c, tap]
//! d x[place, c] = sum over taps, o of g[(place + padding - tap) / stride, o] W[o, c, tap]     where that is a place
//! d W[o, c, tap] = sum over places of g[place, o] x[stride * place + tap - padding, c]
//! ```

mod composed;
mod cpu;

use candle_core::{Result, Shape, Tensor};

use crate::operation::{Backward, Operation, View, apply, compute};
use crate::{Windows, is_fused};

/// Convolves feature maps.
///
/// # Shapes
/// - `rows`: `(images * input places, channels)`
/// - `weight`: `(outputs, channels, taps)`
/// - result: `(images * output places, outputs)`
pub fn convolve(rows: &Tensor, weight: &Tensor, windows: &Windows) -> Result<Tensor> {
    if is_fused(rows) {
        apply(Convolve(*windows), [rows, weight])
    } else {
        composed::convolve(rows, weight, windows)
    }
}

struct Convolve(Windows);

impl Operation<2> for Convolve {
    fn name(&self) -> &'static str {
        "convolve"
    }

    fn cpu(&self, [rows, weight]: [View<'_>; 2]) -> Result<(Vec<f32>, Shape)> {
        let size @ (outputs, _channels, _taps) = weight.shape.dims3()?;
        let shape = (self.0.images * self.0.output.places(), outputs);
        Ok((cpu::forward(&rows, &weight, size, &self.0), Shape::from(shape)))
    }

    fn backward(&self, backward: Backward<2>) -> Result<[Option<Tensor>; 2]> {
        let Backward { inputs: [rows, weight], is_needed: [of_rows_is_needed, _], gradient, .. } = backward;
        let of_rows = of_rows_is_needed.then(|| input_gradient(&weight, &gradient, &self.0)).transpose()?;
        Ok([of_rows, Some(kernel_gradient(&rows, &gradient, weight.dims3()?, &self.0)?)])
    }
}

/// The gradient of the rows.
///
/// # Shapes
/// - `weight`: `(outputs, channels, taps)`; `gradient`: `(images * output places, outputs)`
/// - result: `(images * input places, channels)`
pub(crate) fn input_gradient(weight: &Tensor, gradient: &Tensor, windows: &Windows) -> Result<Tensor> {
    let size @ (_outputs, channels, _taps) = weight.dims3()?;
    let shape = (windows.images * windows.input.places(), channels);
    compute([gradient, weight], shape, |[gradient, weight]| {
        cpu::input_gradient(&gradient, &weight, size, windows)
    })
}

/// The gradient of a kernel of this size.
///
/// # Shapes
/// - `rows`: `(images * input places, channels)`; `gradient`: `(images * output places, outputs)`
/// - result: `(outputs, channels, taps)`
pub(crate) fn kernel_gradient(
    rows: &Tensor,
    gradient: &Tensor,
    size: (usize, usize, usize),
    windows: &Windows,
) -> Result<Tensor> {
    compute([rows, gradient], size, |[rows, gradient]| cpu::kernel_gradient(&rows, &gradient, size, windows))
}

#[cfg(test)]
mod tests {
    use candle_core::{Device, Var};

    use super::*;
    use crate::MapSize;
    use crate::agreement::{assert_fused_agrees, random};
    use crate::window::Window;

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
