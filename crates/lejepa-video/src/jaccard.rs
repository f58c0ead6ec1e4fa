//! How far two regions are the same: the pixels of both over the pixels of either (Jaccard index, J of DAVIS).

use ndarray::{ArrayView2, Zip};

/// `|mask and truth| / |mask or truth|`; 1 if both are empty, as DAVIS has it.
///
/// # Shapes
/// - `mask` and `truth`: `(height, width)`, the same
pub fn jaccard(mask: ArrayView2<'_, bool>, truth: ArrayView2<'_, bool>) -> f64 {
    let (mut both, mut either) = (0_usize, 0_usize);
    Zip::from(mask).and(truth).for_each(|&mask, &truth| {
        both += usize::from(mask && truth);
        either += usize::from(mask || truth);
    });
    if either == 0 { 1. } else { both as f64 / either as f64 }
}

#[cfg(test)]
mod tests {
    use ndarray::{Array2, array};

    use super::*;

    #[test]
    fn shared_pixels_over_all_pixels() {
        let mask = array![[true, true, false], [false, false, false]];
        let truth = array![[false, true, true], [false, true, false]];
        assert_eq!(jaccard(mask.view(), truth.view()), 0.25);
        assert_eq!(jaccard(mask.view(), mask.view()), 1.);
    }

    #[test]
    fn nothing_found_where_nothing_is_counts_as_found() {
        let empty = Array2::from_elem((2, 2), false);
        let full = Array2::from_elem((2, 2), true);
        assert_eq!(jaccard(empty.view(), empty.view()), 1.);
        assert_eq!(jaccard(full.view(), empty.view()), 0.);
        assert_eq!(jaccard(empty.view(), full.view()), 0.);
    }
}
