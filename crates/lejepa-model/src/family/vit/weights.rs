//! External weights of a vision transformer: timm's, or DINOv2's.

use std::collections::HashMap;

use candle_core::{DType, Tensor};

use super::position_grid::PositionGrid;
use crate::layers::resample_position_embedding;
use crate::{FoundPositions, KnownGrid, Result, VitShape};

const POSITIONS: &str = "pos_embed";
const CLASS: &str = "cls_token";

/// Gives the register tokens timm's name, and positions the form and the grid of the encoder.
pub(super) fn adapt(
    tensors: &mut HashMap<String, Tensor>,
    shape: &VitShape,
    known: KnownGrid,
) -> Result<Option<FoundPositions>> {
    if let Some(registers) = tensors.remove("register_tokens") {
        tensors.insert("reg_token".into(), registers);
    }
    fit_positions(tensors, shape, known)
}

/// Moves the class token's position into the token where the encoder wants none, as timm does, and
/// resamples those of another grid to the encoder's own.
fn fit_positions(
    tensors: &mut HashMap<String, Tensor>,
    shape: &VitShape,
    known: KnownGrid,
) -> Result<Option<FoundPositions>> {
    // What does not look like positions is left to the check of shapes.
    let Some(positions) = tensors.get(POSITIONS).filter(|positions| positions.dtype().is_float()) else {
        return Ok(None);
    };
    let Ok((1, rows, dim)) = positions.dims3() else { return Ok(None) };
    let mut positions = positions.to_dtype(DType::F32)?;
    let grids = PositionGrid { encoder: shape.grid(), known };
    let mut prefix = if shape.embed_prefix { shape.prefix() } else { 0 };
    if !shape.embed_prefix && shape.class_token && !grids.has(rows) && grids.has(rows.saturating_sub(1)) {
        let Some(class) = tensors.get(CLASS).filter(|class| class.dims() == [1, 1, dim]) else {
            return Ok(None);
        };
        let class = (class.to_dtype(DType::F32)? + positions.narrow(1, 0, 1)?)?;
        tensors.insert(CLASS.into(), class);
        positions = positions.narrow(1, 1, rows - 1)?.contiguous()?;
        prefix = 0;
    }
    let patches = positions.dim(1)?.saturating_sub(prefix);
    let of_patches = positions.narrow(1, positions.dim(1)? - patches, patches)?;
    let grid = grids.find(&of_patches)?;
    let resampled = grid != shape.grid();
    if resampled {
        positions = resample_position_embedding(&positions, grid, shape.grid())?;
    }
    tensors.insert(POSITIONS.into(), positions);
    Ok(Some(FoundPositions { grid, resampled }))
}
