//! A linear layer behind a layer normalisation, as one linear layer of standardised rows.
//!
//! ```text
//! W (n w + v) + b  =  W' n + b',   W'[i, j] = W[i, j] w[j],   b' = b + W v
//! d W[i, j] = G[i, j] w[j] + g[i] v[j],   d b = g                         with G = d W', g = d b'
//! d w[j] = sum over i of W[i, j] G[i, j],   d v = W^T g
//! ```

use rayon::prelude::*;

use crate::gemm::{Matrix, Panels};

/// The parameters of norm and layer.
#[derive(Clone, Copy)]
pub(super) struct NormedLinear<'a> {
    pub(super) norm_weight: &'a [f32],
    pub(super) norm_bias: &'a [f32],
    pub(super) weight: &'a [f32],
    pub(super) bias: &'a [f32],
}

/// One layer: `(outputs, inputs)` and `(outputs)`.
pub(super) struct Folded {
    pub(super) weight: Vec<f32>,
    pub(super) bias: Vec<f32>,
    pub(super) inputs: usize,
}

impl Folded {
    /// The outputs in a range, for products with rows of inputs.
    pub(super) fn forward(&self, outputs: std::ops::Range<usize>) -> Panels {
        let weight = Matrix::new(&self.weight, self.inputs);
        Panels::of_transpose(weight.rows(outputs.start, outputs.len()))
    }

    /// The same, for products with rows of the outputs' gradients.
    pub(super) fn backward(&self, outputs: std::ops::Range<usize>) -> Panels {
        let weight = Matrix::new(&self.weight, self.inputs);
        Panels::new(weight.rows(outputs.start, outputs.len()))
    }
}

impl NormedLinear<'_> {
    pub(super) fn inputs(&self) -> usize {
        self.norm_weight.len()
    }

    /// The layer, its first outputs times a factor.
    pub(super) fn fold(&self, scaled: usize, factor: f32) -> Folded {
        let inputs = self.inputs();
        let mut weight = vec![0.; self.weight.len()];
        let mut bias = vec![0.; self.bias.len()];
        let rows = weight.par_chunks_exact_mut(inputs).zip(self.weight.par_chunks_exact(inputs));
        let outputs = rows.zip(bias.par_iter_mut().zip(self.bias)).enumerate();
        outputs.for_each(|(output, ((to, from), (bias, from_bias)))| {
            let factor = if output < scaled { factor } else { 1. };
            let norm = self.norm_weight.iter().zip(self.norm_bias);
            let mut shift = 0.;
            for ((to, from), (norm_weight, norm_bias)) in to.iter_mut().zip(from).zip(norm) {
                *to = factor * from * norm_weight;
                shift += from * norm_bias;
            }
            *bias = factor * (from_bias + shift);
        });
        Folded { weight, bias, inputs }
    }

    /// The gradients of norm weight, norm bias, weight and bias from those of the folded layer.
    pub(super) fn unfold(
        &self,
        mut of_weight: Vec<f32>,
        mut of_bias: Vec<f32>,
        scaled: usize,
        factor: f32,
    ) -> [Vec<f32>; 4] {
        let inputs = self.inputs();
        of_weight[..scaled * inputs].iter_mut().for_each(|gradient| *gradient *= factor);
        of_bias[..scaled].iter_mut().for_each(|gradient| *gradient *= factor);
        let (mut of_norm_weight, mut of_norm_bias) = (vec![0.; inputs], vec![0.; inputs]);
        let rows = of_weight.chunks_exact_mut(inputs).zip(self.weight.chunks_exact(inputs));
        for ((gradient, weight), of_bias) in rows.zip(&of_bias) {
            let norm = self.norm_weight.iter().zip(self.norm_bias);
            let of_norm = of_norm_weight.iter_mut().zip(&mut of_norm_bias);
            let entries = gradient.iter_mut().zip(weight).zip(norm).zip(of_norm);
            for (((gradient, weight), (norm_weight, norm_bias)), (of_norm_weight, of_norm_bias)) in entries {
                *of_norm_weight += weight * *gradient;
                *of_norm_bias += weight * of_bias;
                *gradient = *gradient * norm_weight + of_bias * norm_bias;
            }
        }
        [of_norm_weight, of_norm_bias, of_weight, of_bias]
    }
}
