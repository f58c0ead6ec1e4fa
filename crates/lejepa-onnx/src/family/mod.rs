//! Families of encoders as ONNX graphs: a module for each, with the name that it has in `lejepa_model::family`.

mod convnext;
mod resnet;
mod vit;

use lejepa_data::{InputSize, Output};
use lejepa_model::EncoderShape;

use crate::Result;
use crate::graph::{Dimension, Graph};

/// A family's way into a graph, implemented by the sizes of an encoder.
pub(crate) trait Writer {
    /// Outputs besides [`Output::Embedding`] and [`Output::PatchTokens`], which every encoder has, with what stands
    /// behind the batch in their shapes, for patch tokens of `[rows, columns]`.
    fn further_outputs(&self, _grid: [Dimension; 2]) -> Vec<(Output, Vec<Dimension>)> {
        Vec::new()
    }

    /// Rows and columns of the patch tokens of an image of this size.
    fn grid(&self, size: InputSize) -> [usize; 2];

    /// Writes everything that the encoder can compute, from pixels `(batch, channels, height, width)`; outputs have
    /// their own names.
    fn write(&self, graph: &mut Graph<'_>, sizes: &[InputSize]) -> Result<()>;
}

/// The writer of an encoder.
pub(crate) fn writer(shape: &EncoderShape) -> &dyn Writer {
    match shape {
        EncoderShape::Vit(shape) => shape,
        EncoderShape::ResNet(shape) => shape,
        EncoderShape::ConvNext(shape) => shape,
    }
}
