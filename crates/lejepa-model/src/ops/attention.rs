//! Multi-head attention from queries, keys and values that lie side by side in every row, without
//! copies for heads or transposes. The backward pass computes the probabilities again instead of
//! keeping them.
//!
//! ```text
//! P = softmax(scale Q K^T),   O = P V                      per image and head
//! dV = P^T dO,   dP = dO V^T,   dS = P (dP - rowsum(dP P))
//! dQ = scale dS K,   dK = scale dS^T Q
//! ```

use candle_core::{CpuStorage, CustomOp1, CustomOp2, D, Layout, Result, Shape, Tensor};
use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};
use rayon::prelude::*;

use super::contiguous::values;

/// How rows are divided into images and heads.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Heads {
    /// Rows per image.
    pub(crate) tokens: usize,
    /// Heads per row.
    pub(crate) heads: usize,
}

/// # Shapes
/// - `qkv`: `(images * tokens, 3 * dim)`: queries, keys, values, each `(heads, head_dim)`
/// - result: `(images * tokens, dim)`
pub(crate) fn attention(qkv: &Tensor, heads: Heads) -> Result<Tensor> {
    if super::is_fused(qkv) {
        qkv.contiguous()?.apply_op1(Attention(heads))
    } else {
        Ok(composed(qkv, heads)?.0)
    }
}

/// The same of elementary operations, with the probabilities `(images, heads, tokens, tokens)`.
pub(crate) fn composed(qkv: &Tensor, Heads { tokens, heads }: Heads) -> Result<(Tensor, Tensor)> {
    let (rows, width) = qkv.dims2()?;
    let (images, dim) = (rows / tokens, width / 3);
    let head_dim = dim / heads;
    let qkv = qkv
        .reshape((images, tokens, 3, heads, head_dim))?
        .permute((2, 0, 3, 1, 4))? // (3, images, heads, tokens, head_dim)
        .contiguous()?;
    let (query, key, value) = (qkv.get(0)?, qkv.get(1)?, qkv.get(2)?);
    let query = (query * (head_dim as f64).powf(-0.5))?;
    let logits = query.matmul(&key.transpose(D::Minus2, D::Minus1)?)?; // (images, heads, tokens, tokens)
    let probabilities = candle_nn::ops::softmax(&logits, D::Minus1)?;
    let mixed = probabilities
        .matmul(&value)?
        .transpose(1, 2)? // (images, tokens, heads, head_dim)
        .reshape((rows, dim))?;
    Ok((mixed, probabilities))
}

struct Attention(Heads);
struct AttentionGradient(Heads);

/// One head of one image: `tokens` rows of `head_dim` values, `stride` apart.
#[derive(Debug, Clone, Copy)]
struct Shapes {
    tokens: usize,
    heads: usize,
    head_dim: usize,
}

impl Shapes {
    fn new(Heads { tokens, heads }: Heads, layout: &Layout) -> Result<Self> {
        let (_rows, width) = layout.shape().dims2()?;
        Ok(Self { tokens, heads, head_dim: width / 3 / heads })
    }

    fn dim(&self) -> usize {
        self.heads * self.head_dim
    }

    /// A head of rows that hold `parts` times `dim` values.
    fn head<'a>(&self, rows: &'a [f32], parts: usize, part: usize, head: usize) -> MatRef<'a, f32> {
        let first = part * self.dim() + head * self.head_dim;
        let stride = parts * self.dim();
        // Rows side by side are the columns of the transpose.
        MatRef::from_column_major_slice_with_stride(&rows[first..], self.head_dim, self.tokens, stride)
            .transpose()
    }

    fn head_mut<'a>(&self, rows: &'a mut [f32], parts: usize, part: usize, head: usize) -> MatMut<'a, f32> {
        let first = part * self.dim() + head * self.head_dim;
        let stride = parts * self.dim();
        MatMut::from_column_major_slice_with_stride_mut(
            &mut rows[first..],
            self.head_dim,
            self.tokens,
            stride,
        )
        .transpose_mut()
    }

    fn scale(&self) -> f32 {
        (self.head_dim as f32).powf(-0.5)
    }

    fn square<'a>(&self, values: &'a [f32]) -> MatRef<'a, f32> {
        MatRef::from_column_major_slice(values, self.tokens, self.tokens).transpose()
    }

    fn square_mut<'a>(&self, values: &'a mut [f32]) -> MatMut<'a, f32> {
        MatMut::from_column_major_slice_mut(values, self.tokens, self.tokens).transpose_mut()
    }

    /// The probabilities of a head, into `(tokens, tokens)` values.
    fn probabilities(&self, qkv: &[f32], head: usize, result: &mut [f32]) {
        let (query, key) = (self.head(qkv, 3, 0, head), self.head(qkv, 3, 1, head));
        product(self.square_mut(result), query, key.transpose(), self.scale());
        for row in result.chunks_exact_mut(self.tokens) {
            let largest = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let mut sum = 0.;
            for value in row.iter_mut() {
                *value = super::exponential::exp_of_negative(*value - largest);
                sum += *value;
            }
            row.iter_mut().for_each(|value| *value /= sum);
        }
    }
}

fn product(result: MatMut<'_, f32>, left: MatRef<'_, f32>, right: MatRef<'_, f32>, scale: f32) {
    matmul(result, Accum::Replace, left, right, scale, Par::Seq);
}

impl CustomOp1 for Attention {
    fn name(&self) -> &'static str {
        "attention"
    }

    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let qkv = values(storage, layout)?;
        let shapes = Shapes::new(self.0, layout)?;
        let image = shapes.tokens * shapes.dim();
        let mut mixed = vec![0.; qkv.len() / 3];
        mixed.par_chunks_exact_mut(image).zip(qkv.par_chunks_exact(3 * image)).for_each_init(
            || vec![0.; shapes.tokens * shapes.tokens],
            |probabilities, (mixed, qkv)| {
                for head in 0..shapes.heads {
                    shapes.probabilities(qkv, head, probabilities);
                    let value = shapes.head(qkv, 3, 2, head);
                    product(shapes.head_mut(mixed, 1, 0, head), shapes.square(probabilities), value, 1.);
                }
            },
        );
        let (rows, _width) = layout.shape().dims2()?;
        Ok((CpuStorage::F32(mixed), Shape::from((rows, shapes.dim()))))
    }

    fn bwd(&self, qkv: &Tensor, _mixed: &Tensor, gradient: &Tensor) -> Result<Option<Tensor>> {
        let gradient = gradient.detach().contiguous()?;
        Ok(Some(qkv.detach().apply_op2_no_bwd(&gradient, &AttentionGradient(self.0))?))
    }
}

impl CustomOp2 for AttentionGradient {
    fn name(&self) -> &'static str {
        "attention-gradient"
    }

    fn cpu_fwd(
        &self,
        storage: &CpuStorage,
        layout: &Layout,
        gradient_storage: &CpuStorage,
        gradient_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let qkv = values(storage, layout)?;
        let gradients = values(gradient_storage, gradient_layout)?;
        let shapes = Shapes::new(self.0, layout)?;
        let image = shapes.tokens * shapes.dim();
        let scratch = || [vec![0.; shapes.tokens * shapes.tokens], vec![0.; shapes.tokens * shapes.tokens]];
        let mut result = vec![0.; qkv.len()];
        let inputs = qkv.par_chunks_exact(3 * image).zip(gradients.par_chunks_exact(image));
        result.par_chunks_exact_mut(3 * image).zip(inputs).for_each_init(
            scratch,
            |[probabilities, slopes], (result, (qkv, gradients))| {
                for head in 0..shapes.heads {
                    let [query, key, value] = [0, 1, 2].map(|part| shapes.head(qkv, 3, part, head));
                    let gradient = shapes.head(gradients, 1, 0, head);
                    shapes.probabilities(qkv, head, probabilities);
                    let transposed = shapes.square(probabilities).transpose();
                    product(shapes.head_mut(result, 3, 2, head), transposed, gradient, 1.);

                    product(shapes.square_mut(slopes), gradient, value.transpose(), 1.);
                    let rows = probabilities.chunks_exact(shapes.tokens);
                    for (slopes, probabilities) in slopes.chunks_exact_mut(shapes.tokens).zip(rows) {
                        let mean: f32 = slopes.iter().zip(probabilities).map(|(slope, p)| slope * p).sum();
                        slopes
                            .iter_mut()
                            .zip(probabilities)
                            .for_each(|(slope, p)| *slope = p * (*slope - mean));
                    }
                    let slopes = shapes.square(slopes);
                    product(shapes.head_mut(result, 3, 0, head), slopes, key, shapes.scale());
                    product(shapes.head_mut(result, 3, 1, head), slopes.transpose(), query, shapes.scale());
                }
            },
        );
        Ok((CpuStorage::F32(result), layout.shape().clone()))
    }
}

#[cfg(test)]
mod tests {
    use candle_core::{DType, Device, Var};

    use super::*;

    /// f32 against f64; values and gradients are of order one.
    const TOLERANCE: f64 = 1e-5;

    fn value_and_gradient(dtype: DType, images: usize, heads: Heads, dim: usize) -> [Vec<f64>; 2] {
        let random = |shape: &[usize], seed| {
            let mut parameters = crate::Parameters::new(seed, DType::F64, &Device::Cpu);
            let tensor = parameters.root().parameter("x", shape, crate::Initialisation::Normal(1.)).unwrap();
            tensor.to_dtype(dtype).unwrap()
        };
        let rows = images * heads.tokens;
        let qkv = Var::from_tensor(&random(&[rows, 3 * dim], 1)).unwrap();
        let mixed = attention(&qkv, heads).unwrap();
        let loss = (&mixed * random(&[rows, dim], 2)).unwrap().sum_all().unwrap();
        let gradients = loss.backward().unwrap();
        [&mixed, gradients.get(&qkv).unwrap()]
            .map(|tensor| tensor.to_dtype(DType::F64).unwrap().flatten_all().unwrap().to_vec1().unwrap())
    }

    #[test]
    fn the_fused_form_agrees_with_the_composed_one() {
        for (images, tokens, heads, dim) in [(1, 1, 1, 2), (3, 5, 2, 8), (2, 17, 4, 128), (1, 70, 3, 48)] {
            let heads = Heads { tokens, heads };
            let fused = value_and_gradient(DType::F32, images, heads, dim);
            let composed = value_and_gradient(DType::F64, images, heads, dim);
            for (fused, composed) in fused.iter().flatten().zip(composed.iter().flatten()) {
                assert!((fused - composed).abs() < TOLERANCE, "{heads:?}: {fused} {composed}");
            }
        }
    }
}
