//! Convolution and its two gradients on the CPU, without unfolding the windows.
//!
//! The result and the gradient of the rows are the same product of [`Sources`] with kernels in [`Panels`]; taps beyond
//! the edge are passed over, which saves more than half of the work on maps of 2x2 places. Every value is summed by one
//! thread in one order, so that the number of threads does not matter.

mod kernel_gradient;
mod padded;
mod panels;
mod reach;
mod sources;

use self::kernel_gradient::gradient_of_kernel;
use self::padded::Padded;
use self::panels::Panels;
use self::reach::Reaches;
use self::sources::Sources;
use crate::Windows;

/// Outputs, channels and taps of a kernel.
type KernelSize = (usize, usize, usize);

pub(super) fn forward(rows: &[f32], weight: &[f32], size: KernelSize, windows: &Windows) -> Vec<f32> {
    let (_outputs, channels, _taps) = size;
    let maps = Padded::new(rows, windows, channels);
    let reaches = Reaches::forward(&maps.windows);
    let panels = Panels::of_outputs(weight, size);
    Sources { maps: &maps.rows, images: windows.images, reaches: &reaches }.multiply(&panels)
}

/// The gradient of the rows.
pub(super) fn input_gradient(
    gradient: &[f32],
    weight: &[f32],
    size: KernelSize,
    windows: &Windows,
) -> Vec<f32> {
    let reaches = Reaches::backward(windows);
    let panels = Panels::of_inputs(weight, size, &reaches);
    Sources { maps: gradient, images: windows.images, reaches: &reaches }.multiply(&panels)
}

pub(super) fn kernel_gradient(
    rows: &[f32],
    gradient: &[f32],
    (outputs, channels, _taps): KernelSize,
    windows: &Windows,
) -> Vec<f32> {
    gradient_of_kernel(&Padded::new(rows, windows, channels), gradient, [channels, outputs])
}
