//! A statistic as it is written in a recipe.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{EppsPulley, Statistic};
use crate::Result;

/// The test that is done on every slice, with its settings: `statistic = { name = "epps-pulley" }`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "kebab-case", deny_unknown_fields)]
pub enum StatisticConfig {
    /// [`EppsPulley`], which the paper recommends.
    EppsPulley {
        /// Quadrature points over `[-t_max, t_max]`, an odd number.
        #[serde(default = "seventeen")]
        knots: usize,
        /// Where the quadrature ends.
        #[serde(default = "five")]
        t_max: f64,
    },
}

fn seventeen() -> usize {
    17
}

fn five() -> f64 {
    5.
}

impl Default for StatisticConfig {
    fn default() -> Self {
        Self::EppsPulley { knots: seventeen(), t_max: five() }
    }
}

impl StatisticConfig {
    /// Checks the settings and makes the statistic.
    pub fn build(&self) -> Result<Arc<dyn Statistic>> {
        Ok(match *self {
            Self::EppsPulley { knots, t_max } => Arc::new(EppsPulley::new(t_max, knots)?),
        })
    }
}
