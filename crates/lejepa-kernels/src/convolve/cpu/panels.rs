//! Kernels in the order in which products read them.
//!
//! ```text
//! panel   for every tap, for every channel that is summed over: the weights of `width` targets
//! ```

use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use super::reach::Reaches;

/// Vectors of a processor that a panel is wide.
pub(super) const VECTORS: usize = 2;

/// Inputs whose weights are packed together.
const AT_A_TIME: usize = 8;

/// A kernel in panels; the last one ends in targets of zeros.
pub(super) struct Panels {
    pub(super) values: Vec<f32>,
    /// Targets of a panel.
    pub(super) width: usize,
    /// Channels that are summed over.
    pub(super) depth: usize,
    /// Channels that come out.
    pub(super) targets: usize,
    taps: usize,
}

/// Finds how wide panels are on this processor.
struct Width;

impl WithSimd for Width {
    type Output = usize;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) -> usize {
        VECTORS * S::F32_LANES
    }
}

pub(super) fn width() -> usize {
    Arch::new().dispatch(Width)
}

impl Panels {
    /// Values of a panel.
    pub(super) fn length(&self) -> usize {
        self.taps * self.depth * self.width
    }

    fn zeros(depth: usize, targets: usize, taps: usize) -> Self {
        let width = width();
        let values = vec![0.; targets.next_multiple_of(width) * depth * taps];
        Self { values, width, depth, targets, taps }
    }

    /// For outputs from inputs.
    ///
    /// # Shapes
    /// - `weight`: `(outputs, inputs, taps)`
    pub(super) fn of_outputs(weight: &[f32], (outputs, inputs, taps): (usize, usize, usize)) -> Self {
        let mut panels = Self::zeros(inputs, outputs, taps);
        let (length, width) = (panels.length(), panels.width);
        let kernels = weight.par_chunks(width * inputs * taps);
        panels.values.par_chunks_mut(length.max(1)).zip(kernels).for_each(|(panel, kernels)| {
            // A few inputs at a time: what is written stays in the first cache until it is full.
            for first in (0..inputs).step_by(AT_A_TIME) {
                let last = inputs.min(first + AT_A_TIME);
                for (lane, kernel) in kernels.chunks_exact(inputs * taps).enumerate() {
                    let weights = kernel[first * taps..last * taps].chunks_exact(taps);
                    for (input, weights) in (first..).zip(weights) {
                        for (tap, weight) in weights.iter().enumerate() {
                            panel[(tap * inputs + input) * width + lane] = *weight;
                        }
                    }
                }
            }
        });
        panels
    }

    /// For gradients of inputs from those of outputs.
    ///
    /// # Shapes
    /// - `weight`: `(outputs, inputs, taps)`
    pub(super) fn of_inputs(
        weight: &[f32],
        (outputs, inputs, taps): (usize, usize, usize),
        reaches: &Reaches,
    ) -> Self {
        let mut panels = Self::zeros(outputs, inputs, taps);
        let (length, width) = (panels.length(), panels.width);
        let side = reaches.taps.len();
        let order: Vec<usize> =
            reaches.taps.iter().flat_map(|y| reaches.taps.iter().map(move |x| y * side + x)).collect();
        panels.values.par_chunks_mut(length.max(1)).enumerate().for_each(|(index, panel)| {
            let first = index * width;
            let lanes = width.min(inputs - first);
            for (output, kernel) in weight.chunks_exact(inputs * taps).enumerate() {
                let kernel = &kernel[first * taps..][..lanes * taps];
                for (place, tap) in order.iter().enumerate() {
                    let to = &mut panel[(place * outputs + output) * width..][..lanes];
                    to.iter_mut().zip(kernel[*tap..].iter().step_by(taps)).for_each(|(to, from)| *to = *from);
                }
            }
        });
        panels
    }
}
