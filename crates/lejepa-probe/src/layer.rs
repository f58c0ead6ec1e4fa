//! The affine part of a LayerNorm and a linear layer, and the gradient of their loss.
//!
//! ```text
//! h = gamma * z + beta     scores = h W + b
//! ```

use faer::{Mat, MatRef};

use crate::centred::product;

/// The parameters: `W (dim, outputs)` column by column, then `b (outputs)`, `gamma (dim)`, `beta (dim)`.
#[derive(Debug, Clone)]
pub(crate) struct Layer {
    pub(crate) dim: usize,
    outputs: usize,
    pub(crate) parameters: Vec<f64>,
}

/// What a step learns from.
pub(crate) struct Batch {
    /// `(batch, dim)`
    pub(crate) rows: Mat<f64>,
    /// `(batch, outputs)`
    pub(crate) targets: Mat<f64>,
}

/// The mean over a batch of what is to become small.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Loss {
    CrossEntropy,
    SquaredError,
}

impl Layer {
    /// `gamma` is 1, all else 0.
    pub(crate) fn new(dim: usize, outputs: usize) -> Self {
        let mut parameters = vec![0.; (dim + 1) * outputs + 2 * dim];
        parameters[(dim + 1) * outputs..][..dim].fill(1.);
        Self { dim, outputs, parameters }
    }

    fn weights(&self) -> MatRef<'_, f64> {
        MatRef::from_column_major_slice(&self.parameters[..self.dim * self.outputs], self.dim, self.outputs)
    }

    /// Scaled rows and their scores.
    ///
    /// # Shapes
    /// - `rows`: `(batch, dim)`
    /// - results: `(batch, dim)`, `(batch, outputs)`
    pub(crate) fn forward(&self, rows: &Mat<f64>) -> (Mat<f64>, Mat<f64>) {
        let (bias, affine) = self.parameters[self.dim * self.outputs..].split_at(self.outputs);
        let (gamma, beta) = affine.split_at(self.dim);
        let scaled = Mat::from_fn(rows.nrows(), self.dim, |row, column| {
            gamma[column] * rows[(row, column)] + beta[column]
        });
        let mut scores = product(scaled.as_ref(), self.weights());
        for (output, bias) in bias.iter().enumerate() {
            (0..rows.nrows()).for_each(|row| scores[(row, output)] += bias);
        }
        (scaled, scores)
    }

    /// The loss; writes its gradient.
    pub(crate) fn evaluate(&self, batch: &Batch, loss: Loss, gradient: &mut [f64]) -> f64 {
        let (scaled, mut scores) = self.forward(&batch.rows);
        let value = loss.evaluate(&mut scores, &batch.targets);
        let residuals = scores; // (batch, outputs)
        let of_weights = product(scaled.transpose(), residuals.as_ref());
        let of_scaled = product(residuals.as_ref(), self.weights().transpose()); // (batch, dim)
        let samples = 0..batch.rows.nrows();
        let columns = |column| (0..self.dim).map(move |row| (row, column));
        let weights = (0..self.outputs).flat_map(columns).map(|entry| of_weights[entry]);
        let bias = (0..self.outputs).map(|output| samples.clone().map(|row| residuals[(row, output)]).sum());
        let gamma = (0..self.dim).map(|column| {
            samples.clone().map(|row| of_scaled[(row, column)] * batch.rows[(row, column)]).sum()
        });
        let beta = (0..self.dim).map(|column| samples.clone().map(|row| of_scaled[(row, column)]).sum());
        let entries = weights.chain(bias).chain(gamma).chain(beta);
        gradient.iter_mut().zip(entries).for_each(|(to, entry): (_, f64)| *to = entry);
        value
    }
}

impl Loss {
    /// The mean over the batch; scores become its gradient.
    fn evaluate(self, scores: &mut Mat<f64>, targets: &Mat<f64>) -> f64 {
        let (samples, outputs) = (scores.nrows(), scores.ncols());
        let mut value = 0.;
        for row in 0..samples {
            let all = (0..outputs).map(|output| (row, output));
            match self {
                Self::CrossEntropy => {
                    let largest = all.clone().map(|entry| scores[entry]).fold(f64::NEG_INFINITY, f64::max);
                    let total: f64 = all.clone().map(|entry| (scores[entry] - largest).exp()).sum();
                    for entry in all {
                        value += targets[entry] * (largest + total.ln() - scores[entry]);
                        scores[entry] = (scores[entry] - largest).exp() / total - targets[entry];
                    }
                }
                Self::SquaredError => {
                    for entry in all {
                        let residual = scores[entry] - targets[entry];
                        value += residual * residual;
                        scores[entry] = 2. * residual;
                    }
                }
            }
        }
        for output in 0..outputs {
            (0..samples).for_each(|row| scores[(row, output)] /= samples as f64);
        }
        value / samples as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of central differences with a step of 1e-6, in f64.
    const TOLERANCE: f64 = 1e-8;

    #[test]
    fn the_gradient_is_that_of_central_differences() {
        let (dim, outputs, samples) = (4, 3, 5);
        let wave = |index: usize| (index as f64 * 1.7).sin();
        let batch = Batch {
            rows: Mat::from_fn(samples, dim, |row, column| wave(row * dim + column)),
            targets: Mat::from_fn(samples, outputs, |row, output| {
                f64::from(u8::from(row % outputs == output))
            }),
        };
        for loss in [Loss::CrossEntropy, Loss::SquaredError] {
            let mut layer = Layer::new(dim, outputs);
            layer
                .parameters
                .iter_mut()
                .enumerate()
                .for_each(|(index, parameter)| *parameter += wave(index + 50));
            let mut gradient = vec![0.; layer.parameters.len()];
            layer.evaluate(&batch, loss, &mut gradient);
            for (index, entry) in gradient.iter().enumerate() {
                let at = |step: f64| {
                    let mut moved = layer.clone();
                    moved.parameters[index] += step;
                    moved.evaluate(&batch, loss, &mut vec![0.; gradient.len()])
                };
                let difference = (at(1e-6) - at(-1e-6)) / 2e-6;
                assert!((entry - difference).abs() < TOLERANCE, "{loss:?} {index}: {entry} {difference}");
            }
        }
    }
}
