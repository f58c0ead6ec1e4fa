//! The block of ConvNeXt V2: `y = x + fc2(grn(gelu(fc1(norm(conv_dw(x))))))`.

use lejepa_kernels::profile::{BLOCKS, part};
use lejepa_kernels::{SpatialBranch, is_fused, spatial_branch};

use crate::layers::{DepthwiseConvolution, DropPath, FeatureMap, LayerNorm, Linear, ResponseNorm};
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
        let layers = [&self.fc1, &self.fc2].map(Linear::parameters);
        let (true, [(fc1, Some(fc1_bias)), (fc2, Some(fc2_bias))]) = (is_fused(&map.rows), layers) else {
            return self.forward_composed(map, pass);
        };
        let [kernel, kernel_bias] = self.conv_dw.parameters();
        let [norm_weight, norm_bias] = self.norm.parameters();
        let [response_weight, response_bias] = self.grn.parameters();
        let branch = SpatialBranch {
            parameters: [
                kernel,
                kernel_bias,
                norm_weight,
                norm_bias,
                fc1,
                fc1_bias,
                response_weight,
                response_bias,
                fc2,
                fc2_bias,
            ],
            windows: self.conv_dw.windows(map)?,
            epsilon: LayerNorm::EPSILON as f32,
            factors: self.drop_path.factors(images, pass).unwrap_or_else(|| vec![1.; images]),
        };
        Ok(map.with_rows(part(BLOCKS, &map.rows, |rows| spatial_branch(rows, branch))?))
    }

    /// With one operation per layer.
    fn forward_composed(&self, map: &FeatureMap, pass: &Pass) -> Result<FeatureMap> {
        let images = map.images;
        let rows = self.norm.forward(&self.conv_dw.forward(map)?.rows)?;
        let hidden = self.grn.forward(&self.fc1.forward_gelu(&rows)?, images)?;
        let branch = self.drop_path.forward(&self.fc2.forward(&hidden)?, images, pass)?;
        Ok(map.with_rows((&map.rows + branch)?))
    }
}
