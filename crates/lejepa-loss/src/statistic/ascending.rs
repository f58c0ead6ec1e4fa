//! A slice in ascending order, for the statistics that compare order statistics.
//!
//! The derivative by a sample is that of its rank. Of equal samples the one that comes first in the
//! slice has the lower rank.

/// A sample at its rank.
#[derive(Clone, Copy)]
pub(super) struct Ranked {
    pub(super) sample: f64,
    /// Where the sample is in the slice.
    pub(super) index: usize,
}

/// The samples in ascending order. Infinite ones come as NaN: a distribution function would make
/// finite numbers of them.
pub(super) fn ascending(samples: &[f64]) -> Vec<Ranked> {
    let finite = |sample: f64| if sample.is_finite() { sample } else { f64::NAN };
    let mut ranked: Vec<Ranked> =
        samples.iter().enumerate().map(|(index, &sample)| Ranked { sample: finite(sample), index }).collect();
    ranked.sort_unstable_by(|left, right| {
        left.sample.total_cmp(&right.sample).then(left.index.cmp(&right.index))
    });
    ranked
}

/// The middles `(2 i - 1) / (2 n)` of the steps of the empirical distribution function.
pub(super) fn middles(samples: usize) -> impl ExactSizeIterator<Item = f64> {
    (0..samples).map(move |rank| (rank as f64 + 0.5) / samples as f64)
}
