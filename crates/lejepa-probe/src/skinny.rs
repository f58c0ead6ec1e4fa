//! Products of many rows with the weights of few classes, which sums in registers make fast: matrix products of
//! libraries are made for other shapes.
//!
//! ```text
//! scores  S = X W^T        X (rows, width), W (classes, width)
//! outer   G += R^T X       R (rows, classes), G (classes, width)
//! ```

use pulp::Simd;

/// What widths are multiples of: two vectors of any processor.
pub(crate) const WIDTH: usize = 16;
/// What the number of rows is a multiple of, for scores.
pub(crate) const PAIR: usize = 2;
/// Classes at a time: with two rows, or two vectors of a row, all sums fit the registers.
const CLASSES: usize = 5;

/// # Shapes
/// - `rows`: `(rows, width)`, an even number
/// - `weights`: `(classes, width)`
/// - `scores`: `(rows, classes)`, which are overwritten
#[inline(always)]
pub(crate) fn scores<S: Simd>(simd: S, rows: &[f64], weights: &[f64], width: usize, scores: &mut [f64]) {
    let classes = weights.len() / width;
    let pairs = rows.chunks_exact(PAIR * width).zip(scores.chunks_exact_mut(PAIR * classes));
    for (rows, scores) in pairs {
        let (upper, lower) = rows.split_at(width);
        let (upper, lower) = (S::as_simd_f64s(upper).0, S::as_simd_f64s(lower).0);
        let (upper_scores, lower_scores) = scores.split_at_mut(classes);
        let groups = weights.chunks(CLASSES * width);
        let scores = upper_scores.chunks_mut(CLASSES).zip(lower_scores.chunks_mut(CLASSES));
        for (weights, (upper_scores, lower_scores)) in groups.zip(scores) {
            let weights = S::as_simd_f64s(weights).0;
            let pair = [upper, lower];
            let scores = [upper_scores, lower_scores];
            match weights.len() / upper.len() {
                1 => dot::<S, 1>(simd, pair, weights, scores),
                2 => dot::<S, 2>(simd, pair, weights, scores),
                3 => dot::<S, 3>(simd, pair, weights, scores),
                4 => dot::<S, 4>(simd, pair, weights, scores),
                _ => dot::<S, CLASSES>(simd, pair, weights, scores),
            }
        }
    }
}

/// Two rows with `N` classes.
#[inline(always)]
fn dot<S: Simd, const N: usize>(
    simd: S,
    rows: [&[S::f64s]; 2],
    weights: &[S::f64s],
    scores: [&mut [f64]; 2],
) {
    let [upper, lower] = rows;
    let length = upper.len();
    let lower = &lower[..length];
    let weights: [&[S::f64s]; N] = std::array::from_fn(|class| &weights[class * length..][..length]);
    let mut sums = [[simd.splat_f64s(0.); N]; 2];
    for index in 0..length {
        for class in 0..N {
            let weight = weights[class][index];
            sums[0][class] = simd.mul_add_e_f64s(upper[index], weight, sums[0][class]);
            sums[1][class] = simd.mul_add_e_f64s(lower[index], weight, sums[1][class]);
        }
    }
    for (scores, sums) in scores.into_iter().zip(sums) {
        scores.iter_mut().zip(sums).for_each(|(score, sum)| *score = simd.reduce_sum_f64s(sum));
    }
}

/// # Shapes
/// - `rows`: `(rows, width)`
/// - `factors`: `(rows, classes)`
/// - `sums`: `(classes, width)`, to which is added
#[inline(always)]
pub(crate) fn add_outer<S: Simd>(simd: S, rows: &[f64], factors: &[f64], width: usize, sums: &mut [f64]) {
    let classes = sums.len() / width;
    let rows = S::as_simd_f64s(rows).0;
    let length = width / S::F64_LANES;
    for (group, sums) in sums.chunks_mut(CLASSES * width).enumerate() {
        let sums = S::as_mut_simd_f64s(sums).0;
        let factors = Factors { values: factors, classes, first: group * CLASSES };
        match sums.len() / length {
            1 => outer::<S, 1>(simd, rows, factors, length, sums),
            2 => outer::<S, 2>(simd, rows, factors, length, sums),
            3 => outer::<S, 3>(simd, rows, factors, length, sums),
            4 => outer::<S, 4>(simd, rows, factors, length, sums),
            _ => outer::<S, CLASSES>(simd, rows, factors, length, sums),
        }
    }
}

/// `(rows, classes)`, of which some classes are meant.
struct Factors<'a> {
    values: &'a [f64],
    classes: usize,
    first: usize,
}

/// `N` classes, two vectors of all rows after the other.
#[inline(always)]
fn outer<S: Simd, const N: usize>(
    simd: S,
    rows: &[S::f64s],
    factors: Factors<'_>,
    length: usize,
    sums: &mut [S::f64s],
) {
    for index in (0..length).step_by(2) {
        let mut tile: [[S::f64s; 2]; N] =
            std::array::from_fn(|class| [sums[class * length + index], sums[class * length + index + 1]]);
        for (row, factors_of_row) in
            rows.chunks_exact(length).zip(factors.values.chunks_exact(factors.classes))
        {
            let (Some(factors), Some(&[left, right])) =
                (factors_of_row[factors.first..].first_chunk::<N>(), row[index..].first_chunk::<2>())
            else {
                return;
            };
            for class in 0..N {
                let factor = simd.splat_f64s(factors[class]);
                tile[class][0] = simd.mul_add_e_f64s(left, factor, tile[class][0]);
                tile[class][1] = simd.mul_add_e_f64s(right, factor, tile[class][1]);
            }
        }
        for (class, [left, right]) in tile.into_iter().enumerate() {
            sums[class * length + index] = left;
            sums[class * length + index + 1] = right;
        }
    }
}
