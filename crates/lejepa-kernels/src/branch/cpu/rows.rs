//! Rows of the images that are not left out, and sums of rows.

use rayon::prelude::*;

use super::KeptImage;
use crate::standardise::standardise;

/// The standardised rows of kept images, one image after the other.
pub(super) fn standardise_kept(
    kept: &[KeptImage],
    xs: &[f32],
    normed: &mut [f32],
    scales: &mut [f32],
    dim: usize,
    epsilon: f32,
) {
    let tokens = scales.len().checked_div(kept.len()).unwrap_or(0);
    let image = tokens * dim;
    for (slot, kept) in kept.iter().enumerate() {
        let (normed, scales) = (&mut normed[slot * image..][..image], &mut scales[slot * tokens..][..tokens]);
        standardise(&xs[kept.image * image..][..image], normed, scales, dim, epsilon);
    }
}

/// The first rows of kept images, one image after the other, times the factors: `length` values of each.
pub(super) fn gather(kept: &[KeptImage], from: &[f32], to: &mut [f32], image: usize) {
    for (kept, to) in kept.iter().zip(to.chunks_exact_mut(image)) {
        let from = &from[kept.image * image..][..image];
        to.iter_mut().zip(from).for_each(|(to, from)| *to = kept.factor * from);
    }
}

/// Adds the rows of kept images, times a factor, to those of all images.
pub(super) fn add_kept(
    kept: &[KeptImage],
    from: &[f32],
    to: &mut [f32],
    image: usize,
    factor: impl Fn(&KeptImage) -> f32,
) {
    for (kept, from) in kept.iter().zip(from.chunks_exact(image)) {
        let factor = factor(kept);
        let to = &mut to[kept.image * image..][..image];
        to.iter_mut().zip(from).for_each(|(to, from)| *to += factor * from);
    }
}

/// Adds rows to one.
pub(super) fn add_rows(rows: &[f32], sum: &mut [f32]) {
    for row in rows.chunks_exact(sum.len()) {
        sum.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
    }
}

/// The sum of what the tasks have summed, in their order.
pub(super) fn add_up(mut sums: Vec<Vec<f32>>) -> Vec<f32> {
    const CHUNK: usize = 1 << 12;
    let mut total = std::mem::take(&mut sums[0]);
    total.par_chunks_mut(CHUNK).enumerate().for_each(|(chunk, total)| {
        for sum in &sums[1..] {
            let sum = &sum[chunk * CHUNK..][..total.len()];
            total.iter_mut().zip(sum).for_each(|(total, value)| *total += value);
        }
    });
    total
}

/// Slices of these lengths, one after the other.
pub(super) fn split_mut<const N: usize>(mut values: &mut [f32], lengths: [usize; N]) -> [&mut [f32]; N] {
    lengths.map(|length| {
        let (slice, rest) = std::mem::take(&mut values).split_at_mut(length);
        values = rest;
        slice
    })
}

/// The same of values that are given away.
pub(super) fn split<const N: usize>(mut values: Vec<f32>, lengths: [usize; N]) -> [Vec<f32>; N] {
    lengths.map(|length| {
        let rest = values.split_off(length);
        std::mem::replace(&mut values, rest)
    })
}
