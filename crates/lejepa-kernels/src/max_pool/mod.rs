//! The largest value of every window, per channel; its gradient goes to the first of equals.

use candle_core::{CpuStorage, CustomOp1, CustomOp2, Layout, Result, Shape, Tensor};

use super::contiguous::values;
use super::filled::filled;
use super::wide::wide;
use super::window::Windows;

/// # Shapes
/// - `rows`: `(images * input places, channels)`
/// - result: `(images * output places, channels)`
pub fn max_pool(rows: &Tensor, windows: &Windows) -> Result<Tensor> {
    if super::is_fused(rows) {
        return rows.contiguous()?.apply_op1(MaxPool(*windows));
    }
    let gathered = windows.gather(rows, f64::NEG_INFINITY)?; // (places, taps, channels)
    let first = gathered.detach().argmax_keepdim(1)?.contiguous()?;
    gathered.gather(&first, 1)?.squeeze(1)
}

struct MaxPool(Windows);
struct MaxPoolGradient(Windows);

/// The largest value of a window per channel, and the place in the map where each is.
struct Largest {
    values: Vec<f32>,
    places: Vec<u32>,
}

impl Largest {
    fn new(channels: usize) -> Self {
        Self { values: vec![0.; channels], places: vec![0; channels] }
    }

    #[inline(always)]
    fn find(&mut self, windows: &Windows, map: &[f32], place: usize) {
        let Windows { input, output, .. } = windows;
        let channels = self.values.len();
        let (rows, top) = windows.clip(place / output.width, input.height);
        let (columns, left) = windows.clip(place % output.width, input.width);
        self.values.fill(f32::NEG_INFINITY);
        for y in top..top + rows.len() {
            for x in left..left + columns.len() {
                let place = y * input.width + x;
                let values = &map[place * channels..][..channels];
                let largest = self.values.iter_mut().zip(&mut self.places);
                for ((largest, at), &value) in largest.zip(values) {
                    // Not a number wins, as in PyTorch: it must not be hidden.
                    let better = (value > *largest) | value.is_nan();
                    let (before, at_before) = (*largest, *at);
                    *largest = if better { value } else { before };
                    *at = if better { place as u32 } else { at_before };
                }
            }
        }
    }
}

impl CustomOp1 for MaxPool {
    fn name(&self) -> &'static str {
        "max-pool"
    }

    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let maps = values(storage, layout)?;
        let (_rows, channels) = layout.shape().dims2()?;
        let (inputs, outputs) = (self.0.input_places() * channels, self.0.output_places() * channels);
        let pooled = filled(self.0.images * outputs, outputs, |image, pooled| {
            let map = &maps[image * inputs..][..inputs];
            let mut largest = Largest::new(channels);
            wide(
                #[inline(always)]
                || {
                    for (place, pooled) in pooled.chunks_exact_mut(channels).enumerate() {
                        largest.find(&self.0, map, place);
                        pooled.copy_from_slice(&largest.values);
                    }
                },
            );
        });
        Ok((CpuStorage::F32(pooled), Shape::from((self.0.images * self.0.output_places(), channels))))
    }

    fn bwd(&self, rows: &Tensor, _pooled: &Tensor, gradient: &Tensor) -> Result<Option<Tensor>> {
        let gradient = gradient.detach().contiguous()?;
        Ok(Some(rows.detach().apply_op2_no_bwd(&gradient, &MaxPoolGradient(self.0))?))
    }
}

impl CustomOp2 for MaxPoolGradient {
    fn name(&self) -> &'static str {
        "max-pool-gradient"
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
        let (inputs, outputs) = (self.0.input_places() * channels, self.0.output_places() * channels);
        let result = filled(maps.len(), inputs, |image, result| {
            let (map, gradients) =
                (&maps[image * inputs..][..inputs], &gradients[image * outputs..][..outputs]);
            let mut largest = Largest::new(channels);
            wide(
                #[inline(always)]
                || {
                    for (place, gradients) in gradients.chunks_exact(channels).enumerate() {
                        largest.find(&self.0, map, place);
                        for (channel, (&at, gradient)) in largest.places.iter().zip(gradients).enumerate() {
                            result[at as usize * channels + channel] += gradient;
                        }
                    }
                },
            );
        });
        Ok((CpuStorage::F32(result), layout.shape().clone()))
    }
}

#[cfg(test)]
mod tests {
    use candle_core::{Device, Var};

    use super::super::agreement::assert_fused_agrees;
    use super::super::window::Window;
    use super::*;
    use crate::MapSize;

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
