//! From numbers to a conclusion.

use serde::Serialize;

use super::features::Features;
use super::reading::{Reference, SigregReading};
use super::spectrum::Spectrum;

/// Whether embeddings are healthy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Verdict {
    /// Nothing speaks against an isotropic Gaussian, or too little to matter.
    Healthy,
    /// Some principal directions hold next to no variance.
    WeakDirections {
        /// How many of the measurable ones.
        count: usize,
    },
    /// Next to nothing is left: every measurable direction is weak, or the effective rank is below a
    /// tenth of what it should be, or below 2.
    Collapsed,
    /// Every direction is in use, but the distribution is another one.
    OffTarget,
}

/// A perfect sample exceeds the null distribution this rarely; together with weak directions that
/// leaves less than one false alarm in a thousand.
const SIGNIFICANT: f64 = 1e-4;
/// Less is real with enough samples, and of no consequence.
const RELEVANT_DEPARTURE: f64 = 0.05;

/// The share of the expected effective rank below which embeddings are called collapsed.
const COLLAPSED_RANK: f64 = 0.1;

impl Verdict {
    pub(super) fn of(spectrum: &Spectrum, sigreg: &SigregReading) -> Self {
        let least_rank = (COLLAPSED_RANK * spectrum.rankme_expected).max(2.);
        if spectrum.weak > 0 && (spectrum.weak == spectrum.measurable || spectrum.rankme < least_rank) {
            Self::Collapsed
        } else if spectrum.weak > 0 {
            Self::WeakDirections { count: spectrum.weak }
        } else if sigreg.p_value < SIGNIFICANT && sigreg.departure > RELEVANT_DEPARTURE {
            Self::OffTarget
        } else {
            Self::Healthy
        }
    }

    /// The verdict in a few words.
    pub fn title(&self) -> String {
        match self {
            Self::Healthy => "healthy".into(),
            Self::WeakDirections { count: 1 } => "1 weak direction".into(),
            Self::WeakDirections { count } => format!("{count} weak directions"),
            Self::Collapsed => "collapsed".into(),
            Self::OffTarget => "off target".into(),
        }
    }

    /// The verdict in one sentence.
    pub(super) fn explanation(
        &self,
        features: &Features,
        spectrum: &Spectrum,
        sigreg: &SigregReading,
        reference: Reference,
    ) -> String {
        let Spectrum { weak, measurable, rankme, rankme_expected, .. } = spectrum;
        let scale = features.mean_variance().sqrt();
        let target = match reference {
            Reference::Standard => "a standard normal",
            Reference::Shape => "an isotropic Gaussian",
        };
        match (self, reference) {
            (Self::Healthy, _) if sigreg.p_value < SIGNIFICANT => format!(
                "the embeddings differ from {target} by more than chance, but too little to matter: \
                 departure {:.3}",
                sigreg.departure
            ),
            (Self::Healthy, _) => format!("the embeddings cannot be told from {target}"),
            _ if scale == 0. => "every sample has the same embedding".into(),
            (Self::WeakDirections { .. } | Self::Collapsed, _) => format!(
                "{weak} of {measurable} measurable directions hold less than a tenth of the variance they \
                 should; effective rank {rankme:.1} of {rankme_expected:.1}"
            ),
            (Self::OffTarget, Reference::Standard) => format!(
                "every direction is in use, but the embeddings are not {target}: {:.1} x floor, \
                 standard deviation {scale:.3}, offset {:.3}",
                sigreg.ratio,
                features.offset()
            ),
            (Self::OffTarget, Reference::Shape) => format!(
                "every direction is in use, but the embeddings are not {target}: {:.1} x floor",
                sigreg.ratio
            ),
        }
    }
}
