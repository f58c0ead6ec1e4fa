//! From what an encoder computes of one frame after the other to masks.

use lejepa_data::Image;
use lejepa_picture::Upsampling;
use ndarray::{Array2, Array3, ArrayView3, Axis};
use rayon::prelude::*;

use super::propagation::{one_hot, stretch};
use super::score::{Score, TrueFrame};
use super::scoreboard::Scoreboard;
use super::{AttentionMasks, HeadMasks, LabelMap, Propagation, PropagationSettings, SegmentationMethod};
use crate::{Error, Result};

/// Makes the masks of a clip for one encoder.
pub(super) enum MaskMaker {
    Attention { masks: AttentionMasks, head: Option<usize> },
    Propagation(Box<Follower>),
}

/// The masks of one frame.
pub(super) enum FrameMasks {
    /// Of every head, of the mean, and which one is meant.
    Heads { masks: HeadMasks, head: Option<usize> },
    /// The mask that was given, or the one that followed from it.
    Labels { labels: LabelMap, given: bool },
}

/// Follows the objects of a first mask.
pub(super) struct Follower {
    settings: PropagationSettings,
    first: LabelMap,
    /// Background, then the objects.
    labels: Vec<u8>,
    propagation: Option<Propagation>,
}

impl MaskMaker {
    /// `first` is the mask of the first frame, which propagation follows; without one it finds nothing.
    pub(super) fn new(method: &SegmentationMethod, first: Option<&LabelMap>) -> Result<Self> {
        match method {
            SegmentationMethod::Attention { settings, head } => {
                Ok(Self::Attention { masks: AttentionMasks::new(*settings)?, head: *head })
            }
            SegmentationMethod::Propagation { settings, .. } => {
                let nothing = || LabelMap::new(Array2::zeros((1, 1)));
                let first = first.cloned().unwrap_or_else(nothing);
                let labels = std::iter::once(0).chain(first.objects()).collect();
                let follower = Follower { settings: *settings, first, labels, propagation: None };
                Ok(Self::Propagation(Box::new(follower)))
            }
        }
    }

    /// The masks of the next frame.
    ///
    /// # Shapes
    /// - `values`: `(heads, rows, columns)` or `(rows, columns, dim)`
    pub(super) fn next(&mut self, values: ArrayView3<'_, f32>, frame: &Image) -> Result<FrameMasks> {
        match self {
            Self::Attention { masks, head } => {
                let heads = values.len_of(Axis(0));
                if let Some(got) = head.filter(|head| !(1..=heads).contains(head)) {
                    return Err(Error::Head { heads, got });
                }
                Ok(FrameMasks::Heads { masks: masks.next(values)?, head: *head })
            }
            Self::Propagation(follower) => Ok(follower.next(values, (frame.height(), frame.width()))),
        }
    }
}

impl Follower {
    fn next(&mut self, tokens: ArrayView3<'_, f32>, size: (usize, usize)) -> FrameMasks {
        let Some(propagation) = &mut self.propagation else {
            let (rows, columns, _) = tokens.dim();
            let shares = self.first_shares((rows, columns));
            self.propagation = Some(Propagation::start(self.settings, tokens, shares));
            return FrameMasks::Labels { labels: self.first.resized(size), given: true };
        };
        let shares = propagation.follow(tokens); // (rows, columns, labels)
        FrameMasks::Labels { labels: most_likely(&shares, &self.labels, size), given: false }
    }

    fn first_shares(&self, (rows, columns): (usize, usize)) -> Array3<f32> {
        let small = self.first.resized((rows, columns));
        let mut shares = Array3::zeros((rows, columns, self.labels.len()));
        for (place, &label) in small.labels.indexed_iter() {
            // Void is background here.
            let index = self.labels.iter().position(|known| *known == label).unwrap_or(0);
            shares.slice_mut(ndarray::s![place.0, place.1, ..]).assign(&one_hot(index, self.labels.len()));
        }
        shares
    }
}

/// Shares at the frame's size, each stretched over its range, then the largest.
fn most_likely(shares: &Array3<f32>, labels: &[u8], size: (usize, usize)) -> LabelMap {
    let mut best = Array2::from_elem(size, f32::NEG_INFINITY);
    let mut found = Array2::zeros(size);
    for (share, &label) in shares.axis_iter(Axis(2)).zip(labels) {
        let mut share = Upsampling::Bilinear.enlarge(share, size);
        stretch(&mut share);
        ndarray::Zip::from(&mut best).and(&mut found).and(&share).for_each(|best, found, &share| {
            if share > *best {
                (*best, *found) = (share, label);
            }
        });
    }
    LabelMap::new(found)
}

impl FrameMasks {
    /// What is written: at the frame's size.
    pub(super) fn labels(&self, size: (usize, usize)) -> LabelMap {
        match self {
            Self::Heads { masks, head: None } => LabelMap::of_mask(&enlarged(&masks.mean, size)),
            Self::Heads { masks, head: Some(head) } => {
                LabelMap::of_mask(&enlarged(&masks.heads[head - 1], size))
            }
            Self::Labels { labels, .. } => labels.clone(),
        }
    }

    /// Writes down how good they are; a mask that was given is not judged.
    pub(super) fn score(&self, name: &str, truth: &TrueFrame, size: (usize, usize), board: &mut Scoreboard) {
        match self {
            Self::Heads { masks, .. } => {
                board.add(&format!("{name}, mean over heads"), &truth.score(&enlarged(&masks.mean, size)));
                let heads: Vec<Vec<Score>> =
                    masks.heads.par_iter().map(|mask| truth.score(&enlarged(mask, size))).collect();
                board.add_heads(&format!("{name}, best head"), &heads);
            }
            Self::Labels { given: true, .. } => {}
            Self::Labels { labels, given: false } => board.add(name, &truth.score_labels(labels)),
        }
    }
}

/// Every patch is a rectangle of the frame.
fn enlarged(mask: &Array2<bool>, size: (usize, usize)) -> Array2<bool> {
    Upsampling::Nearest.enlarge_mask(mask.view(), size).mapv(|coverage| coverage > 0.5)
}
