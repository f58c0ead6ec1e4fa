//! The windows of a feature map as rows, so that a convolution is one matrix product.
//!
//! ```text
//! unfolded[(image, output), (tap_y, tap_x, channel)] = rows[(image, stride * output + tap - padding), channel]
//! ```
//!
//! Zero beyond the edge. The gradient folds the windows back: every place sums what its copies receive.

use candle_core::{CpuStorage, CustomOp1, Layout, Result, Shape, Tensor};
use rayon::prelude::*;

use super::contiguous::values;
use super::window::Windows;

/// # Shapes
/// - `rows`: `(images * input places, groups * channels)`
/// - result: `(groups, images * output places, taps * channels)`
pub fn unfold(rows: &Tensor, windows: &Windows, groups: usize) -> Result<Tensor> {
    if super::is_fused(rows) {
        let channels = rows.dim(1)? / groups.max(1);
        return rows.contiguous()?.apply_op1(Unfold(Plan { windows: *windows, groups, channels }));
    }
    let gathered = windows.gather(rows, 0.)?;
    let (places, taps, channels) = gathered.dims3()?;
    gathered
        .reshape((places, taps, groups, channels / groups))?
        .permute((2, 0, 1, 3))? // (groups, places, taps, channels of a group)
        .reshape((groups, places, taps * channels / groups))
}

#[derive(Clone, Copy)]
struct Plan {
    windows: Windows,
    groups: usize,
    /// Channels of a group.
    channels: usize,
}

struct Unfold(Plan);
struct Fold(Plan);

/// Values that are copied from a window's row: they lie together in the map and in the unfolded row.
struct Run {
    unfolded: usize,
    map: usize,
    length: usize,
}

impl Plan {
    fn columns(&self) -> usize {
        self.windows.taps() * self.channels
    }

    /// The runs of the window at an output place of one image.
    fn runs(self, group: usize, place: usize) -> impl Iterator<Item = Run> {
        let Windows { window, input, output, .. } = self.windows;
        let (rows, top) = self.windows.clip(place / output.width, input.height);
        let (columns, left) = self.windows.clip(place % output.width, input.width);
        // The taps of a row lie together if a group has all channels.
        let together = if self.groups == 1 { columns.len() } else { 1 };
        let pieces = columns.len().checked_div(together).unwrap_or(0);
        rows.clone().flat_map(move |tap_y| {
            let y = top + tap_y - rows.start;
            (0..pieces).map(move |piece| Run {
                unfolded: (tap_y * window.kernel + columns.start + piece) * self.channels,
                map: ((y * input.width + left + piece) * self.groups + group) * self.channels,
                length: together * self.channels,
            })
        })
    }
}

impl CustomOp1 for Unfold {
    fn name(&self) -> &'static str {
        "unfold"
    }

    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let maps = values(storage, layout)?;
        let Plan { windows, groups, .. } = self.0;
        let places = windows.output_places();
        let columns = self.0.columns();
        let map_length = maps.len() / windows.images.max(1);
        let mut unfolded = vec![0.; groups * windows.images * places * columns];
        unfolded.par_chunks_mut((places * columns).max(1)).enumerate().for_each(|(task, unfolded)| {
            let (group, image) = (task / windows.images, task % windows.images);
            let map = &maps[image * map_length..][..map_length];
            for (place, row) in unfolded.chunks_exact_mut(columns).enumerate() {
                for Run { unfolded, map: start, length } in self.0.runs(group, place) {
                    row[unfolded..][..length].copy_from_slice(&map[start..][..length]);
                }
            }
        });
        Ok((CpuStorage::F32(unfolded), Shape::from((groups, windows.images * places, columns))))
    }

    fn bwd(&self, _rows: &Tensor, _unfolded: &Tensor, gradient: &Tensor) -> Result<Option<Tensor>> {
        Ok(Some(gradient.detach().contiguous()?.apply_op1_no_bwd(&Fold(self.0))?))
    }
}

impl CustomOp1 for Fold {
    fn name(&self) -> &'static str {
        "fold"
    }

    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let gradients = values(storage, layout)?;
        let Plan { windows, groups, channels } = self.0;
        let map_length = windows.input_places() * groups * channels;
        let unfolded_length = windows.output_places() * self.0.columns();
        let mut maps = vec![0.; windows.images * map_length];
        // An image is summed by one thread, in one order.
        maps.par_chunks_mut(map_length.max(1)).enumerate().for_each(|(image, map)| {
            for group in 0..groups {
                let start = (group * windows.images + image) * unfolded_length;
                let gradients = &gradients[start..][..unfolded_length];
                for (place, row) in gradients.chunks_exact(self.0.columns()).enumerate() {
                    for Run { unfolded, map: start, length } in self.0.runs(group, place) {
                        let sums = map[start..][..length].iter_mut();
                        sums.zip(&row[unfolded..][..length]).for_each(|(sum, gradient)| *sum += gradient);
                    }
                }
            }
        });
        let rows = windows.images * windows.input_places();
        Ok((CpuStorage::F32(maps), Shape::from((rows, groups * channels))))
    }
}

#[cfg(test)]
mod tests {
    use super::super::agreement::assert_fused_agrees;
    use super::super::window::Window;
    use super::*;
    use crate::MapSize;

    #[test]
    fn the_fused_form_agrees_with_the_composed_one() {
        let size = MapSize { height: 5, width: 8 };
        for (kernel, stride, padding, groups) in
            [(3, 1, 1, 1), (3, 2, 1, 2), (1, 2, 0, 1), (7, 2, 3, 1), (2, 2, 0, 3), (4, 4, 0, 1)]
        {
            let windows = Windows::new(Window { kernel, stride, padding }, 3, size).unwrap();
            assert_fused_agrees(&[&[3 * 40, 6]], |tensors| unfold(&tensors[0], &windows, groups).unwrap());
        }
    }
}
