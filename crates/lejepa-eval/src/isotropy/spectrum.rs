//! Variances of given condition number, with mean 1.
//!
//! ```text
//! lambda_k = m c^(-k / (d - 1))     k = 0 .. d - 1, m such that sum_k lambda_k = d
//! ```
//!
//! The condition number `c` is that of the covariance: largest over smallest variance. Standard deviations
//! have the ratio `sqrt(c)`.

/// Falling variances.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Spectrum(pub(crate) Vec<f64>);

impl Spectrum {
    /// `d` variances with ratio `condition` of the largest to the smallest; a single one is 1.
    pub(crate) fn geometric(dim: usize, condition: f64) -> Self {
        let steps = dim.saturating_sub(1).max(1) as f64;
        let raw: Vec<f64> = (0..dim).map(|index| condition.powf(-(index as f64) / steps)).collect();
        Self::scaled(&raw)
    }

    /// The same ratios with mean 1.
    pub(crate) fn scaled(variances: &[f64]) -> Self {
        let mean = variances.iter().sum::<f64>() / variances.len().max(1) as f64;
        Self(variances.iter().map(|variance| variance / mean).collect())
    }

    /// Largest over smallest.
    pub(crate) fn condition(&self) -> f64 {
        let largest = self.0.iter().copied().fold(0., f64::max);
        largest / self.0.iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// `tr Sigma^-1`: the Fisher information `J` of a Gaussian.
    pub(crate) fn fisher_information(&self) -> f64 {
        self.0.iter().map(|variance| 1. / variance).sum()
    }

    /// Squared bias of ridge coefficients of length 1 along the narrowest direction, for
    /// `X^T X = samples Sigma` and a penalty of `lambda samples`.
    pub(crate) fn worst_ridge_bias(&self, lambda: f64) -> f64 {
        self.ridge_biases(lambda).fold(0., f64::max)
    }

    /// The same, averaged over all directions of the coefficients.
    pub(crate) fn average_ridge_bias(&self, lambda: f64) -> f64 {
        self.ridge_biases(lambda).sum::<f64>() / self.0.len().max(1) as f64
    }

    fn ridge_biases(&self, lambda: f64) -> impl Iterator<Item = f64> {
        self.0.iter().map(move |variance| (lambda / (variance + lambda)).powi(2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rounding of sums of ten numbers.
    const ROUNDING: f64 = 1e-12;

    #[test]
    fn the_trace_is_kept_and_the_condition_met() {
        for condition in [1., 3., 1000.] {
            let spectrum = Spectrum::geometric(10, condition);
            assert!((spectrum.0.iter().sum::<f64>() - 10.).abs() < ROUNDING);
            assert!((spectrum.condition() / condition - 1.).abs() < ROUNDING);
        }
        assert_eq!(Spectrum::geometric(1, 50.), Spectrum(vec![1.]));
    }

    #[test]
    fn isotropic_features_have_the_least_ridge_bias_and_fisher_information() {
        let isotropic = Spectrum::geometric(6, 1.);
        for lambda in [1e-3, 0.1, 1., 10.] {
            let mut before = (isotropic.worst_ridge_bias(lambda), isotropic.average_ridge_bias(lambda));
            for condition in [2., 10., 100.] {
                let spectrum = Spectrum::geometric(6, condition);
                let now = (spectrum.worst_ridge_bias(lambda), spectrum.average_ridge_bias(lambda));
                assert!(now.0 > before.0 && now.1 > before.1, "{lambda} {condition}: {now:?} {before:?}");
                assert!(spectrum.fisher_information() > isotropic.fisher_information());
                before = now;
            }
        }
    }
}
