//! Samples of several dimensions and sums over all pairs of them.

use std::ops::Range;

use candle_core::{DType, Device, Tensor};
use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, MatRef, Par};
use rayon::prelude::*;

use crate::{Error, Result};

/// Columns of the Gram matrix that one task has in memory at a time.
const BLOCK: usize = 32;

/// The samples that a statistic is about.
pub(super) struct Points {
    statistic: &'static str,
    pub(super) count: usize,
    pub(super) dim: usize,
    /// One sample after the other.
    coordinates: Vec<f64>,
    /// `|y_j|^2`
    pub(super) squares: Vec<f64>,
}

/// What a statistic may ask of two samples.
#[derive(Clone, Copy)]
pub(super) struct Pair {
    /// `y_j . y_k`
    pub(super) product: f64,
    /// `|y_j|^2` and `|y_k|^2`
    pub(super) squares: [f64; 2],
}

impl Pair {
    /// `|y_j + y_k|^2`
    pub(super) fn square_of_sum(&self) -> f64 {
        self.squares[0] + self.squares[1] + 2. * self.product
    }

    /// `|y_j - y_k|^2`
    pub(super) fn square_of_difference(&self) -> f64 {
        let square = self.squares[0] + self.squares[1] - 2. * self.product;
        // Rounding may leave less than nothing; `max` would make a number of NaN.
        if square < 0. { 0. } else { square }
    }
}

impl Points {
    /// # Shapes
    /// - `samples`: `(samples, dim)`
    pub(super) fn new(statistic: &'static str, samples: &Tensor) -> Result<Self> {
        let &[count, dim] = samples.dims() else {
            return Err(Error::Shape { expected: "(samples, dim)".into(), got: samples.dims().to_vec() });
        };
        if count == 0 {
            return Err(Error::Samples { statistic, least: 1, got: count });
        }
        if dim == 0 {
            return Err(Error::Shape {
                expected: "of at least one dimension".into(),
                got: samples.dims().to_vec(),
            });
        }
        let samples = samples.to_device(&Device::Cpu)?.to_dtype(DType::F64)?;
        let coordinates: Vec<f64> = samples.flatten_all()?.to_vec1()?;
        if let Some(index) = coordinates.iter().position(|coordinate| !coordinate.is_finite()) {
            let cause = format!("sample {}: {}", index / dim, coordinates[index]);
            return Err(Error::NotFiniteJointly { statistic, cause });
        }
        Ok(Self::of(statistic, coordinates, dim))
    }

    fn of(statistic: &'static str, coordinates: Vec<f64>, dim: usize) -> Self {
        let squares: Vec<f64> =
            coordinates.chunks(dim).map(|sample| sample.iter().map(|y| y * y).sum()).collect();
        Self { statistic, count: squares.len(), dim, coordinates, squares }
    }

    /// The same samples less their mean: differences of samples that are far from the origin have
    /// more digits then.
    pub(super) fn centred(&self) -> Self {
        let mut mean = vec![0.; self.dim];
        for sample in self.coordinates.chunks(self.dim) {
            mean.iter_mut().zip(sample).for_each(|(mean, y)| *mean += y / self.count as f64);
        }
        let centred = self.coordinates.iter().zip(mean.iter().cycle()).map(|(y, mean)| y - mean);
        Self::of(self.statistic, centred.collect(), self.dim)
    }

    /// The sum of a symmetric term over all ordered pairs, those of a sample with itself included.
    ///
    /// The result is the same on any number of cores. Memory is linear in the number of samples.
    pub(super) fn sum_over_pairs(&self, term: impl Fn(Pair) -> f64 + Sync) -> f64 {
        let pair =
            |product, j: usize, k: usize| Pair { product, squares: [self.squares[j], self.squares[k]] };
        let starts: Vec<usize> = (0..self.count).step_by(BLOCK).collect();
        let sums: Vec<f64> = starts
            .into_par_iter()
            .map(|start| {
                let block = start..self.count.min(start + BLOCK);
                let gram = self.gram(block.clone());
                let of_sample = |(column, j): (usize, usize)| {
                    let before = (0..j).map(|k| term(pair(gram[(k, column)], j, k))).sum::<f64>();
                    // Not the matrix's own diagonal, which another order of summing rounds differently.
                    2. * before + term(pair(self.squares[j], j, j))
                };
                block.enumerate().map(of_sample).sum::<f64>()
            })
            .collect();
        sums.iter().sum()
    }

    /// Inner products of the samples of a range with all up to the range's end.
    ///
    /// # Shapes
    /// - result: `(range.end, range.len())`
    pub(super) fn gram(&self, range: Range<usize>) -> Mat<f64> {
        let samples = MatRef::from_column_major_slice(&self.coordinates, self.dim, self.count);
        let mut gram = Mat::zeros(range.end, range.len());
        let (all, some) = (samples.subcols(0, range.end), samples.subcols(range.start, range.len()));
        matmul(&mut gram, Accum::Replace, all.transpose(), some, 1., Par::Seq);
        gram
    }

    /// The statistic's value, if it is a number.
    pub(super) fn finite(&self, value: f64) -> Result<f64> {
        if value.is_finite() {
            return Ok(value);
        }
        let cause = "the samples are out of its range".into();
        Err(Error::NotFiniteJointly { statistic: self.statistic, cause })
    }
}
