//! A linear layer whose outputs are multiplied by `gamma`, if there is one, as one linear layer.
//!
//! ```text
//! gamma (W x + b)  =  W' x + b',   W'[i, j] = gamma[i] W[i, j],   b' = gamma b
//! d W[i, j] = gamma[i] G[i, j],   d b = gamma g                           with G = d W', g = d b'
//! d gamma[i] = sum over j of W[i, j] G[i, j] + b[i] g[i]
//! ```

use crate::gemm::{Matrix, Panels};

/// The parameters of layer and scale.
#[derive(Clone, Copy)]
pub(super) struct ScaledLinear<'a> {
    pub(super) weight: &'a [f32],
    pub(super) bias: &'a [f32],
    pub(super) gamma: Option<&'a [f32]>,
}

impl ScaledLinear<'_> {
    pub(super) fn inputs(&self) -> usize {
        self.weight.len() / self.bias.len()
    }

    fn with_folded_weight<R>(&self, work: impl FnOnce(Matrix<'_>) -> R) -> R {
        let inputs = self.inputs();
        let Some(gamma) = self.gamma else { return work(Matrix::new(self.weight, inputs)) };
        let rows = self.weight.chunks_exact(inputs).zip(gamma);
        let folded: Vec<f32> = rows.flat_map(|(row, gamma)| row.iter().map(move |x| gamma * x)).collect();
        work(Matrix::new(&folded, inputs))
    }

    /// For products with rows of inputs.
    pub(super) fn forward(&self) -> (Panels, Vec<f32>) {
        let bias = match self.gamma {
            None => self.bias.to_vec(),
            Some(gamma) => self.bias.iter().zip(gamma).map(|(bias, gamma)| gamma * bias).collect(),
        };
        (self.with_folded_weight(Panels::of_transpose), bias)
    }

    /// For products with rows of the outputs' gradients.
    pub(super) fn backward(&self) -> Panels {
        self.with_folded_weight(Panels::new)
    }

    /// The gradients of weight and bias, and of gamma if there is one, from those of the folded layer.
    pub(super) fn unfold(&self, mut of_weight: Vec<f32>, mut of_bias: Vec<f32>) -> Vec<Vec<f32>> {
        let Some(gamma) = self.gamma else { return vec![of_weight, of_bias] };
        let inputs = self.inputs();
        let mut of_gamma = Vec::with_capacity(gamma.len());
        let rows = of_weight.chunks_exact_mut(inputs).zip(self.weight.chunks_exact(inputs));
        let outputs = rows.zip(of_bias.iter_mut().zip(self.bias)).zip(gamma);
        for (((gradient, weight), (of_bias, bias)), gamma) in outputs {
            let product: f32 = gradient.iter().zip(weight).map(|(gradient, weight)| gradient * weight).sum();
            of_gamma.push(product + bias * *of_bias);
            gradient.iter_mut().for_each(|gradient| *gradient *= gamma);
            *of_bias *= gamma;
        }
        vec![of_weight, of_bias, of_gamma]
    }
}
