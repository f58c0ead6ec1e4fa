//! Spearman's rank correlation: Pearson's of the ranks.
//!
//! ```text
//! rho = cov(rank x, rank y) / (sd(rank x) sd(rank y))
//! ```

/// How far two scores of the same things put them in the same order: 1 if they agree, -1 if one
/// order is the other one reversed.
///
/// Equal values share the mean of their ranks. Pairs with a NaN are left out. Fewer than three pairs,
/// or a side on which all values are equal, have no correlation.
pub fn spearman(xs: &[f64], ys: &[f64]) -> Option<f64> {
    let pairs = xs.iter().zip(ys).filter(|(x, y)| !x.is_nan() && !y.is_nan());
    let (xs, ys): (Vec<f64>, Vec<f64>) = pairs.map(|(&x, &y)| (x, y)).unzip();
    if xs.len() < LEAST_PAIRS {
        return None;
    }
    let (xs, ys) = (centred_ranks(&xs), centred_ranks(&ys));
    let product = |left: &[f64], right: &[f64]| left.iter().zip(right).map(|(l, r)| l * r).sum::<f64>();
    let spread = (product(&xs, &xs) * product(&ys, &ys)).sqrt();
    (spread > 0.).then(|| (product(&xs, &ys) / spread).clamp(-1., 1.))
}

/// Two points always lie in order.
const LEAST_PAIRS: usize = 3;

/// The rank of every value less the mean rank; equal values share the mean of theirs.
fn centred_ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&left, &right| values[left].total_cmp(&values[right]));
    let mean = (values.len() as f64 - 1.) / 2.;
    let mut ranks = vec![0.; values.len()];
    let mut first = 0;
    // Not by `total_cmp`: 0 and -0 are equal.
    for equals in order.chunk_by(|&left, &right| values[left] == values[right]) {
        let rank = first as f64 + (equals.len() as f64 - 1.) / 2.;
        equals.iter().for_each(|&index| ranks[index] = rank - mean);
        first += equals.len();
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    /// f64 on both sides.
    const TOLERANCE: f64 = 1e-12;

    /// Expected values: `scipy.stats.spearmanr(xs, ys).statistic`.
    #[test]
    fn correlations_agree_with_scipy() {
        let xs = [3.1, -0.4, 2.2, 8.0, 5.5, 1.0, 0.3];
        for (ys, expected) in [
            ([1.0, 9.0, 4.0, -3.0, 0.5, 6.0, 6.5], -1.0),
            ([0.2, 0.9, 0.1, 0.5, 0.8, 0.3, 0.7], -0.28571428571428575),
            ([1.0, 1.0, 2.0, 2.0, 2.0, 0.0, 1.0], 0.6557892373388906),
            ([0.0, -0.0, 1.0, f64::INFINITY, 1.0, 1.0, 0.0], 0.6943650748294137),
        ] {
            let found = spearman(&xs, &ys).unwrap();
            assert!((found - expected).abs() < TOLERANCE, "{found} {expected}");
        }
    }

    #[test]
    fn pairs_without_a_number_are_left_out() {
        let xs = [1., f64::NAN, 2., 3., 4.];
        let ys = [2., 7., 1., 5., f64::NAN];
        assert_eq!(spearman(&xs, &ys), spearman(&[1., 2., 3.], &[2., 1., 5.]));
    }

    #[test]
    fn nothing_is_said_about_too_few_pairs_or_a_constant() {
        assert_eq!(spearman(&[], &[]), None);
        assert_eq!(spearman(&[1., 2.], &[1., 2.]), None);
        assert_eq!(spearman(&[1., 2., f64::NAN], &[1., 2., 3.]), None);
        assert_eq!(spearman(&[1., 2., 3.], &[4., 4., 4.]), None);
    }
}
