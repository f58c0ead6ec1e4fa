//! The blocks of a residual network: `y = relu(branch(x) + shortcut(x))`.

use lejepa_kernels::{Activation, add_relu};

use super::{ResNetBlock, ResNetShape};
use crate::layers::{BatchNorm, Convolution, ConvolutionShape, DropPath, FeatureMap};
use crate::{Pass, Result, Scope};

/// Where a block stands.
pub(super) struct Position {
    /// Channels that come in.
    pub(super) inputs: usize,
    /// Which of the four stages.
    pub(super) stage: usize,
    /// Of the 3x3 convolution that halves the map, or 1.
    pub(super) stride: usize,
    pub(super) drop_path: DropPath,
}

#[derive(Debug, Clone)]
pub(super) struct Block {
    branch: Vec<NormedConvolution>,
    downsample: Option<NormedConvolution>,
    drop_path: DropPath,
}

#[derive(Debug, Clone)]
pub(super) struct NormedConvolution {
    convolution: Convolution,
    norm: BatchNorm,
}

impl NormedConvolution {
    pub(super) fn new(shape: ConvolutionShape, scope: &mut Scope<'_>, names: [&str; 2]) -> Result<Self> {
        let convolution = Convolution::without_bias(shape, scope.enter(names[0]))?;
        // The last norm of a block starts at one as all others do: timm's zero would leave the rest of
        // the branch without a gradient in the first step, which looks like a broken layer.
        let norm = BatchNorm::new(shape.outputs, scope.enter(names[1]))?;
        Ok(Self { convolution, norm })
    }

    pub(super) fn forward(&self, map: &FeatureMap, pass: &Pass) -> Result<FeatureMap> {
        self.norm.forward_convolved(&self.convolution, map, pass, Activation::Identity)
    }

    pub(super) fn forward_relu(&self, map: &FeatureMap, pass: &Pass) -> Result<FeatureMap> {
        self.norm.forward_convolved(&self.convolution, map, pass, Activation::Relu)
    }
}

impl Block {
    pub(super) fn new(shape: &ResNetShape, position: &Position, mut scope: Scope<'_>) -> Result<Self> {
        let &Position { inputs, stage, stride, drop_path } = position;
        let outputs = shape.outputs(stage);
        let inner = shape.inner_width(stage);
        let spatial = ConvolutionShape { stride, ..ConvolutionShape::three_by_three(inputs, inner) };
        let shapes = match shape.block {
            ResNetBlock::Basic => vec![spatial, ConvolutionShape::three_by_three(inner, outputs)],
            ResNetBlock::Bottleneck => vec![
                ConvolutionShape::pointwise(inputs, inner),
                ConvolutionShape { inputs: inner, groups: shape.groups, ..spatial },
                ConvolutionShape::pointwise(inner, outputs),
            ],
        };
        let mut branch = Vec::with_capacity(shapes.len());
        for (index, shape) in (1..).zip(shapes) {
            let names = [&*format!("conv{index}"), &*format!("bn{index}")];
            branch.push(NormedConvolution::new(shape, &mut scope, names)?);
        }
        let downsample = if stride != 1 || inputs != outputs {
            let shape = ConvolutionShape { stride, ..ConvolutionShape::pointwise(inputs, outputs) };
            Some(NormedConvolution::new(shape, &mut scope, ["downsample.0", "downsample.1"])?)
        } else {
            None
        };
        Ok(Self { branch, downsample, drop_path })
    }

    pub(super) fn forward(&self, map: &FeatureMap, pass: &Pass) -> Result<FeatureMap> {
        let Some((last, earlier)) = self.branch.split_last() else { return Ok(map.clone()) };
        let mut inner = map.clone();
        for layer in earlier {
            inner = layer.forward_relu(&inner, pass)?;
        }
        let inner = last.forward(&inner, pass)?;
        let branch = self.drop_path.forward(&inner.rows, inner.images, pass)?;
        let shortcut = match &self.downsample {
            Some(downsample) => downsample.forward(map, pass)?.rows,
            None => map.rows.clone(),
        };
        Ok(inner.with_rows(add_relu(&branch, &shortcut)?))
    }
}
