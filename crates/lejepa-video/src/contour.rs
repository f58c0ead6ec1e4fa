//! How far the contours of two regions are the same (F of DAVIS).
//!
//! A pixel is on the contour if its region differs from that of the next pixel to the right, below, or
//! below to the right; in the last row only the right one counts, in the last column only the one below. A
//! pixel of one contour is matched if the other contour comes within a disk of
//! `ceil(0.008 diagonal)` pixels. F is the harmonic mean of the matched shares of both contours.

use ndarray::{Array2, ArrayView2};

/// The tolerance as a share of the image's diagonal.
const TOLERANCE: f64 = 0.008;

/// The contour of a region, and everything near to it.
#[derive(Debug, Clone)]
pub struct Contour {
    pixels: Vec<(usize, usize)>,
    near: Array2<bool>,
}

impl Contour {
    /// The contour of a region.
    ///
    /// # Shapes
    /// - `mask`: `(height, width)`
    pub fn of(mask: ArrayView2<'_, bool>) -> Self {
        let pixels = contour_pixels(mask);
        let near = within_disk(&pixels, mask.dim());
        Self { pixels, near }
    }

    /// The measure between two contours in images of the same size. One that is empty matches only
    /// another empty one.
    pub fn f_measure(&self, truth: &Self) -> f64 {
        let (precision, recall) = match (self.pixels.is_empty(), truth.pixels.is_empty()) {
            (true, true) => (1., 1.),
            (true, false) | (false, true) => return 0.,
            (false, false) => (self.matched_by(truth), truth.matched_by(self)),
        };
        if precision + recall == 0. { 0. } else { 2. * precision * recall / (precision + recall) }
    }

    fn matched_by(&self, other: &Self) -> f64 {
        let matched = self.pixels.iter().filter(|&&pixel| other.near[pixel]).count();
        matched as f64 / self.pixels.len() as f64
    }
}

fn contour_pixels(mask: ArrayView2<'_, bool>) -> Vec<(usize, usize)> {
    let (height, width) = mask.dim();
    let mut pixels = Vec::new();
    for row in 0..height {
        for column in 0..width {
            let here = mask[(row, column)];
            let (has_right, has_below) = (column + 1 < width, row + 1 < height);
            let on_contour = (has_right && mask[(row, column + 1)] != here)
                || (has_below && mask[(row + 1, column)] != here)
                || (has_right && has_below && mask[(row + 1, column + 1)] != here);
            if on_contour {
                pixels.push((row, column));
            }
        }
    }
    pixels
}

/// All pixels with one of those given in a disk around them.
fn within_disk(pixels: &[(usize, usize)], (height, width): (usize, usize)) -> Array2<bool> {
    let radius = (TOLERANCE * (height as f64).hypot(width as f64)).ceil() as usize;
    // Half the width of the disk, for every distance from its middle row.
    let reach: Vec<usize> = (0..=radius).map(|rows| (radius * radius - rows * rows).isqrt()).collect();
    let mut near = Array2::from_elem((height, width), false);
    for &(row, column) in pixels {
        for covered in row.saturating_sub(radius)..(row + radius + 1).min(height) {
            let reach = reach[covered.abs_diff(row)];
            let columns = column.saturating_sub(reach)..(column + reach + 1).min(width);
            near.slice_mut(ndarray::s![covered, columns]).fill(true);
        }
    }
    near
}

#[cfg(test)]
mod tests {
    use super::*;

    fn square(side: usize, start: usize, length: usize) -> Array2<bool> {
        let inside = start..start + length;
        Array2::from_shape_fn((side, side), |(row, column)| inside.contains(&row) && inside.contains(&column))
    }

    fn measure(mask: &Array2<bool>, truth: &Array2<bool>) -> f64 {
        Contour::of(mask.view()).f_measure(&Contour::of(truth.view()))
    }

    #[test]
    fn the_contour_lies_above_and_to_the_left_of_a_change() {
        let mask = square(4, 1, 2);
        let found = contour_pixels(mask.view());
        // The middle (1, 1) has only equal neighbours.
        assert_eq!(found, [(0, 0), (0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1), (2, 2)]);
    }

    #[test]
    fn the_last_row_and_column_look_in_one_direction() {
        let mut mask = Array2::from_elem((2, 2), false);
        mask[(1, 1)] = true;
        assert_eq!(contour_pixels(mask.view()), [(0, 0), (0, 1), (1, 0)]);
    }

    #[test]
    fn contours_within_the_tolerance_match_and_others_do_not() {
        // A diagonal of 141 pixels: a tolerance of two.
        let truth = square(100, 30, 40);
        assert_eq!(measure(&truth, &truth), 1.);
        assert_eq!(measure(&square(100, 31, 38), &truth), 1.);
        assert_eq!(measure(&square(100, 40, 20), &truth), 0.);
    }

    #[test]
    fn empty_regions_match_empty_regions_alone() {
        let (empty, some) = (square(9, 0, 0), square(9, 2, 4));
        assert_eq!(measure(&empty, &empty), 1.);
        assert_eq!(measure(&empty, &some), 0.);
        assert_eq!(measure(&some, &empty), 0.);
    }

    #[test]
    fn a_single_pixel_has_no_contour() {
        let one = Array2::from_elem((1, 1), true);
        assert_eq!(measure(&one, &one), 1.);
    }
}
