//! ConvNeXt V2, with timm's parameter names and numerics.
//!
//! ```text
//! map = norm(conv 4x4, stride 4 (pixels))
//! map = conv 2x2, stride 2 (norm(map))             before stages 1 to 3
//! map = map + mlp(norm(conv_dw(map)))              for every block
//! feature = norm(mean over places of map)          (images, dim)
//! ```

use candle_core::Tensor;

use super::ConvNextShape;
use super::block::Block;
use crate::layers::{Convolution, ConvolutionShape, DropPath, FeatureMap, LayerNorm};
use crate::{Network, Pass, Result, Scope};

/// A ConvNeXt V2.
#[derive(Debug, Clone)]
pub struct ConvNext {
    shape: ConvNextShape,
    stem: (Convolution, LayerNorm),
    stages: Vec<Stage>,
    norm: LayerNorm,
}

#[derive(Debug, Clone)]
struct Stage {
    downsample: Option<(LayerNorm, Convolution)>,
    blocks: Vec<Block>,
}

impl ConvNext {
    const STEM_STRIDE: usize = 4;

    /// Builds the network with timm's initialisation.
    pub fn new(shape: &ConvNextShape, mut scope: Scope<'_>) -> Result<Self> {
        shape.check_sizes()?;
        let [first, .., last] = shape.widths;
        let patches = ConvolutionShape::patches(shape.channels, first, Self::STEM_STRIDE);
        let stem = (
            Convolution::with_bias(patches, scope.enter("stem.0"))?,
            LayerNorm::new(first, scope.enter("stem.1"))?,
        );
        let mut stages = Vec::with_capacity(shape.depths.len());
        let mut inputs = first;
        for (index, &outputs) in shape.widths.iter().enumerate() {
            stages.push(Stage::new(shape, index, inputs, scope.enter(format!("stages.{index}")))?);
            inputs = outputs;
        }
        let norm = LayerNorm::new(last, scope.enter("head.norm"))?;
        Ok(Self { shape: shape.clone(), stem, stages, norm })
    }

    /// The sizes it was built with.
    pub fn shape(&self) -> &ConvNextShape {
        &self.shape
    }

    /// The map of the last stage.
    ///
    /// # Shapes
    /// - `pixels`: `(images, channels, height, width)`
    pub fn forward_map(&self, pixels: &Tensor, pass: &Pass) -> Result<FeatureMap> {
        let (convolution, norm) = &self.stem;
        let map = convolution.forward(&FeatureMap::from_pixels(pixels)?)?;
        let mut map = map.with_rows(norm.forward(&map.rows)?);
        pass.see("stem", &map.rows)?;
        for (index, stage) in self.stages.iter().enumerate() {
            map = stage.forward(map, pass)?;
            pass.see(format_args!("stages.{index}"), &map.rows)?;
        }
        Ok(map)
    }

    /// The mean over the places of the last map, normalised.
    ///
    /// # Shapes
    /// - `pixels`: `(images, channels, height, width)`
    /// - result: `(images, dim)`
    pub fn forward(&self, pixels: &Tensor, pass: &Pass) -> Result<Tensor> {
        self.norm.forward(&self.forward_map(pixels, pass)?.pool()?)
    }
}

impl Network for ConvNext {
    fn forward(&self, pixels: &Tensor, pass: &Pass) -> Result<Tensor> {
        self.forward(pixels, pass)
    }

    fn patch_tokens(&self, pixels: &Tensor) -> Result<Tensor> {
        self.forward_map(pixels, &Pass::eval())?.channels_last()
    }
}

impl Stage {
    fn new(shape: &ConvNextShape, stage: usize, inputs: usize, mut scope: Scope<'_>) -> Result<Self> {
        let width = shape.widths[stage];
        let downsample = if stage > 0 {
            let norm = LayerNorm::new(inputs, scope.enter("downsample.0"))?;
            let halves = ConvolutionShape::patches(inputs, width, 2);
            Some((norm, Convolution::with_bias(halves, scope.enter("downsample.1"))?))
        } else {
            None
        };
        let count = shape.depths.iter().sum();
        let before: usize = shape.depths[..stage].iter().sum();
        let blocks = (0..shape.depths[stage])
            .map(|index| {
                let drop_path = DropPath::rising(shape.drop_path, before + index, count);
                Block::new(shape, width, drop_path, scope.enter(format!("blocks.{index}")))
            })
            .collect::<Result<_>>()?;
        Ok(Self { downsample, blocks })
    }

    fn forward(&self, mut map: FeatureMap, pass: &Pass) -> Result<FeatureMap> {
        if let Some((norm, convolution)) = &self.downsample {
            map = convolution.forward(&map.with_rows(norm.forward(&map.rows)?))?;
        }
        for block in &self.blocks {
            map = block.forward(&map, pass)?;
        }
        Ok(map)
    }
}
