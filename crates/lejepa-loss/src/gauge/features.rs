//! Embeddings that a gauge can read: finite, two axes, enough samples.

use candle_core::{DType, Device, Tensor};

use super::Reference;
use crate::{Error, Result};

/// Checked embeddings, with the moments of every dimension.
#[derive(Debug)]
pub(super) struct Features {
    /// `(samples, dim)`, f32 or f64, on the CPU.
    pub(super) tensor: Tensor,
    pub(super) samples: usize,
    pub(super) dim: usize,
    /// Mean of every dimension.
    pub(super) means: Vec<f64>,
    /// Variance of every dimension around its mean, by `samples - 1`.
    pub(super) variances: Vec<f64>,
}

/// Fewer samples say too little about anything.
const LEAST_SAMPLES: usize = 16;
/// Squares and sums of larger numbers could leave the range of f32 and f64.
const LARGEST: f64 = 1e30;
/// Rounding of a mean makes a constant vary by this share of its value, no data does.
const ROUNDING: f64 = 1e-12;
/// Values that are converted to f64 at a time.
const BLOCK: usize = 1 << 20;

impl Features {
    pub(super) fn new(tensor: &Tensor) -> Result<Self> {
        let (samples, dim) = match tensor.dims() {
            &[samples, dim] if dim > 0 => (samples, dim),
            got => return Err(Error::Shape { expected: "(samples, dim)".into(), got: got.to_vec() }),
        };
        if samples < LEAST_SAMPLES {
            return Err(Error::Samples { statistic: "a reading", least: LEAST_SAMPLES, got: samples });
        }
        let dtype = if tensor.dtype() == DType::F64 { DType::F64 } else { DType::F32 };
        let tensor = tensor.detach().to_device(&Device::Cpu)?.to_dtype(dtype)?.contiguous()?;
        let mut features = Self { tensor, samples, dim, means: vec![0.; dim], variances: vec![0.; dim] };
        features.measure_moments()?;
        Ok(features)
    }

    fn measure_moments(&mut self) -> Result<()> {
        let (mut sums, mut largest) = (vec![0.; self.dim], vec![0f64; self.dim]);
        for (first, block) in self.blocks() {
            for (row, values) in block?.chunks_exact(self.dim).enumerate() {
                for (column, &value) in values.iter().enumerate() {
                    if !value.is_finite() || value.abs() > LARGEST {
                        return Err(Error::Value { row: first + row, column, value });
                    }
                    sums[column] += value;
                    largest[column] = largest[column].max(value.abs());
                }
            }
        }
        let means: Vec<f64> = sums.iter().map(|sum| sum / self.samples as f64).collect();
        let mut squares = vec![0.; self.dim];
        for (_, block) in self.blocks() {
            for values in block?.chunks_exact(self.dim) {
                for ((square, value), mean) in squares.iter_mut().zip(values).zip(&means) {
                    *square += (value - mean).powi(2);
                }
            }
        }
        let degrees = (self.samples - 1) as f64;
        let variance = |(square, largest): (&f64, &f64)| {
            let variance = square / degrees;
            if variance.sqrt() <= largest * ROUNDING { 0. } else { variance }
        };
        self.variances = squares.iter().zip(&largest).map(variance).collect();
        self.means = means;
        Ok(())
    }

    /// Consecutive rows in f64, each block with the index of its first one.
    pub(super) fn blocks(&self) -> impl Iterator<Item = (usize, Result<Vec<f64>>)> {
        let rows = (BLOCK / self.dim).max(1);
        (0..self.samples).step_by(rows).map(move |first| {
            let length = rows.min(self.samples - first);
            (first, self.rows(first, length).map_err(Into::into))
        })
    }

    fn rows(&self, first: usize, length: usize) -> candle_core::Result<Vec<f64>> {
        self.tensor.narrow(0, first, length)?.to_dtype(DType::F64)?.flatten_all()?.to_vec1()
    }

    /// The mean variance of a dimension.
    pub(super) fn mean_variance(&self) -> f64 {
        self.variances.iter().sum::<f64>() / self.dim as f64
    }

    /// The root mean square of the dimensions' means.
    pub(super) fn offset(&self) -> f64 {
        (self.means.iter().map(|mean| mean * mean).sum::<f64>() / self.dim as f64).sqrt()
    }

    /// The embeddings in the coordinates of a reference: for the shape, centred and divided by their
    /// overall root mean square, or zeros if they do not vary.
    pub(super) fn compared_with(&self, reference: Reference) -> Result<Tensor> {
        let biased = (self.samples - 1) as f64 / self.samples as f64;
        let scale = (self.mean_variance() * biased).sqrt();
        let row = |values: &[f64]| {
            Tensor::from_slice(values, (1, values.len()), &Device::Cpu)?.to_dtype(self.tensor.dtype())
        };
        Ok(match reference {
            Reference::Standard => self.tensor.clone(),
            Reference::Shape if scale == 0. => self.tensor.zeros_like()?,
            Reference::Shape => {
                self.tensor.broadcast_sub(&row(&self.means)?)?.broadcast_div(&row(&[scale])?)?
            }
        })
    }
}
