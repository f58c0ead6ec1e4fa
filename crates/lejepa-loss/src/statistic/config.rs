//! A statistic as it is written in a recipe.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{
    AndersonDarling, Covariance, CramerVonMises, EppsPulley, ExtendedJarqueBera, JarqueBera, Moments,
    OrderStatistics, ShapiroWilk, Statistic, VicregLimit, Watson,
};
use crate::Result;

/// The test that is done on every slice, with its settings: `statistic = { name = "epps-pulley" }`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "kebab-case", deny_unknown_fields)]
pub enum StatisticConfig {
    /// [`EppsPulley`], which the paper recommends.
    EppsPulley {
        /// Quadrature points over `[-t_max, t_max]`, an odd number.
        #[serde(default = "usual_knots")]
        knots: usize,
        /// Where the quadrature ends.
        #[serde(default = "usual_t_max")]
        t_max: f64,
    },
    /// [`JarqueBera`]
    JarqueBera {},
    /// [`ExtendedJarqueBera`]
    ExtendedJarqueBera {},
    /// [`VicregLimit`]
    VicregLimit {},
    /// [`Moments`]
    Moments {
        /// The last moment.
        up_to: usize,
    },
    /// [`CramerVonMises`]
    CramerVonMises {},
    /// [`AndersonDarling`]
    AndersonDarling {},
    /// [`Watson`]
    Watson {},
    /// [`ShapiroWilk`]
    ShapiroWilk {
        /// How expected order statistics are approximated.
        #[serde(default)]
        order_statistics: OrderStatistics,
        /// How their covariance is approximated.
        #[serde(default)]
        covariance: Covariance,
    },
}

fn usual_knots() -> usize {
    17
}

fn usual_t_max() -> f64 {
    5.
}

impl Default for StatisticConfig {
    fn default() -> Self {
        Self::EppsPulley { knots: usual_knots(), t_max: usual_t_max() }
    }
}

impl StatisticConfig {
    /// Checks the settings and makes the statistic.
    pub fn build(&self) -> Result<Arc<dyn Statistic>> {
        Ok(match *self {
            Self::EppsPulley { knots, t_max } => Arc::new(EppsPulley::new(t_max, knots)?),
            Self::JarqueBera {} => Arc::new(JarqueBera),
            Self::ExtendedJarqueBera {} => Arc::new(ExtendedJarqueBera),
            Self::VicregLimit {} => Arc::new(VicregLimit),
            Self::Moments { up_to } => Arc::new(Moments::new(up_to)?),
            Self::CramerVonMises {} => Arc::new(CramerVonMises),
            Self::AndersonDarling {} => Arc::new(AndersonDarling),
            Self::Watson {} => Arc::new(Watson),
            Self::ShapiroWilk { order_statistics, covariance } => {
                Arc::new(ShapiroWilk { order_statistics, covariance })
            }
        })
    }
}
