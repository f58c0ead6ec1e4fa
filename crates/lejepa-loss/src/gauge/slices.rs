//! Embeddings along single directions: statistics of many, moments of a few.

use std::sync::Arc;

use candle_core::{DType, Device, Tensor};
use serde::Serialize;

use super::null::Null;
use crate::{EppsPulley, Result, Statistic};

/// Embeddings along one direction, in the coordinates of the reference.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Slice {
    /// Number of the random slice, rank of the principal direction, or index of the dimension,
    /// from 0.
    pub index: usize,
    /// Epps-Pulley.
    pub statistic: f64,
    /// The share of perfect Gaussian samples with such a statistic or a larger one. Absent for
    /// principal directions, which were chosen by the samples themselves.
    pub p_value: Option<f64>,
    /// Mean of the projections.
    pub mean: f64,
    /// Standard deviation of the projections.
    pub deviation: f64,
    /// Skewness of the projections; 0 if they do not vary.
    pub skewness: f64,
    /// Kurtosis of the projections, 3 for a Gaussian; 0 if they do not vary.
    pub kurtosis: f64,
}

/// How often projections fall into bins of equal width.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Histogram {
    /// Where the first bin begins. It also holds what lies below.
    pub start: f64,
    /// Width of a bin.
    pub width: f64,
    /// Samples in every bin; the last one also holds what lies above.
    pub counts: Vec<usize>,
}

/// Projected values that are held at a time.
const BLOCK: usize = 1 << 23;

/// Embeddings in the coordinates of a reference, to be sliced.
#[derive(Debug)]
pub(super) struct Slices {
    embeddings: Tensor,
    statistic: Arc<EppsPulley>,
}

impl Slices {
    pub(super) fn new(embeddings: Tensor, statistic: EppsPulley) -> Self {
        Self { embeddings, statistic: Arc::new(statistic) }
    }

    /// The statistic along every column of `(dim, slices)` directions.
    pub(super) fn statistics(&self, directions: &Tensor) -> Result<Vec<f64>> {
        self.in_blocks(directions.dim(1)?, |first, length| {
            self.statistic.clone().along(&self.embeddings, &directions.narrow(1, first, length)?)
        })
    }

    /// The statistic of every dimension.
    pub(super) fn dimension_statistics(&self) -> Result<Vec<f64>> {
        self.in_blocks(self.embeddings.dim(1)?, |first, length| {
            self.statistic.clone().per_slice(&self.embeddings.narrow(1, first, length)?.t()?)
        })
    }

    fn in_blocks(
        &self,
        count: usize,
        per_slice: impl Fn(usize, usize) -> Result<Tensor>,
    ) -> Result<Vec<f64>> {
        let length = (BLOCK / self.embeddings.dim(0)?).max(1);
        let mut statistics = Vec::with_capacity(count);
        for first in (0..count).step_by(length) {
            let block = per_slice(first, length.min(count - first))?;
            statistics.extend(block.to_dtype(DType::F64)?.to_vec1::<f64>()?);
        }
        Ok(statistics)
    }

    /// The projections of all samples onto one direction.
    pub(super) fn project(&self, direction: &[f64]) -> Result<Vec<f64>> {
        let direction = Tensor::from_slice(direction, (direction.len(), 1), &Device::Cpu)?
            .to_dtype(self.embeddings.dtype())?;
        Ok(self.embeddings.matmul(&direction)?.flatten_all()?.to_dtype(DType::F64)?.to_vec1()?)
    }

    /// One direction in numbers, with a p-value if there is a null distribution.
    pub(super) fn describe(&self, index: usize, direction: &[f64], null: Option<&Null>) -> Result<Slice> {
        let projections = self.project(direction)?;
        let statistic = self.statistic.value(&projections);
        let count = projections.len() as f64;
        let mean = projections.iter().sum::<f64>() / count;
        let moment =
            |power: i32| projections.iter().map(|value| (value - mean).powi(power)).sum::<f64>() / count;
        let deviation = moment(2).sqrt();
        let varies = deviation > mean.abs() * f64::EPSILON * count;
        let standardised = |power: i32| if varies { moment(power) / deviation.powi(power) } else { 0. };
        Ok(Slice {
            index,
            statistic,
            p_value: null.map(|null| null.p_value(statistic)),
            mean,
            deviation,
            skewness: standardised(3),
            kurtosis: standardised(4),
        })
    }
}

/// The indices of the `count` largest values, the largest first.
pub(super) fn largest(values: &[f64], count: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|left, right| values[*right].total_cmp(&values[*left]));
    order.truncate(count);
    order
}

impl Histogram {
    /// The fewest and the most bins.
    const BINS: (usize, usize) = (12, 60);

    /// Wide enough for the projections and for the standard normal.
    pub(super) fn of(slice: &Slice, projections: &[f64]) -> Self {
        let reach = 4. * slice.deviation;
        let (start, end) = ((slice.mean - reach).min(-4.), (slice.mean + reach).max(4.));
        let (fewest, most) = Self::BINS;
        let bins = (2 * projections.len().isqrt()).clamp(fewest, most);
        let width = (end - start) / bins as f64;
        let mut counts = vec![0; bins];
        for value in projections {
            // Saturates at both ends.
            counts[(((value - start) / width) as usize).min(bins - 1)] += 1;
        }
        Self { start, width, counts }
    }
}
