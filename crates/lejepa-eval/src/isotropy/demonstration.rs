//! The isotropy argument without a model: features are drawn, the true function is known.

use serde::{Deserialize, Serialize};

use super::settings::all;
use super::{LinearDemonstration, LinearPoint, SmoothDemonstration, SmoothPoint, Verdict};
use crate::{Error, Result};

/// What is simulated. Every key may be left out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Demonstration {
    /// Draws everything.
    pub seed: u64,
    /// Condition numbers of the covariance, largest over smallest variance, above 1; 1 is always there.
    pub conditions: Vec<f64>,
    /// Ridge and OLS.
    pub linear: LinearDemonstration,
    /// k-NN, radius k-NN and kernel.
    pub smooth: SmoothDemonstration,
}

impl Default for Demonstration {
    fn default() -> Self {
        Self {
            seed: 0,
            conditions: vec![3., 10., 30., 100.],
            linear: LinearDemonstration::default(),
            smooth: SmoothDemonstration::default(),
        }
    }
}

/// Everything that tables and plots are made from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DemonstrationReport {
    /// What was asked for.
    pub settings: Demonstration,
    /// Ridge and OLS, by rising condition number from 1 on.
    pub linear: Vec<LinearPoint>,
    /// The other probes, by rising condition number from 1 on.
    pub smooth: Vec<SmoothPoint>,
    /// The largest condition number against 1.
    pub verdicts: Vec<Verdict>,
}

impl Demonstration {
    /// What is wrong with the settings.
    pub fn check(&self) -> std::result::Result<(), String> {
        all("conditions", &self.conditions, "finite numbers above 1", |condition| condition > 1.)?;
        self.linear.check().map_err(|problem| format!("linear: {problem}"))?;
        self.smooth.check().map_err(|problem| format!("smooth: {problem}"))
    }

    /// Simulates. Deterministic by the seed, whatever the number of threads.
    pub fn run(&self) -> Result<DemonstrationReport> {
        self.check().map_err(|problem| Error::Suite { name: "isotropy".into(), problem })?;
        let mut conditions = self.conditions.clone();
        conditions.push(1.);
        conditions.sort_by(f64::total_cmp);
        conditions.dedup();
        let linear = self.linear.run(&conditions, self.seed)?;
        let smooth = self.smooth.run(&conditions, self.seed);
        Ok(DemonstrationReport {
            settings: self.clone(),
            linear: linear.points,
            smooth: smooth.points,
            verdicts: linear.verdicts.into_iter().chain(smooth.verdicts).collect(),
        })
    }
}
