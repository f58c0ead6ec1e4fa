//! Principal directions of features: the unit vectors along which they vary most.
//!
//! ```text
//! coordinates = (x - mean) V     (samples, directions), variances falling
//! ```

use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, MatRef, Par, Side};
use ndarray::{Array2, ArrayView2, Axis, s};

use crate::{Error, Result};

/// Features with more dimensions than this get their directions from some of the samples.
pub const WIDE: usize = 2048;
/// How many of them, evenly spaced.
pub const WIDE_SAMPLES: usize = 1024;
/// Samples that are held in f64 at a time.
const BLOCK: usize = 1024;
/// Eigenvalues below this share of the largest are rounding of f64.
const RANK: f64 = 1e-12;

/// A mean and directions.
pub struct Directions {
    /// Of every dimension.
    pub mean: Vec<f64>,
    /// `(dim, directions)`
    pub vectors: Mat<f64>,
}

impl Directions {
    /// The first `count`, fewer if features vary along fewer; whether a vector or its opposite is found is
    /// left to chance.
    ///
    /// # Shapes
    /// - `values`: `(samples, dim)`
    pub fn of(values: ArrayView2<'_, f32>, count: usize) -> Result<Self> {
        let mean = mean(values);
        let vectors = leading(values, &mean, count)?;
        Ok(Self { mean, vectors })
    }

    /// The same with the largest entry of every vector positive (the first, if several are): colours and
    /// maps made of them do not flip between two runs.
    pub fn signed(mut self) -> Self {
        for column in 0..self.count() {
            let largest = self
                .vectors
                .col(column)
                .iter()
                .copied()
                .fold(0f64, |largest, entry| if entry.abs() > largest.abs() { entry } else { largest });
            if largest < 0. {
                self.vectors.col_mut(column).iter_mut().for_each(|entry| *entry = -*entry);
            }
        }
        self
    }

    /// Their number.
    pub fn count(&self) -> usize {
        self.vectors.ncols()
    }

    /// Coordinates `(samples, directions)`, block by block: raw pixels in f64 would not fit.
    pub fn project(&self, values: ArrayView2<'_, f32>) -> Array2<f64> {
        let mut coordinates = Array2::zeros((values.nrows(), self.count()));
        let blocks = values.axis_chunks_iter(Axis(0), BLOCK);
        for (block, mut to) in blocks.zip(coordinates.axis_chunks_iter_mut(Axis(0), BLOCK)) {
            let products = product(centred(block, &self.mean).as_ref(), self.vectors.as_ref());
            to.indexed_iter_mut().for_each(|(place, to)| *to = products[place]);
        }
        coordinates
    }
}

/// Unit vectors `(dim, count)` along which features vary most, from the smaller of `X^T X` and `X X^T`.
fn leading(values: ArrayView2<'_, f32>, mean: &[f64], count: usize) -> Result<Mat<f64>> {
    let (samples, dim) = values.dim();
    let every = if dim > WIDE { samples.div_ceil(WIDE_SAMPLES).max(1) } else { 1 };
    let few = values.slice(s![..;every, ..]);
    if few.nrows() >= dim {
        let mut gram = Mat::zeros(dim, dim);
        for block in few.axis_chunks_iter(Axis(0), BLOCK) {
            let block = centred(block, mean);
            matmul(gram.as_mut(), Accum::Add, block.transpose(), block.as_ref(), 1., Par::rayon(0));
        }
        return eigenvectors(gram.as_ref(), count);
    }
    let rows = centred(few, mean);
    let vectors = eigenvectors(product(rows.as_ref(), rows.transpose()).as_ref(), count)?;
    let long = product(rows.transpose(), vectors.as_ref()); // (dim, count)
    let norms: Vec<f64> = (0..long.ncols()).map(|index| long.col(index).norm_l2()).collect();
    Ok(Mat::from_fn(dim, norms.len(), |row, index| long[(row, index)] / norms[index]))
}

/// Those of the largest eigenvalues, as columns; none that are rounding alone.
fn eigenvectors(gram: MatRef<'_, f64>, count: usize) -> Result<Mat<f64>> {
    let eigen = gram.self_adjoint_eigen(Side::Lower).map_err(|_| Error::NoEigenvectors)?;
    // Eigenvalues rise.
    let (size, values) = (gram.nrows(), eigen.S().column_vector());
    let largest = if size > 0 { values[size - 1] } else { 0. };
    let count = (0..count.min(size)).take_while(|index| values[size - 1 - index] > RANK * largest).count();
    Ok(Mat::from_fn(size, count, |row, index| eigen.U()[(row, size - 1 - index)]))
}

fn mean(values: ArrayView2<'_, f32>) -> Vec<f64> {
    let mut sums = vec![0.; values.ncols()];
    for row in values.outer_iter() {
        sums.iter_mut().zip(row).for_each(|(sum, value)| *sum += f64::from(*value));
    }
    sums.into_iter().map(|sum| sum / values.nrows().max(1) as f64).collect()
}

fn centred(values: ArrayView2<'_, f32>, mean: &[f64]) -> Mat<f64> {
    let difference = |row, column| f64::from(values[(row, column)]) - mean[column];
    Mat::from_fn(values.nrows(), values.ncols(), difference)
}

fn product(left: MatRef<'_, f64>, right: MatRef<'_, f64>) -> Mat<f64> {
    let mut result = Mat::zeros(left.nrows(), right.ncols());
    matmul(result.as_mut(), Accum::Replace, left, right, 1., Par::rayon(0));
    result
}

#[cfg(test)]
mod tests {
    use safetensors::SafeTensors;

    use super::*;

    /// The golden file is f64, its input f32.
    const AGREEMENT: f64 = 1e-9;

    /// `(shape, values)` of a tensor of `tests/golden/principal_components.safetensors`.
    fn golden(name: &str) -> (Vec<usize>, Vec<f64>) {
        let path =
            concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/principal_components.safetensors");
        let bytes = std::fs::read(path).unwrap();
        let file = SafeTensors::deserialize(&bytes).unwrap();
        let tensor = file.tensor(name).unwrap();
        let values = tensor.data().as_chunks::<8>().0.iter().map(|&value| f64::from_le_bytes(value));
        (tensor.shape().to_vec(), values.collect())
    }

    fn matrix(name: &str) -> Array2<f64> {
        let (shape, values) = golden(name);
        Array2::from_shape_vec((shape[0], shape[1]), values).unwrap()
    }

    /// Features with more and with fewer samples than dimensions, against scikit-learn's `PCA`.
    #[test]
    fn directions_and_coordinates_are_those_of_scikit_learn() {
        for case in ["tall", "wide"] {
            let values = matrix(&format!("{case}.features")).mapv(|value| value as f32);
            let (components, scores) =
                (matrix(&format!("{case}.components")), matrix(&format!("{case}.scores")));
            let directions = Directions::of(values.view(), 3).unwrap();
            let coordinates = directions.project(values.view());
            let signed = Directions::of(values.view(), 3).unwrap().signed();
            for component in 0..3 {
                let dot: f64 = components
                    .row(component)
                    .iter()
                    .enumerate()
                    .map(|(row, value)| value * directions.vectors[(row, component)])
                    .sum();
                // Up to the sign.
                assert!((dot.abs() - 1.).abs() < AGREEMENT, "{case} {component}: {dot}");
                for (found, expected) in coordinates.column(component).iter().zip(scores.column(component)) {
                    assert!(
                        (found * dot.signum() - expected).abs() < AGREEMENT,
                        "{case}: {found} {expected}"
                    );
                }
                // scikit-learn's own rule is the same one.
                for (row, expected) in components.row(component).iter().enumerate() {
                    let found = signed.vectors[(row, component)];
                    assert!((found - expected).abs() < AGREEMENT, "{case} {component}: {found} {expected}");
                }
            }
        }
    }

    #[test]
    fn features_that_do_not_vary_have_no_directions() {
        let values = Array2::from_elem((5, 4), 0.25);
        assert_eq!(Directions::of(values.view(), 3).unwrap().count(), 0);
        assert_eq!(Directions::of(values.slice(s![..1, ..]), 3).unwrap().count(), 0);
    }
}
