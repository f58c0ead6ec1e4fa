//! The block of ConvNeXt V2: `y = x + fc2(grn(gelu(fc1(norm(conv_dw(x))))))`.

use crate::layers::{DepthwiseConvolution, DropPath, FeatureMap, LayerNorm, Linear, ResponseNorm};
use crate::stopwatch::part;
use crate::{ConvNextShape, Pass, Result, Scope};

#[derive(Debug, Clone)]
pub(super) struct Block {
    conv_dw: DepthwiseConvolution,
    norm: LayerNorm,
    fc1: Linear,
    grn: ResponseNorm,
    fc2: Linear,
    drop_path: DropPath,
}

impl Block {
    const KERNEL: usize = 7;
    /// The hidden layer is this many times as wide as the map.
    const MLP_RATIO: usize = 4;

    pub(super) fn new(
        shape: &ConvNextShape,
        width: usize,
        drop_path: DropPath,
        mut scope: Scope<'_>,
    ) -> Result<Self> {
        let hidden = Self::MLP_RATIO * width;
        let linear = if shape.conv_mlp { Linear::pointwise } else { Linear::new };
        Ok(Self {
            conv_dw: DepthwiseConvolution::new(width, Self::KERNEL, scope.enter("conv_dw"))?,
            norm: LayerNorm::new(width, scope.enter("norm"))?,
            fc1: linear(width, hidden, scope.enter("mlp.fc1"))?,
            grn: ResponseNorm::new(hidden, scope.enter("mlp.grn"))?,
            fc2: linear(hidden, width, scope.enter("mlp.fc2"))?,
            drop_path,
        })
    }

    pub(super) fn forward(&self, map: &FeatureMap, pass: &Pass) -> Result<FeatureMap> {
        let images = map.images;
        let rows = self.norm.forward(&self.conv_dw.forward(map)?.rows)?;
        let hidden = part("mlp", &rows, |rows| self.fc1.forward_gelu(rows))?;
        let hidden = self.grn.forward(&hidden, images)?;
        let branch = part("mlp", &hidden, |hidden| self.fc2.forward(hidden))?;
        let branch = self.drop_path.forward(&branch, images, pass)?;
        Ok(map.with_rows((&map.rows + branch)?))
    }
}
