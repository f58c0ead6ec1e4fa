//! The residual network and its grouped form ResNeXt, with timm's parameter names and numerics.
//!
//! ```text
//! map = maxpool(relu(bn1(conv1(pixels))))          a quarter of the image's sides
//! map = relu(branch(map) + shortcut(map))          for every block; stages 2 to 4 halve the sides
//! feature = mean over places of map                (images, dim)
//! ```

use candle_core::Tensor;
use lejepa_kernels::{Window, Windows, max_pool};

use super::ResNetShape;
use super::block::{Block, NormedConvolution, Position};
use crate::layers::{ConvolutionShape, DropPath, FeatureMap};
use crate::{Network, Pass, Result, Scope};

/// A residual network.
#[derive(Debug, Clone)]
pub struct ResNet {
    shape: ResNetShape,
    stem: NormedConvolution,
    blocks: Vec<Block>,
}

impl ResNet {
    const STEM_POOL: Window = Window { kernel: 3, stride: 2, padding: 1 };

    /// Builds the network with timm's initialisation, but for the last norm of a block.
    pub fn new(shape: &ResNetShape, mut scope: Scope<'_>) -> Result<Self> {
        shape.check_sizes()?;
        let stem = ConvolutionShape {
            inputs: shape.channels,
            outputs: ResNetShape::STEM_WIDTH,
            kernel: 7,
            stride: 2,
            padding: 3,
            groups: 1,
        };
        let stem = NormedConvolution::new(stem, &mut scope, ["conv1", "bn1"])?;
        let count: usize = shape.depths.iter().sum();
        let mut blocks = Vec::with_capacity(count);
        let mut inputs = ResNetShape::STEM_WIDTH;
        for (stage, &depth) in shape.depths.iter().enumerate() {
            for index in 0..depth {
                let stride = if stage > 0 && index == 0 { 2 } else { 1 };
                let drop_path = DropPath::rising(shape.drop_path, blocks.len(), count);
                let position = Position { inputs, stage, stride, drop_path };
                blocks.push(Block::new(
                    shape,
                    &position,
                    scope.enter(format!("layer{}.{index}", stage + 1)),
                )?);
                inputs = shape.outputs(stage);
            }
        }
        Ok(Self { shape: shape.clone(), stem, blocks })
    }

    /// The sizes it was built with.
    pub fn shape(&self) -> &ResNetShape {
        &self.shape
    }

    /// The map of the last stage.
    ///
    /// # Shapes
    /// - `pixels`: `(images, channels, height, width)`
    pub fn forward_map(&self, pixels: &Tensor, pass: &Pass) -> Result<FeatureMap> {
        let map = self.stem.forward_relu(&FeatureMap::from_pixels(pixels)?, pass)?;
        let windows = Windows::new(Self::STEM_POOL, map.images, map.size.into())?;
        let rows = max_pool(&map.rows, &windows)?;
        let mut map = FeatureMap { rows, images: map.images, size: windows.output.into() };
        pass.see("the stem", &map.rows)?;
        for (index, block) in self.blocks.iter().enumerate() {
            map = block.forward(&map, pass)?;
            pass.see(format_args!("block {index}"), &map.rows)?;
        }
        Ok(map)
    }

    /// The mean over the places of the last map.
    ///
    /// # Shapes
    /// - `pixels`: `(images, channels, height, width)`
    /// - result: `(images, dim)`
    pub fn forward(&self, pixels: &Tensor, pass: &Pass) -> Result<Tensor> {
        self.forward_map(pixels, pass)?.pool()
    }
}

impl Network for ResNet {
    fn forward(&self, pixels: &Tensor, pass: &Pass) -> Result<Tensor> {
        self.forward(pixels, pass)
    }

    fn patch_tokens(&self, pixels: &Tensor) -> Result<Tensor> {
        self.forward_map(pixels, &Pass::eval())?.channels_last()
    }
}
