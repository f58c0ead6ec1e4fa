//! Depthwise convolution on the CPU, image by image.

use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use crate::Windows;
use crate::filled::filled;
use crate::sums::add_up;

/// All images forward, or backward with a kernel that is turned.
pub(super) fn forward(maps: &[f32], weight: &[f32], windows: &Windows, channels: usize) -> Vec<f32> {
    let length = windows.input.places() * channels;
    filled(maps.len(), length, |image, ys| {
        let map = &maps[image * length..][..length];
        convolve_image(windows, channels, map, weight, ys);
    })
}

/// The weight's gradient.
pub(super) fn weight_gradient(
    maps: &[f32],
    gradients: &[f32],
    windows: &Windows,
    channels: usize,
) -> Vec<f32> {
    let image = windows.input.places() * channels;
    let length = windows.taps() * channels;
    // Collected in order and added up by one thread: the same sum for any number of threads.
    let partial_sums: Vec<Vec<f32>> = maps
        .par_chunks(image)
        .zip(gradients.par_chunks(image))
        .map(|(map, gradient)| {
            let mut sums = vec![0.; length];
            correlate_image(windows, channels, map, gradient, &mut sums);
            sums
        })
        .collect();
    add_up(&partial_sums, length)
}

/// One image forward, or backward with a kernel that is turned.
///
/// # Shapes
/// - `map` and `ys`: `(places, channels)`; `weight`: `(taps, channels)`
pub(crate) fn convolve_image(
    windows: &Windows,
    channels: usize,
    map: &[f32],
    weight: &[f32],
    ys: &mut [f32],
) {
    Arch::new().dispatch(Convolve { image: Image { windows, channels }, map, weight, ys });
}

/// Adds the weight's gradient from one image.
///
/// # Shapes
/// - `map` and `gradient`: `(places, channels)`; `sums`: `(taps, channels)`
pub(crate) fn correlate_image(
    windows: &Windows,
    channels: usize,
    map: &[f32],
    gradient: &[f32],
    sums: &mut [f32],
) {
    Arch::new().dispatch(Correlate { image: Image { windows, channels }, map, gradient, sums });
}

/// One image: its channels are worked on a vector of the processor at a time.
struct Image<'a> {
    windows: &'a Windows,
    channels: usize,
}

/// Output places of a line whose sums are made side by side.
const SIDE_BY_SIDE: usize = 4;
/// Taps of a row whose sums are made side by side: all of ConvNeXt's.
const TAPS: usize = 7;

impl Image<'_> {
    /// Places of a line with its borders, which the last sums of a line may read beyond.
    fn padded_width(&self) -> usize {
        self.windows.input.width.next_multiple_of(SIDE_BY_SIDE) + self.windows.window.kernel
    }

    /// Channels from `first` on, as many as a vector has, of every place: `(height, padded width)`.
    #[inline(always)]
    fn lines<S: Simd>(&self, simd: S, map: &[f32], first: usize, lines: &mut [S::f32s]) {
        let padding = self.windows.window.padding;
        let meant = S::F32_LANES.min(self.channels - first);
        let maps = map.chunks_exact(self.windows.input.width * self.channels);
        for (line, map) in lines.chunks_exact_mut(self.padded_width()).zip(maps) {
            for (to, place) in line[padding..].iter_mut().zip(map.chunks_exact(self.channels)) {
                *to = simd.partial_load_f32s(&place[first..first + meant]);
            }
        }
    }

    /// Room for [`lines`](Self::lines), with borders of zeros.
    #[inline(always)]
    fn room<S: Simd>(&self, simd: S) -> Vec<S::f32s> {
        vec![simd.splat_f32s(0.); self.windows.input.height * self.padded_width()]
    }
}

/// One image forward.
struct Convolve<'a> {
    image: Image<'a>,
    map: &'a [f32],
    weight: &'a [f32],
    ys: &'a mut [f32],
}

impl WithSimd for Convolve<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Image { windows: Windows { window, input, .. }, channels } = self.image;
        let (kernel, padded) = (window.kernel, self.image.padded_width());
        let mut lines = self.image.room(simd);
        for first in (0..channels).step_by(S::F32_LANES) {
            let meant = S::F32_LANES.min(channels - first);
            self.image.lines(simd, self.map, first, &mut lines);
            let weights: Vec<S::f32s> = (self.weight.chunks_exact(channels))
                .map(|weights| simd.partial_load_f32s(&weights[first..first + meant]))
                .collect();
            for y in 0..input.height {
                let (rows, top) = self.image.windows.clip(y, input.height);
                let weights = &weights[rows.start * kernel..rows.end * kernel];
                let ys = &mut self.ys[y * input.width * channels..][..input.width * channels];
                for (ys, x) in ys.chunks_mut(SIDE_BY_SIDE * channels).zip((0..).step_by(SIDE_BY_SIDE)) {
                    let mut sums = [simd.splat_f32s(0.); SIDE_BY_SIDE];
                    for (weights, line) in
                        weights.chunks_exact(kernel).zip(lines[top * padded..].chunks_exact(padded))
                    {
                        let windows = line[x..][..kernel + SIDE_BY_SIDE - 1].windows(SIDE_BY_SIDE);
                        for (weight, values) in weights.iter().zip(windows) {
                            for (sum, value) in sums.iter_mut().zip(values) {
                                *sum = simd.mul_add_e_f32s(*weight, *value, *sum);
                            }
                        }
                    }
                    for (ys, sum) in ys.chunks_exact_mut(channels).zip(sums) {
                        simd.partial_store_f32s(&mut ys[first..first + meant], sum);
                    }
                }
            }
        }
    }
}

/// The weight's gradient from one image.
struct Correlate<'a> {
    image: Image<'a>,
    map: &'a [f32],
    gradient: &'a [f32],
    /// Per tap, then channel.
    sums: &'a mut [f32],
}

impl WithSimd for Correlate<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        let (mut lines, mut gradients) = (self.image.room(simd), self.image.room(simd));
        for first in (0..self.image.channels).step_by(S::F32_LANES) {
            self.image.lines(simd, self.map, first, &mut lines);
            self.image.lines(simd, self.gradient, first, &mut gradients);
            let kernel = self.image.windows.window.kernel;
            for tap_y in 0..kernel {
                let mut tap_x = 0;
                while tap_x + TAPS <= kernel {
                    self.sum::<S, TAPS>(simd, [&lines, &gradients], first, [tap_y, tap_x]);
                    tap_x += TAPS;
                }
                while tap_x < kernel {
                    self.sum::<S, 1>(simd, [&lines, &gradients], first, [tap_y, tap_x]);
                    tap_x += 1;
                }
            }
        }
    }
}

impl Correlate<'_> {
    /// `N` taps of a row from a tap on.
    #[inline(always)]
    fn sum<S: Simd, const N: usize>(
        &mut self,
        simd: S,
        [lines, gradients]: [&[S::f32s]; 2],
        first: usize,
        [tap_y, tap_x]: [usize; 2],
    ) {
        let Image { windows: Windows { window, input, .. }, channels } = self.image;
        let padded = self.image.padded_width();
        let mut sums = [simd.splat_f32s(0.); N];
        for (y, gradients) in gradients.chunks_exact(padded).enumerate() {
            // The line of the map under this row of the kernel, if there is one.
            let Some(from) = (y + tap_y).checked_sub(window.padding).filter(|from| *from < input.height)
            else {
                continue;
            };
            let gradients = &gradients[window.padding..][..input.width];
            let values = lines[from * padded + tap_x..][..input.width + N - 1].windows(N);
            for (gradient, values) in gradients.iter().zip(values) {
                for (sum, value) in sums.iter_mut().zip(values) {
                    *sum = simd.mul_add_e_f32s(*gradient, *value, *sum);
                }
            }
        }
        let meant = S::F32_LANES.min(channels - first);
        for (tap, sum) in sums.into_iter().enumerate() {
            let place = (tap_y * window.kernel + tap_x + tap) * channels + first;
            let to = &mut self.sums[place..place + meant];
            simd.partial_store_f32s(to, simd.add_f32s(simd.partial_load_f32s(to), sum));
        }
    }
}
