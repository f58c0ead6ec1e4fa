//! The masks of a frame's heads, with a memory of the frames before.

use lejepa_picture::{attention_mask, mean_attention};
use ndarray::{Array2, Array3, ArrayView3};

use crate::{Error, Result};

/// How attention becomes masks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AttentionSettings {
    /// The share of the attention that a mask keeps.
    pub mass: f64,
    /// The weight of what was before, from 0, each frame for itself, to below 1:
    /// `a_t = smoothing a_(t-1) + (1 - smoothing) attention_t`.
    pub smoothing: f32,
}

/// The masks of one frame, one cell per patch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeadMasks {
    /// A mask of every head, `(rows, columns)` each.
    pub heads: Vec<Array2<bool>>,
    /// That of the mean over heads.
    pub mean: Array2<bool>,
}

/// Makes masks of one frame after the other.
#[derive(Debug, Clone)]
pub struct AttentionMasks {
    settings: AttentionSettings,
    /// Smoothed, `(heads, rows, columns)`.
    attention: Option<Array3<f32>>,
}

impl AttentionMasks {
    /// Without a memory yet.
    pub fn new(settings: AttentionSettings) -> Result<Self> {
        if !(0. ..1.).contains(&settings.smoothing) {
            return Err(Error::Smoothing { got: settings.smoothing });
        }
        Ok(Self { settings, attention: None })
    }

    /// The masks of the next frame.
    ///
    /// # Shapes
    /// - `attention`: `(heads, rows, columns)`
    pub fn next(&mut self, attention: ArrayView3<'_, f32>) -> Result<HeadMasks> {
        let AttentionSettings { mass, smoothing } = self.settings;
        let smoothed = match self.attention.take() {
            Some(before) if smoothing > 0. => before * smoothing + &attention * (1. - smoothing),
            _ => attention.to_owned(),
        };
        let masks = smoothed.outer_iter().map(|head| attention_mask(head, mass));
        let heads = masks.collect::<lejepa_picture::Result<_>>()?;
        let mean = attention_mask(mean_attention(smoothed.view()).view(), mass)?;
        self.attention = Some(smoothed);
        Ok(HeadMasks { heads, mean })
    }
}

#[cfg(test)]
mod tests {
    use ndarray::array;

    use super::*;

    #[test]
    fn every_head_and_the_mean_have_a_mask() {
        let settings = AttentionSettings { mass: 0.6, smoothing: 0. };
        let mut masks = AttentionMasks::new(settings).unwrap();
        let found = masks.next(array![[[0.8, 0.1, 0.1]], [[0.1, 0.2, 0.7]]].view()).unwrap();
        assert_eq!(found.heads, [array![[true, false, false]], array![[false, false, true]]]);
        assert_eq!(found.mean, array![[true, false, true]]);
    }

    #[test]
    fn smoothing_remembers_the_frames_before() {
        let (left, right) = (array![[[1., 0.]]], array![[[0., 1.]]]);
        let mask_after = |smoothing| {
            let mut masks = AttentionMasks::new(AttentionSettings { mass: 0.6, smoothing }).unwrap();
            masks.next(left.view()).unwrap();
            masks.next(right.view()).unwrap().mean
        };
        assert_eq!(mask_after(0.), array![[false, true]]);
        assert_eq!(mask_after(0.8), array![[true, false]]);
        assert_eq!(mask_after(0.5), array![[true, true]]);
    }

    #[test]
    fn smoothing_that_would_never_change_is_refused() {
        for smoothing in [1., -0.1, f32::NAN] {
            assert!(AttentionMasks::new(AttentionSettings { mass: 0.6, smoothing }).is_err(), "{smoothing}");
        }
    }
}
