//! Hides some of every image's patches in training: fewer rows, less work, another view.

use candle_core::Tensor;

use super::block::Tokens;
use crate::{Pass, Result};

/// Where the choice of patches draws its numbers; blocks have the places from 1 on.
const PLACE: u64 = 0;

/// Keeps the first `prefix` tokens of every image and the share of its patches that is not hidden, in
/// their order; at least one patch stays.
pub(super) fn mask_patches(tokens: Tokens, prefix: usize, pass: &Pass) -> Result<Tokens> {
    let patches = tokens.count - prefix;
    let kept = ((patches as f64 * (1. - pass.masking())).round() as usize).clamp(1, patches.max(1));
    if kept >= patches {
        return Ok(tokens);
    }
    let mut indices = Vec::with_capacity(tokens.images * (prefix + kept));
    for image in 0..tokens.images {
        let Some(mut generator) = pass.generator(PLACE, image) else { return Ok(tokens) };
        let mut chosen = rand::seq::index::sample(&mut generator, patches, kept).into_vec();
        chosen.sort_unstable();
        let of_image = (0..prefix).chain(chosen.into_iter().map(|patch| prefix + patch));
        indices.extend(of_image.map(|token| (image * tokens.count + token) as u32));
    }
    let indices = Tensor::new(indices, tokens.rows.device())?;
    Ok(Tokens { rows: tokens.rows.index_select(&indices, 0)?, count: prefix + kept, ..tokens })
}
