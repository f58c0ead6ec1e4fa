//! What the experiment on given features found.

use serde::{Deserialize, Serialize};

use super::{Isotropy, Measurement, Shape, Verdict};

/// Everything that tables and plots are made from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct IsotropyReport {
    /// What was asked for.
    pub settings: Isotropy,
    /// The features as they are.
    pub features: FeatureShape,
    /// Whitened, as they are, then the anisotropic ones.
    pub variants: Vec<VariantReport>,
    /// One per statement and probe, for the features as they are and the largest condition of every
    /// alignment, at the setting that serves whitened features best.
    pub verdicts: Vec<Verdict>,
    /// What a reader should know.
    pub notes: Vec<String>,
}

/// What was measured on, and what of it was kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FeatureShape {
    /// Length of a feature.
    pub dim: usize,
    /// Principal directions that were kept.
    pub directions: usize,
    /// Their share of the total variance.
    pub kept_variance: f64,
    /// Their variances, falling, scaled to mean 1.
    pub spectrum: Vec<f64>,
    /// Training samples that there are.
    pub train: usize,
    /// Training samples of each draw.
    pub samples: usize,
    /// Test points that were predicted.
    pub test_points: usize,
}

/// One shape of the features.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct VariantReport {
    /// A row's title.
    pub name: String,
    /// Which it is.
    pub shape: Shape,
    /// Largest over smallest variance.
    pub condition: f64,
    /// `tr Sigma^-1 / d` for mean variance 1: 1 if isotropic. Lemma 2 and theorem 1 expect variance of
    /// coefficients and squared bias to grow with it.
    pub inverse_trace: f64,
    /// Every probe at every setting.
    pub measurements: Vec<Measurement>,
    /// Of every probe the measurement with the least squared error on the test points: a description of what
    /// the shape allows, not a score, as nothing was held out to choose the setting.
    pub best: Vec<Measurement>,
}
