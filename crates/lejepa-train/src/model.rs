//! What is trained: an encoder, the projector between it and the loss, and a predictor if asked for.

use candle_core::{DType, Device, Tensor, Var};
use lejepa_model::stopwatch::timed;
use lejepa_model::{Encoder, Parameters, Pass, Projector, ProjectorConfig};

use crate::{Precision, Result, TrainConfig};

/// Encoder, projector and predictor with their parameters.
#[derive(Debug)]
pub struct Model {
    encoder: Encoder,
    encoder_parameters: Parameters,
    projector: Projector,
    projector_parameters: Parameters,
    predictor: Option<(Projector, Parameters)>,
    precision: Precision,
    device: Device,
}

impl Model {
    /// Untrained: the seed decides the first values.
    pub fn new(config: &TrainConfig, device: &Device) -> Result<Self> {
        let new_parameters = |seed| Parameters::new(seed, DType::F32, device);
        let mut encoder_parameters = new_parameters(config.seed);
        let encoder = Encoder::new(&config.encoder, encoder_parameters.root())?;
        let mut projector_parameters = new_parameters(config.seed);
        let projector = Projector::new(encoder.dim(), &config.projector, projector_parameters.root())?;
        let predictor = match &config.predictor {
            None => None,
            Some(predictor) => {
                let dim = config.projector.dim;
                let layers = ProjectorConfig { hidden: predictor.hidden.clone(), dim };
                // Its layers are called as the projector's: another seed, or they would start alike.
                let mut parameters = new_parameters(config.seed.wrapping_add(1));
                Some((Projector::new(dim, &layers, parameters.root())?, parameters))
            }
        };
        Ok(Self {
            encoder,
            encoder_parameters,
            projector,
            projector_parameters,
            predictor,
            precision: config.train.precision,
            device: device.clone(),
        })
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

    /// The tensors of every part, the part's name first.
    pub fn parts(&self) -> impl Iterator<Item = (&'static str, &Parameters)> {
        let predictor = self.predictor.iter().map(|(_, parameters)| ("predictor", parameters));
        [("encoder", &self.encoder_parameters), ("projector", &self.projector_parameters)]
            .into_iter()
            .chain(predictor)
    }

    /// Everything that the optimiser moves.
    pub fn trainable(&self) -> impl Iterator<Item = (String, &Var)> {
        self.parts().flat_map(|(part, parameters)| {
            parameters.trainable().iter().map(move |(name, variable)| (format!("{part}.{name}"), variable))
        })
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
            Some((predictor, _)) => Ok(Some(predictor.forward(embeddings, pass)?)),
        }
    }
}
