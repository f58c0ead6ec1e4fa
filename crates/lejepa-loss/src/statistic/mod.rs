//! Tests of one-dimensional samples against the standard normal (paper, section 4.2).
//!
//! [`Statistic`] is all that a test has to say: its value and its gradient for one slice. What runs
//! it over the slices of a tensor, on all cores and inside Candle's graph, is written once, in
//! [`sliced`].

mod anderson_darling;
mod ascending;
mod centred;
mod config;
mod cramer_von_mises;
mod epps_pulley;
mod jarque_bera;
mod moments;
mod shapiro_wilk;
mod sliced;
mod vicreg_limit;
mod watson;

use std::fmt::Debug;
use std::sync::Arc;

use candle_core::Tensor;

pub use anderson_darling::AndersonDarling;
pub use config::StatisticConfig;
pub use cramer_von_mises::CramerVonMises;
pub use epps_pulley::EppsPulley;
pub(crate) use epps_pulley::Knot;
pub use jarque_bera::{ExtendedJarqueBera, JarqueBera};
pub use moments::Moments;
pub use shapiro_wilk::{Covariance, OrderStatistics, ShapiroWilk};
pub use vicreg_limit::VicregLimit;
pub use watson::Watson;

use crate::{Error, Result};

/// How far one-dimensional samples are from the standard normal; the less, the nearer.
///
/// Implement [`value`](Statistic::value) and [`gradient`](Statistic::gradient) to have another
/// statistic: the rest is provided.
pub trait Statistic: Debug + Send + Sync {
    /// The statistic's name, as it is written in a recipe.
    fn name(&self) -> &'static str;

    /// The statistic of one slice, whose samples come in any order.
    ///
    /// There are at least [`least_samples`](Statistic::least_samples) of them. Where a sample is not
    /// finite neither is the value.
    fn value(&self, samples: &[f64]) -> f64;

    /// Writes the derivative of the statistic by each sample.
    fn gradient(&self, samples: &[f64], gradient: &mut [f64]);

    /// The expected value for a perfect standard normal sample of this size, if it is known.
    fn floor(&self, samples: usize) -> Option<f64>;

    /// The fewest samples for which the statistic is defined.
    fn least_samples(&self) -> usize {
        1
    }

    /// The statistic of every slice, as an operation of Candle's graph.
    ///
    /// # Shapes
    /// - `projected`: `(.., slices, samples)`
    /// - result: `(.., slices)`
    fn per_slice(self: Arc<Self>, projected: &Tensor) -> Result<Tensor>
    where
        Self: 'static,
    {
        sliced::per_slice(self, projected)
    }

    /// The statistic of every slice of embeddings along given directions.
    ///
    /// # Shapes
    /// - `embeddings`: `(.., samples, dim)`
    /// - `directions`: `(dim, slices)`, columns of unit norm
    /// - result: `(.., slices)`
    fn along(self: Arc<Self>, embeddings: &Tensor, directions: &Tensor) -> Result<Tensor>
    where
        Self: 'static,
    {
        let projected = sliced::project(embeddings, directions)?;
        self.per_slice(&projected)
    }
}

/// Refuses slices that are too short for a statistic.
fn check_samples(statistic: &(impl Statistic + ?Sized), samples: usize) -> Result<()> {
    let least = statistic.least_samples();
    if samples < least {
        return Err(Error::Samples { statistic: statistic.name(), least, got: samples });
    }
    Ok(())
}
