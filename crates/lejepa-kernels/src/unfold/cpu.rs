//! The windows of a feature map as rows, on the CPU.

use rayon::prelude::*;

use crate::Windows;

/// The windows of a map whose channels are in groups.
#[derive(Clone, Copy)]
pub(super) struct Grouped {
    pub(super) windows: Windows,
    pub(super) groups: usize,
    /// Channels of a group.
    pub(super) channels: usize,
}

/// Values that are copied from a window's row: they lie together in the map and in the unfolded row.
struct Run {
    unfolded: usize,
    map: usize,
    length: usize,
}

impl Grouped {
    /// Values of an unfolded row.
    pub(super) fn columns(&self) -> usize {
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

    pub(super) fn unfold(&self, maps: &[f32]) -> Vec<f32> {
        let Self { windows, groups, .. } = *self;
        let places = windows.output.places();
        let columns = self.columns();
        let map_length = maps.len() / windows.images.max(1);
        let mut unfolded = vec![0.; groups * windows.images * places * columns];
        unfolded.par_chunks_mut((places * columns).max(1)).enumerate().for_each(|(task, unfolded)| {
            let (group, image) = (task / windows.images, task % windows.images);
            let map = &maps[image * map_length..][..map_length];
            for (place, row) in unfolded.chunks_exact_mut(columns).enumerate() {
                for Run { unfolded, map: start, length } in self.runs(group, place) {
                    row[unfolded..][..length].copy_from_slice(&map[start..][..length]);
                }
            }
        });
        unfolded
    }

    /// Sums what the copies of every place receive.
    pub(super) fn fold(&self, gradients: &[f32]) -> Vec<f32> {
        let Self { windows, groups, channels } = *self;
        let map_length = windows.input.places() * groups * channels;
        let unfolded_length = windows.output.places() * self.columns();
        let mut maps = vec![0.; windows.images * map_length];
        // An image is summed by one thread, in one order.
        maps.par_chunks_mut(map_length.max(1)).enumerate().for_each(|(image, map)| {
            for group in 0..groups {
                let start = (group * windows.images + image) * unfolded_length;
                let gradients = &gradients[start..][..unfolded_length];
                for (place, row) in gradients.chunks_exact(self.columns()).enumerate() {
                    for Run { unfolded, map: start, length } in self.runs(group, place) {
                        let sums = map[start..][..length].iter_mut();
                        sums.zip(&row[unfolded..][..length]).for_each(|(sum, gradient)| *sum += gradient);
                    }
                }
            }
        });
        maps
    }
}
