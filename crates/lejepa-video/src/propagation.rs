//! Follows objects from a first mask by likeness of patches, as DINO is judged on DAVIS.
//!
//! A patch takes its labels from the patches of the first frame and of the last few, as far as they lie in a
//! neighbourhood of its place: `sum_s a(t, s) label(s) / sum_s a(t, s)`, `a(t, s) = exp(cos(x_t, x_s) / 0.1)`,
//! over the five most similar sources. Labels are shares, so that doubts travel along.

use std::collections::VecDeque;

use ndarray::{Array1, Array3, ArrayView3, ArrayViewMut2, Axis};
use rayon::prelude::*;

/// What is looked at; the default is DINO's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PropagationSettings {
    /// Frames before the present one that are asked, besides the first.
    pub context: usize,
    /// Patches to each side of the same place.
    pub neighbourhood: usize,
    /// Sources that have a say.
    pub top: usize,
    /// Divides the cosine.
    pub temperature: f32,
}

impl Default for PropagationSettings {
    fn default() -> Self {
        Self { context: 7, neighbourhood: 12, top: 5, temperature: 0.1 }
    }
}

/// The first frame and the last few with their labels.
#[derive(Debug, Clone)]
pub struct Propagation {
    settings: PropagationSettings,
    first: Reference,
    recent: VecDeque<Reference>,
}

/// A frame whose labels are known.
#[derive(Debug, Clone)]
struct Reference {
    /// Of length one, `(rows, columns, dim)`.
    tokens: Array3<f32>,
    /// `(rows, columns, labels)`.
    labels: Array3<f32>,
}

impl Propagation {
    /// Starts from a frame whose labels are given.
    ///
    /// # Shapes
    /// - `tokens`: `(rows, columns, dim)`
    /// - `labels`: `(rows, columns, labels)`
    pub fn start(settings: PropagationSettings, tokens: ArrayView3<'_, f32>, labels: Array3<f32>) -> Self {
        let first = Reference { tokens: normalised(tokens), labels };
        Self { settings, first, recent: VecDeque::new() }
    }

    /// The labels of the next frame.
    ///
    /// # Shapes
    /// - `tokens`: `(rows, columns, dim)`, as those of the first frame
    /// - result: `(rows, columns, labels)`
    pub fn follow(&mut self, tokens: ArrayView3<'_, f32>) -> Array3<f32> {
        let tokens = normalised(tokens);
        let mut labels = Array3::zeros(self.first.labels.raw_dim());
        let rows = labels.axis_iter_mut(Axis(0)).into_par_iter().enumerate();
        rows.for_each(|(row, target)| {
            pulp::Arch::new().dispatch(|| self.label_row(tokens.view(), row, target));
        });
        self.recent.push_back(Reference { tokens, labels: labels.clone() });
        if self.recent.len() > self.settings.context {
            self.recent.pop_front();
        }
        labels
    }

    /// Frames that are held.
    pub fn held(&self) -> usize {
        1 + self.recent.len()
    }

    #[inline(always)]
    fn label_row(&self, tokens: ArrayView3<'_, f32>, row: usize, mut target: ArrayViewMut2<'_, f32>) {
        let mut similarities = Vec::new();
        for (column, mut share) in target.outer_iter_mut().enumerate() {
            similarities.clear();
            let token = tokens.slice(ndarray::s![row, column, ..]);
            let Some(token) = token.as_slice() else { continue };
            for (number, reference) in self.references().enumerate() {
                reference.similarities(token, (row, column), self.settings.neighbourhood, |place, cosine| {
                    similarities.push((cosine, number, place));
                });
            }
            let least = self.least_of_top(&mut similarities);
            let mut total = 0.;
            for &(cosine, number, place) in similarities.iter().filter(|source| source.0 >= least) {
                let weight = (cosine / self.settings.temperature).exp();
                total += weight;
                if let Some(reference) = self.references().nth(number) {
                    share.scaled_add(weight, &reference.labels.slice(ndarray::s![place.0, place.1, ..]));
                }
            }
            if total > 0. {
                share /= total;
            }
        }
    }

    fn references(&self) -> impl Iterator<Item = &Reference> {
        std::iter::once(&self.first).chain(&self.recent)
    }

    /// The similarity of the last source that has a say; equals of it have one too.
    fn least_of_top(&self, similarities: &mut [(f32, usize, (usize, usize))]) -> f32 {
        if similarities.len() <= self.settings.top {
            return f32::NEG_INFINITY;
        }
        let last = self.settings.top.saturating_sub(1);
        similarities.select_nth_unstable_by(last, |left, right| right.0.total_cmp(&left.0)).1.0
    }
}

impl Reference {
    #[inline(always)]
    fn similarities(
        &self,
        token: &[f32],
        (row, column): (usize, usize),
        reach: usize,
        mut found: impl FnMut((usize, usize), f32),
    ) {
        let (rows, columns, dim) = self.tokens.dim();
        let Some(all) = self.tokens.as_slice() else { return };
        for source_row in row.saturating_sub(reach)..(row + reach + 1).min(rows) {
            for source_column in column.saturating_sub(reach)..(column + reach + 1).min(columns) {
                let source = &all[(source_row * columns + source_column) * dim..][..dim];
                found((source_row, source_column), dot(token, source));
            }
        }
    }
}

/// Sixteen sums side by side, which a compiler turns into vector instructions.
#[inline(always)]
fn dot(left: &[f32], right: &[f32]) -> f32 {
    let (left, left_rest) = left.as_chunks::<16>();
    let (right, right_rest) = right.as_chunks::<16>();
    let mut sums = [0_f32; 16];
    for (left, right) in left.iter().zip(right) {
        for ((sum, left), right) in sums.iter_mut().zip(left).zip(right) {
            *sum += left * right;
        }
    }
    let rest: f32 = left_rest.iter().zip(right_rest).map(|(left, right)| left * right).sum();
    sums.iter().sum::<f32>() + rest
}

/// Tokens of length one; those of length zero stay.
fn normalised(tokens: ArrayView3<'_, f32>) -> Array3<f32> {
    let mut tokens = tokens.as_standard_layout().into_owned();
    for mut token in tokens.lanes_mut(Axis(2)) {
        let length = token.iter().map(|value| value * value).sum::<f32>().sqrt();
        if length > 0. {
            token /= length;
        }
    }
    tokens
}

/// Shares of labels, each stretched to reach from 0 to 1 over the frame as DINO does: the fainter copy of an
/// object that changed much still wins where it is strongest. Labels that nothing has stay 0.
///
/// # Shapes
/// - `shares`: `(height, width)` for each label
pub(super) fn stretch(share: &mut ndarray::Array2<f32>) {
    let (low, high) = share
        .iter()
        .fold((f32::INFINITY, f32::NEG_INFINITY), |(low, high), &value| (low.min(value), high.max(value)));
    if high > 0. && high > low {
        share.mapv_inplace(|value| (value - low) / (high - low));
    }
}

/// One label as shares: 1 for it, 0 for the others.
pub(super) fn one_hot(label: usize, labels: usize) -> Array1<f32> {
    Array1::from_shape_fn(labels, |index| f32::from(u8::from(index == label)))
}

#[cfg(test)]
mod tests {
    use ndarray::{Array2, s};

    use super::*;

    /// Sums of products in f32 in another order.
    const ROUNDING: f32 = 1e-5;

    /// Something that changes from patch to patch and from frame to frame.
    fn tokens(frame: usize, rows: usize, columns: usize) -> Array3<f32> {
        Array3::from_shape_fn((rows, columns, 19), |(row, column, dim)| {
            let phase = (row * 31 + column * 17 + frame * 3) as f32 * 0.13 + dim as f32;
            (phase * 1.7).sin() + 0.3 * (phase * 0.2).cos()
        })
    }

    fn left_half(rows: usize, columns: usize) -> Array3<f32> {
        Array3::from_shape_fn((rows, columns, 2), |(_, column, label)| {
            f32::from(u8::from((column < columns / 2) == (label == 1)))
        })
    }

    /// The formula with whole matrices, as `label_propagation` of DINO's `eval_video_segmentation.py`
    /// describes it: affinities, neighbourhood, top k of a target, normalisation.
    fn whole_matrices(
        settings: PropagationSettings,
        references: &[(Array3<f32>, Array3<f32>)],
        target: &Array3<f32>,
    ) -> Array3<f32> {
        let (rows, columns, _) = target.dim();
        let target = normalised(target.view());
        let labels = references[0].1.dim().2;
        let mut result = Array3::zeros((rows, columns, labels));
        for row in 0..rows {
            for column in 0..columns {
                let mut affinities = Vec::new();
                for (tokens, shares) in references {
                    let tokens = normalised(tokens.view());
                    for source_row in 0..rows {
                        for source_column in 0..columns {
                            let near = source_row.abs_diff(row) <= settings.neighbourhood
                                && source_column.abs_diff(column) <= settings.neighbourhood;
                            let cosine = target.slice(s![row, column, ..]).dot(&tokens.slice(s![
                                source_row,
                                source_column,
                                ..
                            ]));
                            let affinity = if near { (cosine / settings.temperature).exp() } else { 0. };
                            affinities.push((affinity, shares.slice(s![source_row, source_column, ..])));
                        }
                    }
                }
                let mut falling: Vec<f32> = affinities.iter().map(|(affinity, _)| *affinity).collect();
                falling.sort_by(|left, right| right.total_cmp(left));
                let least = falling[settings.top - 1];
                let kept: Vec<_> =
                    affinities.into_iter().filter(|(affinity, _)| *affinity >= least).collect();
                let total: f32 = kept.iter().map(|(affinity, _)| affinity).sum();
                for (affinity, share) in kept {
                    result.slice_mut(s![row, column, ..]).scaled_add(affinity / total, &share);
                }
            }
        }
        result
    }

    #[test]
    fn labels_are_those_of_the_formula_with_whole_matrices() {
        let settings = PropagationSettings { context: 2, neighbourhood: 2, ..Default::default() };
        let (rows, columns) = (6, 7);
        let mut references = vec![(tokens(0, rows, columns), left_half(rows, columns))];
        let mut propagation = Propagation::start(settings, references[0].0.view(), references[0].1.clone());
        for frame in 1..6 {
            let target = tokens(frame, rows, columns);
            let expected = whole_matrices(settings, &references, &target);
            let labels = propagation.follow(target.view());
            let worst = (&labels - &expected).mapv(f32::abs).fold(0., |worst, &value| value.max(worst));
            assert!(worst < ROUNDING, "frame {frame}: {worst}");
            references.push((target, labels));
            if references.len() > 3 {
                references.remove(1);
            }
        }
    }

    #[test]
    fn a_still_picture_keeps_its_labels() {
        let still = tokens(0, 5, 8);
        let settings = PropagationSettings { top: 1, ..Default::default() };
        let mut propagation = Propagation::start(settings, still.view(), left_half(5, 8));
        for _ in 0..3 {
            assert_eq!(propagation.follow(still.view()), left_half(5, 8));
        }
    }

    #[test]
    fn the_number_of_frames_that_are_held_does_not_grow() {
        let mut propagation =
            Propagation::start(PropagationSettings::default(), tokens(0, 3, 3).view(), left_half(3, 3));
        for frame in 0..50 {
            propagation.follow(tokens(frame, 3, 3).view());
            assert!(propagation.held() <= 8);
        }
    }

    #[test]
    fn a_single_patch_and_tokens_of_length_zero_have_labels() {
        let nothing = Array3::zeros((1, 1, 4));
        let labels = Array3::ones((1, 1, 1));
        let mut propagation =
            Propagation::start(PropagationSettings::default(), nothing.view(), labels.clone());
        assert_eq!(propagation.follow(nothing.view()), labels);
    }

    #[test]
    fn shares_are_stretched_unless_there_are_none() {
        let mut share = Array2::from_shape_vec((1, 3), vec![0.1, 0.2, 0.3]).unwrap();
        stretch(&mut share);
        assert!((share[(0, 1)] - 0.5).abs() < ROUNDING && share[(0, 0)] == 0. && share[(0, 2)] == 1.);
        let mut nothing = Array2::zeros((2, 2));
        stretch(&mut nothing);
        assert_eq!(nothing, Array2::<f32>::zeros((2, 2)));
    }
}
