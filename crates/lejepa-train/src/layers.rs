//! The layers of a model, from pixels to what the loss sees.

use candle_core::{DType, Device, Tensor};
use lejepa_kernels::profile::timed;
use lejepa_model::{Encoder, EncoderShape, Parameters, Pass, Projector, ProjectorConfig};

use crate::{Precision, Result};

/// Encoder, projector and predictor.
#[derive(Debug)]
pub struct Layers {
    encoder: Encoder,
    projector: Projector,
    predictor: Option<Projector>,
    precision: Precision,
    device: Device,
}

/// What layers are made of.
pub(crate) struct Parts<'a> {
    pub(crate) shape: &'a EncoderShape,
    pub(crate) encoder: &'a mut Parameters,
    pub(crate) projector: (&'a ProjectorConfig, &'a mut Parameters),
    pub(crate) predictor: Option<(&'a ProjectorConfig, &'a mut Parameters)>,
    pub(crate) precision: Precision,
    pub(crate) device: &'a Device,
}

impl Layers {
    pub(crate) fn new(parts: Parts<'_>) -> Result<Self> {
        let Parts { shape, encoder, projector: (projector, of_projector), predictor, precision, device } =
            parts;
        let encoder = Encoder::with_shape(shape, encoder.root())?;
        let predictor = predictor
            .map(|(layers, parameters)| Projector::new(projector.dim, layers, parameters.root()))
            .transpose()?;
        let projector = Projector::new(encoder.dim(), projector, of_projector.root())?;
        Ok(Self { encoder, projector, predictor, precision, device: device.clone() })
    }

    /// Where it computes.
    pub(crate) fn device(&self) -> &Device {
        &self.device
    }

    /// The encoder.
    pub fn encoder(&self) -> &Encoder {
        &self.encoder
    }

    /// The features of images, in f32.
    ///
    /// # Shapes
    /// - `pixels`: values of `(images, channels, height, width)`
    /// - result: `(images, dim)`
    pub fn features(&self, pixels: &[f32], shape: [usize; 4], pass: &Pass) -> Result<Tensor> {
        let pixels = timed("data", || Tensor::from_slice(pixels, &shape, &self.device))?;
        pass.see("the pixels", &pixels)?;
        let pixels = pixels.to_dtype(self.precision.dtype())?;
        Ok(self.encoder.forward(&pixels, pass)?.to_dtype(DType::F32)?)
    }

    /// The embeddings that the loss sees.
    ///
    /// # Shapes
    /// - `features`: `(images, encoder dim)`
    /// - result: `(images, projector dim)`
    pub fn project(&self, features: &Tensor, pass: &Pass) -> Result<Tensor> {
        Ok(self.projector.forward(features, pass)?)
    }

    /// What the predictor makes of embeddings, if there is one.
    pub fn predict(&self, embeddings: &Tensor, pass: &Pass) -> Result<Option<Tensor>> {
        match &self.predictor {
            None => Ok(None),
            Some(predictor) => Ok(Some(predictor.forward(embeddings, pass)?)),
        }
    }
}
