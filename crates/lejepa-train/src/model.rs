//! What is trained: an encoder and the projector between it and the loss.

use candle_core::{DType, Device, Tensor, Var};
use lejepa_data::{Batch, ViewBatch};
use lejepa_loss::{LejepaLoss, LossTerms};
use lejepa_model::{Encoder, Parameters, Pass, Projector};

use crate::{Result, TrainConfig};

/// Encoder and projector with their parameters.
#[derive(Debug)]
pub struct Model {
    encoder: Encoder,
    encoder_parameters: Parameters,
    projector: Projector,
    projector_parameters: Parameters,
    device: Device,
}

impl Model {
    /// Untrained: the seed decides the first values.
    pub fn new(config: &TrainConfig, device: &Device) -> Result<Self> {
        let mut encoder_parameters = Parameters::new(config.seed, DType::F32, device);
        let encoder = Encoder::new(&config.encoder, encoder_parameters.root())?;
        let mut projector_parameters = Parameters::new(config.seed, DType::F32, device);
        let projector = Projector::new(encoder.dim(), &config.projector, projector_parameters.root())?;
        Ok(Self { encoder, encoder_parameters, projector, projector_parameters, device: device.clone() })
    }

    /// The encoder, which is what a run is for.
    pub fn encoder(&self) -> &Encoder {
        &self.encoder
    }

    /// The encoder's tensors, under timm's names.
    pub fn encoder_parameters(&self) -> &Parameters {
        &self.encoder_parameters
    }

    /// The projector's tensors.
    pub fn projector_parameters(&self) -> &Parameters {
        &self.projector_parameters
    }

    /// Everything that the optimiser moves.
    pub fn trainable(&self) -> impl Iterator<Item = (String, &Var)> {
        let encoder = self.encoder_parameters.trainable().iter();
        let projector = self.projector_parameters.trainable().iter();
        encoder
            .map(|(name, variable)| (format!("encoder.{name}"), variable))
            .chain(projector.map(|(name, variable)| (format!("projector.{name}"), variable)))
    }

    /// The loss of a batch: one pass of the encoder per view size, one of the projector over all.
    pub fn loss(&self, batch: &Batch, loss: &LejepaLoss) -> Result<LossTerms> {
        let mut features = vec![self.features(&batch.global)?];
        if batch.local.views > 0 {
            features.push(self.features(&batch.local)?);
        }
        let features = Tensor::cat(&features, 0)?; // (views * samples, dim)
        let projected = self.projector.forward(&features, &Pass::train(0))?;
        let views = batch.global.views + batch.local.views;
        let (_rows, dim) = projected.dims2()?;
        let embeddings = projected.reshape((views, batch.global.samples, dim))?;
        Ok(loss.forward(&embeddings, batch.global.views, batch.step)?)
    }

    fn features(&self, views: &ViewBatch) -> Result<Tensor> {
        let shape = (views.views * views.samples, views.channels, views.size.height, views.size.width);
        let pixels = Tensor::from_slice(&views.pixels, shape, &self.device)?;
        Ok(self.encoder.forward(&pixels, &Pass::train(0))?)
    }
}
