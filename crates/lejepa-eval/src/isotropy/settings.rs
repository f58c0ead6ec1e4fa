//! What the experiment on given features does: part of a suite's TOML.

use serde::{Deserialize, Serialize};

use super::{Alignment, Neighbourhoods};

/// Bias and variance of probes on features of several shapes. Every key may be left out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Isotropy {
    /// Draws training samples, test points and rotations.
    pub seed: u64,
    /// Condition numbers of the covariance, largest over smallest variance, of features made anisotropic;
    /// above 1, which is whitened and always measured.
    pub conditions: Vec<f64>,
    /// Along which directions they are stretched.
    pub alignments: Vec<Alignment>,
    /// The most principal directions that are kept, in all shapes alike.
    pub directions: usize,
    /// Directions with a smaller share of the largest variance are left out: whitening would blow up noise.
    pub floor: f64,
    /// Training sets that are drawn; at least 2.
    pub draws: usize,
    /// Samples of each, at most half of what there is so that draws differ.
    pub samples: usize,
    /// The most test points that are predicted.
    pub test_points: usize,
    /// Penalties of ridge relative to the mean eigenvalue of `X^T X`. 0 is OLS, measured where there are
    /// more samples than coefficients. An empty list leaves ridge out.
    pub lambdas: Vec<f64>,
    /// Settings of the other probes.
    pub neighbourhoods: Neighbourhoods,
}

impl Default for Isotropy {
    fn default() -> Self {
        Self {
            seed: 0,
            conditions: vec![10., 100., 1000.],
            alignments: vec![Alignment::Random, Alignment::Principal, Alignment::Reversed],
            directions: 64,
            floor: 1e-4,
            draws: 32,
            samples: 512,
            test_points: 500,
            lambdas: vec![0., 1e-3, 1e-2, 0.1, 1., 10.],
            neighbourhoods: Neighbourhoods {
                neighbours: vec![1, 5, 20, 50],
                radii: vec![0.5, 0.7, 0.85, 1.],
                bandwidths: vec![0.1, 0.15, 0.2, 0.3, 0.5],
            },
        }
    }
}

impl Isotropy {
    /// What is wrong with the settings.
    pub fn check(&self) -> Result<(), String> {
        all("conditions", &self.conditions, "finite numbers above 1", |condition| condition > 1.)?;
        all("lambdas", &self.lambdas, "finite numbers of at least 0", |lambda| lambda >= 0.)?;
        if !(self.floor >= 0. && self.floor < 1.) {
            return Err(format!("`floor` must be at least 0 and below 1, got: {}", self.floor));
        }
        at_least("draws", 2, self.draws)?;
        at_least("samples", 2, self.samples)?;
        at_least("directions", 1, self.directions)?;
        at_least("test_points", 1, self.test_points)?;
        self.neighbourhoods.check()?;
        match self.lambdas.is_empty() && self.neighbourhoods.is_empty() {
            true => Err("the isotropy experiment has no probe".into()),
            false => Ok(()),
        }
    }
}

impl Neighbourhoods {
    pub(crate) fn check(&self) -> Result<(), String> {
        let positive = |value: f64| value > 0.;
        all("radii", &self.radii, "finite numbers above 0", positive)?;
        all("bandwidths", &self.bandwidths, "finite numbers above 0", positive)?;
        self.neighbours.iter().try_for_each(|&k| at_least("neighbours", 1, k))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.neighbours.is_empty() && self.radii.is_empty() && self.bandwidths.is_empty()
    }
}

/// Refuses a list with a value that is not finite or not as it should be.
pub(crate) fn all(
    name: &str,
    values: &[f64],
    expected: &str,
    good: impl Fn(f64) -> bool,
) -> Result<(), String> {
    match values.iter().all(|&value| value.is_finite() && good(value)) {
        true => Ok(()),
        false => Err(format!("`{name}` must be {expected}, got: {values:?}")),
    }
}

pub(crate) fn at_least(name: &str, least: usize, got: usize) -> Result<(), String> {
    match got >= least {
        true => Ok(()),
        false => Err(format!("`{name}` must be at least {least}, got: {got}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(text: &str) -> String {
        match toml::from_str::<Isotropy>(text) {
            Ok(settings) => settings.check().unwrap_err(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn mistakes_are_named() {
        for (text, name) in [
            ("conditions = [1.0]", "conditions"),
            ("conditions = [inf]", "conditions"),
            ("lambdas = [-1.0]", "lambdas"),
            ("lambdas = [nan]", "lambdas"),
            ("draws = 1", "draws"),
            ("samples = 0", "samples"),
            ("directions = 0", "directions"),
            ("test_points = 0", "test_points"),
            ("floor = 1.0", "floor"),
            ("alignments = [\"sideways\"]", "sideways"),
            ("condition = [3.0]", "condition"),
            ("neighbourhoods = { neighbours = [0], radii = [], bandwidths = [] }", "neighbours"),
            ("neighbourhoods = { neighbours = [1], radii = [0.0], bandwidths = [] }", "radii"),
            ("lambdas = []\nneighbourhoods = { neighbours = [], radii = [], bandwidths = [] }", "no probe"),
        ] {
            assert!(problem(text).contains(name), "{text}: {}", problem(text));
        }
    }

    #[test]
    fn what_is_left_out_has_its_default() {
        let settings: Isotropy = toml::from_str("seed = 7").unwrap();
        assert_eq!(settings, Isotropy { seed: 7, ..Isotropy::default() });
        settings.check().unwrap();
    }
}
