//! The largest value of every window on the CPU.

use crate::Windows;
use crate::filled::filled;
use crate::wide::wide;

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

pub(super) fn forward(maps: &[f32], windows: &Windows, channels: usize) -> Vec<f32> {
    let (inputs, outputs) = (windows.input.places() * channels, windows.output.places() * channels);
    filled(windows.images * outputs, outputs, |image, pooled| {
        let map = &maps[image * inputs..][..inputs];
        let mut largest = Largest::new(channels);
        wide(
            #[inline(always)]
            || {
                for (place, pooled) in pooled.chunks_exact_mut(channels).enumerate() {
                    largest.find(windows, map, place);
                    pooled.copy_from_slice(&largest.values);
                }
            },
        );
    })
}

pub(super) fn gradient(maps: &[f32], gradients: &[f32], windows: &Windows, channels: usize) -> Vec<f32> {
    let (inputs, outputs) = (windows.input.places() * channels, windows.output.places() * channels);
    filled(maps.len(), inputs, |image, result| {
        let (map, gradients) = (&maps[image * inputs..][..inputs], &gradients[image * outputs..][..outputs]);
        let mut largest = Largest::new(channels);
        wide(
            #[inline(always)]
            || {
                for (place, gradients) in gradients.chunks_exact(channels).enumerate() {
                    largest.find(windows, map, place);
                    for (channel, (&at, gradient)) in largest.places.iter().zip(gradients).enumerate() {
                        result[at as usize * channels + channel] += gradient;
                    }
                }
            },
        );
    })
}
