//! Position embeddings for another grid of patches: bicubic with antialiasing, as timm resamples them.
//!
//! Resampling is linear in the embedding, so it is a matrix `(rows' * columns', rows * columns)`
//! that depends on the two grids alone; its gradient is a matrix product.

use candle_core::{Device, Tensor};

use crate::{Error, ImageSize, Result};

/// Resamples the patch part of a position embedding; prefix tokens (class, registers) are kept.
///
/// # Shapes
/// - `embedding`: `(1, prefix + from.height * from.width, dim)`
/// - result: `(1, prefix + to.height * to.width, dim)`
pub fn resample_position_embedding(embedding: &Tensor, from: ImageSize, to: ImageSize) -> Result<Tensor> {
    if from == to {
        return Ok(embedding.clone());
    }
    let (_one, tokens, _dim) = embedding.dims3()?;
    let patches = from.height * from.width;
    let prefix = tokens.checked_sub(patches).ok_or_else(|| Error::TensorShape {
        name: "pos_embed".into(),
        expected: vec![1, patches],
        got: embedding.dims().to_vec(),
    })?;
    let weights = resampling_matrix(from, to, embedding.device())?.to_dtype(embedding.dtype())?;
    let grid = embedding.narrow(1, prefix, patches)?.squeeze(0)?; // (rows * columns, dim)
    let resampled = weights.matmul(&grid.contiguous()?)?.unsqueeze(0)?;
    if prefix == 0 {
        return Ok(resampled);
    }
    Ok(Tensor::cat(&[&embedding.narrow(1, 0, prefix)?, &resampled], 1)?)
}

fn resampling_matrix(from: ImageSize, to: ImageSize, device: &Device) -> Result<Tensor> {
    let rows = axis_weights(from.height, to.height);
    let columns = axis_weights(from.width, to.width);
    let mut matrix = Vec::with_capacity(to.height * to.width * from.height * from.width);
    for row in &rows {
        for column in &columns {
            for row_weight in row {
                matrix.extend(column.iter().map(|column_weight| row_weight * column_weight));
            }
        }
    }
    Ok(Tensor::from_vec(matrix, (to.height * to.width, from.height * from.width), device)?)
}

/// For every output position, the weight of every input position along one axis.
fn axis_weights(from: usize, to: usize) -> Vec<Vec<f64>> {
    let scale = from as f64 / to as f64;
    // Antialiasing: a filter that shrinks is as wide as the cells it averages.
    let stretch = scale.max(1.);
    let support = 2. * stretch;
    (0..to)
        .map(|output| {
            let centre = scale * (output as f64 + 0.5);
            let first = (centre - support + 0.5).max(0.) as usize;
            let last = ((centre + support + 0.5) as usize).min(from);
            let mut weights = vec![0.; from];
            for (input, weight) in weights.iter_mut().enumerate().take(last).skip(first) {
                *weight = keys_cubic((input as f64 + 0.5 - centre) / stretch);
            }
            let sum: f64 = weights.iter().sum();
            weights.iter().map(|weight| weight / sum).collect()
        })
        .collect()
}

/// Keys' cubic convolution kernel with `a = -0.5`.
fn keys_cubic(x: f64) -> f64 {
    const A: f64 = -0.5;
    let x = x.abs();
    if x < 1. {
        ((A + 2.) * x - (A + 3.)) * x * x + 1.
    } else if x < 2. {
        ((A * x - 5. * A) * x + 8. * A) * x - 4. * A
    } else {
        0.
    }
}
