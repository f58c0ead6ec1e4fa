//! The patches that a class token looks at, as DINO shows them.
//!
//! Patches are taken from the most to the least attended until they hold a given share of the attention
//! that patches get: the smallest such set. What the class token pays to itself and to registers plays no part.

use ndarray::{Array2, ArrayView2, ArrayView3, Axis};

use crate::{Error, Result};

/// The share that DINO keeps.
pub const ATTENTION_MASS: f64 = 0.6;

/// The smallest set of patches with at least `mass` of the attention. Of patches with equal attention the
/// first in reading order is taken first; no attention at all leaves the set empty.
///
/// # Shapes
/// - `attention` and result: `(rows, columns)`
pub fn attention_mask(attention: ArrayView2<'_, f32>, mass: f64) -> Result<Array2<bool>> {
    if !(mass > 0. && mass <= 1.) {
        return Err(Error::AttentionMass { got: mass });
    }
    if attention.iter().any(|value| !value.is_finite() || *value < 0.) {
        return Err(Error::NotAttention);
    }
    let columns = attention.ncols();
    let mut falling: Vec<(f32, usize)> = attention.iter().copied().zip(0..).collect();
    falling.sort_by(|left, right| right.0.total_cmp(&left.0)); // stable
    // The same order as below, so that a mass of 1 is reached.
    let total: f64 = falling.iter().map(|(value, _)| f64::from(*value)).sum();
    let mut mask = Array2::from_elem(attention.dim(), false);
    let mut kept = 0.;
    for (value, patch) in falling {
        if kept >= mass * total {
            break;
        }
        kept += f64::from(value);
        mask[(patch / columns, patch % columns)] = true;
    }
    Ok(mask)
}

/// The mean over heads.
///
/// # Shapes
/// - `heads`: `(heads, rows, columns)`
/// - result: `(rows, columns)`
pub fn mean_attention(heads: ArrayView3<'_, f32>) -> Array2<f32> {
    heads.sum_axis(Axis(0)) / heads.len_of(Axis(0)).max(1) as f32
}

#[cfg(test)]
mod tests {
    use ndarray::array;

    use super::*;

    #[test]
    fn the_smallest_set_with_the_mass_is_kept() {
        let attention = array![[0.05, 0.4, 0.05], [0.1, 0.1, 0.3]];
        let mask = |mass| attention_mask(attention.view(), mass).unwrap();
        assert_eq!(mask(0.39), array![[false, true, false], [false, false, false]]);
        assert_eq!(mask(0.6), array![[false, true, false], [false, false, true]]);
        assert_eq!(mask(0.75), array![[false, true, false], [true, false, true]]);
        assert_eq!(mask(1.), Array2::from_elem((2, 3), true));
    }

    #[test]
    fn attention_of_patches_alone_counts() {
        // The class token keeps 0.9 for itself.
        let attention = array![[0.07, 0.03]];
        assert_eq!(attention_mask(attention.view(), 0.6).unwrap(), array![[true, false]]);
    }

    /// `val, idx = torch.sort(a); cum = torch.cumsum(val / val.sum(), 0); kept = cum > 1 - 0.6` of DINO's
    /// `visualize_attention.py`.
    #[test]
    fn it_is_the_mask_of_dino() {
        let attention = Array2::from_shape_fn((7, 9), |(row, column)| {
            ((row * 9 + column) as f32 * 0.37).sin().abs() + 0.01
        });
        let total: f64 = attention.iter().map(|value| f64::from(*value)).sum();
        let mut rising: Vec<(f32, usize)> = attention.iter().copied().zip(0..).collect();
        rising.sort_by(|left, right| left.0.total_cmp(&right.0));
        let (mut sum, mut expected) = (0., vec![false; 63]);
        for (value, patch) in rising {
            sum += f64::from(value) / total;
            expected[patch] = sum > 1. - ATTENTION_MASS;
        }
        let mask = attention_mask(attention.view(), ATTENTION_MASS).unwrap();
        assert_eq!(mask.into_iter().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_single_patch_no_attention_and_nonsense_have_an_answer() {
        assert_eq!(attention_mask(array![[0.2]].view(), 0.6).unwrap(), array![[true]]);
        assert_eq!(attention_mask(array![[0., 0.]].view(), 0.6).unwrap(), array![[false, false]]);
        assert!(attention_mask(array![[f32::NAN]].view(), 0.6).is_err());
        for mass in [0., 1.1, f64::NAN] {
            assert!(attention_mask(array![[0.2]].view(), mass).is_err(), "{mass}");
        }
    }

    #[test]
    fn heads_are_averaged() {
        let heads = array![[[0.2, 0.4]], [[0.4, 0.2]]];
        let mean = mean_attention(heads.view());
        assert_eq!(mean.dim(), (1, 2));
        assert!((mean[(0, 0)] - mean[(0, 1)]).abs() < f32::EPSILON);
    }
}
