//! What is trained: an encoder, the projector between it and the loss, and a predictor if asked for.

use candle_core::{DType, Device, Var};
use lejepa_model::{Encoder, Parameters, ProjectorConfig};

use crate::layers::{Layers, Parts};
use crate::{Result, TrainConfig};

/// Encoder, projector and predictor with their parameters.
#[derive(Debug)]
pub struct Model {
    encoder_parameters: Parameters,
    projector_parameters: Parameters,
    predictor_parameters: Option<Parameters>,
    learning: Layers,
    frozen: Layers,
}

impl Model {
    /// Untrained: the seed decides the first values.
    pub fn new(config: &TrainConfig, device: &Device) -> Result<Self> {
        let new_parameters = |seed| Parameters::new(seed, DType::F32, device);
        let shape = config.encoder.resolve()?;
        let predictor_layers = config
            .predictor
            .as_ref()
            .map(|predictor| ProjectorConfig { hidden: predictor.hidden.clone(), dim: config.projector.dim });
        let layers = |parameters: [&mut Parameters; 2], predictor: Option<&mut Parameters>| {
            let [encoder, projector] = parameters;
            Layers::new(Parts {
                shape: &shape,
                encoder,
                projector: (&config.projector, projector),
                predictor: predictor_layers.as_ref().zip(predictor),
                precision: config.train.precision,
                device,
            })
        };
        let mut encoder = new_parameters(config.seed);
        let mut projector = new_parameters(config.seed);
        // Its layers are called as the projector's: another seed, or they would start alike.
        let mut predictor = predictor_layers.as_ref().map(|_| new_parameters(config.seed.wrapping_add(1)));
        let learning = layers([&mut encoder, &mut projector], predictor.as_mut())?;
        let mut of_predictor = predictor.as_ref().map(Parameters::frozen);
        let frozen = layers([&mut encoder.frozen(), &mut projector.frozen()], of_predictor.as_mut())?;
        Ok(Self {
            encoder_parameters: encoder,
            projector_parameters: projector,
            predictor_parameters: predictor,
            learning,
            frozen,
        })
    }

    /// The layers whose passes can be gone back through.
    pub fn learning(&self) -> &Layers {
        &self.learning
    }

    /// The same layers for passes without gradients: nothing is kept of them but the result.
    pub fn frozen(&self) -> &Layers {
        &self.frozen
    }

    /// The encoder, which is what a run is for; without gradients.
    pub fn encoder(&self) -> &Encoder {
        self.frozen.encoder()
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
        let predictor = self.predictor_parameters.iter().map(|parameters| ("predictor", parameters));
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
}

#[cfg(test)]
mod tests {
    use lejepa_model::Pass;

    use super::*;
    use crate::Override;

    #[test]
    fn passes_without_gradients_keep_nothing_and_see_every_step() {
        let tiny = "encoder.arch=vit,encoder.image_size=8,encoder.patch_size=4,encoder.dim=16,encoder.depth=2,\
                    encoder.heads=2,encoder.registers=1,encoder.layer_scale=0.1";
        let resnet =
            "encoder.arch=resnet,encoder.image_size=16,encoder.depths=[1;1;1;1],encoder.widths=[8;8;8;8]";
        let convnext =
            "encoder.arch=convnextv2,encoder.image_size=32,encoder.depths=[1;1;1;1],encoder.widths=[8;8;8;8]";
        for recipe in [tiny, resnet, convnext] {
            let typed = format!("{recipe},projector.hidden=[12],projector.dim=4,predictor.hidden=[6]");
            let typed: Vec<Override> =
                typed.split(',').map(|typed| Override::parse(&typed.replace(';', ",")).unwrap()).collect();
            let config = TrainConfig::load(None, &typed).unwrap();
            let model = Model::new(&config, &Device::Cpu).unwrap();
            let side = config.encoder.resolve().unwrap().image_size().height;
            let pixels: Vec<f32> =
                (0..2 * 3 * side * side).map(|place| (place * 37 % 101) as f32 / 50. - 1.).collect();
            let run = |layers: &Layers, pass: &Pass| {
                let features = layers.features(&pixels, [2, 3, side, side], pass).unwrap();
                let embeddings = layers.project(&features, pass).unwrap();
                let predictions = layers.predict(&embeddings, pass).unwrap().unwrap();
                [features, embeddings, predictions]
            };
            for pass in [Pass::eval(), Pass::train(1).without_tracking().with_masking(0.)] {
                let frozen = run(model.frozen(), &pass);
                assert!(frozen.iter().all(|tensor| !tensor.track_op()), "{recipe}");
                let learning = run(model.learning(), &pass);
                assert!(learning.iter().all(|tensor| tensor.track_op()));
                for (frozen, learning) in frozen.iter().zip(&learning) {
                    let values = |tensor: &candle_core::Tensor| {
                        tensor.flatten_all().unwrap().to_vec1::<f32>().unwrap()
                    };
                    assert_eq!(values(frozen), values(learning), "{recipe}");
                }
            }
            let before = run(model.frozen(), &Pass::eval())[0].to_vec2::<f32>().unwrap();
            for (_, variable) in model.trainable() {
                variable.set(&(variable.as_tensor() + 0.1).unwrap()).unwrap();
            }
            assert_ne!(before, run(model.frozen(), &Pass::eval())[0].to_vec2::<f32>().unwrap());
        }
    }
}
