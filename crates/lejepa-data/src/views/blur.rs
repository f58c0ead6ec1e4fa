//! Gaussian blur, as torchvision does it: a kernel of fixed width, edges mirrored without repeating the
//! outermost pixel.

use super::ViewSize;
use super::planes::{Planes, to_byte};

/// A Gaussian kernel, and memory for what lies between its two passes.
#[derive(Debug, Default)]
pub(super) struct Blur {
    weights: Vec<f32>,
    padded_row: Vec<f32>,
    blurred_rows: Vec<f32>,
}

/// Values that are summed up at a time, in registers.
const LANES: usize = 32;

impl Blur {
    /// Blurs every plane with `width` weights of standard deviation `sigma`.
    #[inline(always)]
    pub(super) fn apply(&mut self, planes: &mut Planes, width: usize, sigma: f32) {
        self.set_weights(width, sigma);
        let size = planes.size();
        for plane in planes.channels_mut() {
            self.blur_rows(plane, size);
            self.blur_columns(plane, size);
        }
    }

    fn set_weights(&mut self, width: usize, sigma: f32) {
        let half = (width / 2) as f32;
        self.weights.clear();
        self.weights.extend((0..width).map(|tap| (-0.5 * ((tap as f32 - half) / sigma).powi(2)).exp()));
        let sum: f32 = self.weights.iter().sum();
        self.weights.iter_mut().for_each(|weight| *weight /= sum);
    }

    /// Along every row, from the plane into `blurred_rows`.
    #[inline(always)]
    fn blur_rows(&mut self, plane: &[u8], size: ViewSize) {
        let Self { weights, padded_row, blurred_rows } = self;
        let half = weights.len() / 2;
        // Rows of whole groups of lanes, so that the last group needs no special case.
        let stride = size.width.next_multiple_of(LANES);
        padded_row.resize(stride + 2 * half, 0.);
        blurred_rows.resize(size.height * stride, 0.);
        for (row, blurred) in plane.chunks_exact(size.width).zip(blurred_rows.chunks_exact_mut(stride)) {
            for (value, &byte) in padded_row[half..].iter_mut().zip(row) {
                *value = f32::from(byte);
            }
            for pad in 1..=half {
                padded_row[half - pad] = f32::from(row[mirrored(pad as isize, size.width)]);
                let beyond = (size.width - 1 + pad) as isize;
                padded_row[half + size.width - 1 + pad] = f32::from(row[mirrored(beyond, size.width)]);
            }
            for (group, blurred) in blurred.as_chunks_mut().0.iter_mut().enumerate() {
                *blurred = weighted_sum(weights, |tap| &padded_row[group * LANES + tap..]);
            }
        }
    }

    /// Along every column, from `blurred_rows` into the plane.
    #[inline(always)]
    fn blur_columns(&self, plane: &mut [u8], size: ViewSize) {
        let half = (self.weights.len() / 2) as isize;
        let stride = size.width.next_multiple_of(LANES);
        for (row, target) in plane.chunks_exact_mut(size.width).enumerate() {
            for (group, target) in target.chunks_mut(LANES).enumerate() {
                let sums = weighted_sum(&self.weights, |tap| {
                    let row = mirrored(row as isize + tap as isize - half, size.height);
                    &self.blurred_rows[row * stride + group * LANES..]
                });
                for (byte, sum) in target.iter_mut().zip(sums) {
                    *byte = to_byte(sum.round_ties_even());
                }
            }
        }
    }
}

/// The sum of the first lanes of a slice per weight.
#[inline(always)]
fn weighted_sum<'a>(weights: &[f32], values: impl Fn(usize) -> &'a [f32]) -> [f32; LANES] {
    let mut sums = [0.; LANES];
    for (tap, &weight) in weights.iter().enumerate() {
        let Some(values) = values(tap).first_chunk::<LANES>() else { continue };
        for (sum, value) in sums.iter_mut().zip(values) {
            *sum += weight * value;
        }
    }
    sums
}

/// An index that is mirrored at both ends until it lies inside.
#[inline(always)]
fn mirrored(index: isize, length: usize) -> usize {
    let inside = 0..length as isize;
    if inside.contains(&index) {
        return index as usize;
    }
    let period = 2 * (length as isize - 1).max(1);
    let wrapped = index.rem_euclid(period) as usize;
    wrapped.min(period as usize - wrapped).min(length - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_are_mirrored_without_repeating_the_edge() {
        let mirrored_all = |length: usize| {
            (-3..length as isize + 3).map(|index| mirrored(index, length)).collect::<Vec<_>>()
        };
        assert_eq!(mirrored_all(4), [3, 2, 1, 0, 1, 2, 3, 2, 1, 0]);
        assert_eq!(mirrored_all(2), [1, 0, 1, 0, 1, 0, 1, 0]);
        assert_eq!(mirrored_all(1), [0; 7]);
    }
}
