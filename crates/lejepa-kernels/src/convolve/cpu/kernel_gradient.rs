//! The gradient of a kernel: for every tap the product of the maps under it with the gradients, summed over places.

use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use super::padded::Padded;
use super::panels::{VECTORS, width};
use crate::Windows;

/// Places whose values are copied together before they are multiplied.
const PLACES: usize = 128;
/// Channels of a map that a thread works on at a time.
const CHANNELS: usize = 64;
/// Rather fewer than that, if there are not enough to share.
const FEW_CHANNELS: usize = 16;
/// Tasks to share.
const TASKS: usize = 4;

/// # Shapes
/// - `gradients`: `(images * output places, outputs)`
/// - result: `(outputs, channels, taps)`
pub(super) fn gradient_of_kernel(
    maps: &Padded<'_>,
    gradients: &[f32],
    [channels, outputs]: [usize; 2],
) -> Vec<f32> {
    let windows = &maps.windows;
    let taps = windows.taps();
    // Without an edge that cuts them, the taps of a row are one tap of many channels.
    let joined = if windows.window.padding == 0 { windows.window.kernel } else { 1 };
    let run = joined * channels;
    let at_a_time = if taps / joined * run.div_ceil(CHANNELS) < TASKS { FEW_CHANNELS } else { CHANNELS };
    let mut by_tap = vec![0.; taps * channels * outputs]; // (taps, channels, outputs)
    by_tap.par_chunks_mut((run * outputs).max(1)).enumerate().for_each(|(tap, sums)| {
        let pairs = pairs(windows, tap * joined, [channels, outputs]);
        sums.par_chunks_mut((at_a_time * outputs).max(1)).enumerate().for_each(|(part, sums)| {
            Arch::new().dispatch(Sum {
                maps: &maps.rows,
                gradients,
                pairs: &pairs,
                first: part * at_a_time,
                outputs,
                sums,
            });
        });
    });
    to_outputs(&by_tap, [channels, outputs, taps])
}

/// Where the values of a place under a tap begin, and where those of the gradient do.
#[derive(Clone, Copy)]
struct Pair {
    map: usize,
    gradient: usize,
}

/// All places on the map that the tap meets.
fn pairs(windows: &Windows, tap: usize, [channels, outputs]: [usize; 2]) -> Vec<Pair> {
    let Windows { window, images, input, output } = *windows;
    let (tap_y, tap_x) = (tap / window.kernel, tap % window.kernel);
    let met = |tap: usize, outputs: usize, inputs: usize| {
        let place = move |output: usize| (output * window.stride + tap).checked_sub(window.padding);
        (0..outputs).filter_map(move |output| Some((output, place(output).filter(|place| *place < inputs)?)))
    };
    let mut pairs = Vec::with_capacity(images * windows.output.places());
    for image in 0..images {
        for (to_y, from_y) in met(tap_y, output.height, input.height) {
            let (to, from) = (image * output.height + to_y, image * input.height + from_y);
            pairs.extend(met(tap_x, output.width, input.width).map(|(to_x, from_x)| Pair {
                map: (from * input.width + from_x) * channels,
                gradient: (to * output.width + to_x) * outputs,
            }));
        }
    }
    pairs
}

/// Some channels under one tap, with all outputs.
struct Sum<'a> {
    maps: &'a [f32],
    gradients: &'a [f32],
    pairs: &'a [Pair],
    /// The first of the channels.
    first: usize,
    outputs: usize,
    /// `(channels, outputs)`.
    sums: &'a mut [f32],
}

impl WithSimd for Sum<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        // What is summed has to fit in registers.
        if S::REGISTER_COUNT >= 32 { self.sum::<S, 8>(simd) } else { self.sum::<S, 4>(simd) }
    }
}

impl Sum<'_> {
    /// `C` channels at a time.
    #[inline(always)]
    fn sum<S: Simd, const C: usize>(self, simd: S) {
        let (width, outputs) = (VECTORS * S::F32_LANES, self.outputs);
        let channels = self.sums.len() / outputs;
        let mut maps = vec![0.; channels.next_multiple_of(C) * PLACES]; // (groups, places, C)
        let mut gradients = [[simd.splat_f32s(0.); VECTORS]; PLACES];
        for pairs in self.pairs.chunks(PLACES) {
            for (group, maps) in maps.chunks_exact_mut(C * PLACES).enumerate() {
                let meant = C.min(channels - group * C);
                let first = self.first + group * C;
                for (maps, pair) in maps.chunks_exact_mut(C).zip(pairs) {
                    let from = &self.maps[pair.map + first..][..meant];
                    match (<&mut [f32; C]>::try_from(&mut *maps), <&[f32; C]>::try_from(from)) {
                        (Ok(maps), Ok(from)) => *maps = *from,
                        _ => maps[..meant].copy_from_slice(from),
                    }
                }
            }
            for first in (0..outputs).step_by(width) {
                let meant = width.min(outputs - first);
                for (to, pair) in gradients.iter_mut().zip(pairs) {
                    let from = &self.gradients[pair.gradient + first..][..meant];
                    if let (&[left, right], []) = S::as_simd_f32s(from) {
                        *to = [left, right];
                    } else {
                        let (left, right) = from.split_at(meant.min(S::F32_LANES));
                        *to = [simd.partial_load_f32s(left), simd.partial_load_f32s(right)];
                    }
                }
                let gradients = &gradients[..pairs.len()];
                for (group, maps) in maps.chunks_exact(C * PLACES).enumerate() {
                    let products = products::<S, C>(simd, maps, gradients);
                    let sums = self.sums[group * C * outputs..].chunks_mut(outputs);
                    for (sums, products) in sums.zip(&products) {
                        let to = sums[first..first + meant].chunks_mut(S::F32_LANES);
                        for (to, product) in to.zip(products) {
                            let sum = simd.add_f32s(simd.partial_load_f32s(to), *product);
                            simd.partial_store_f32s(to, sum);
                        }
                    }
                }
            }
        }
    }
}

/// Sums over places of `C` channels with the vectors of a panel of gradients.
#[inline(always)]
fn products<S: Simd, const C: usize>(
    simd: S,
    maps: &[f32],
    gradients: &[[S::f32s; VECTORS]],
) -> [[S::f32s; VECTORS]; C] {
    let mut sums = [[simd.splat_f32s(0.); VECTORS]; C];
    let (maps, _) = maps.as_chunks::<C>();
    for (values, gradients) in maps.iter().zip(gradients) {
        for (sums, value) in sums.iter_mut().zip(values) {
            let value = simd.splat_f32s(*value);
            for (sum, gradient) in sums.iter_mut().zip(gradients) {
                *sum = simd.mul_add_e_f32s(*gradient, value, *sum);
            }
        }
    }
    sums
}

/// From `(taps, channels, outputs)` to `(outputs, channels, taps)`.
fn to_outputs(by_tap: &[f32], [channels, outputs, taps]: [usize; 3]) -> Vec<f32> {
    let mut result = vec![0.; by_tap.len()];
    let kernel = channels * taps;
    // As many kernels at a time as a read of the cache brings.
    let group = width().max(16);
    result.par_chunks_mut((group * kernel).max(1)).enumerate().for_each(|(index, result)| {
        let first = index * group;
        for channel in 0..channels {
            for tap in 0..taps {
                let from = &by_tap[(tap * channels + channel) * outputs + first..];
                let to = result.iter_mut().skip(channel * taps + tap).step_by(kernel);
                to.zip(from).for_each(|(to, from)| *to = *from);
            }
        }
    });
    result
}
