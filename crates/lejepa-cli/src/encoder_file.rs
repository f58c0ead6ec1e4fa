//! Encoder files: from a model to their bytes.

use anyhow::Result;
use lejepa_data::{CARD_FORMAT, EncoderCard, Feature, InputSize, Output, Precision, SeenImages};
use lejepa_onnx::Export;
use lejepa_train::{Model, TrainConfig};

/// Where a model comes from, for its card.
pub(crate) struct Origin<'a> {
    pub(crate) config: &'a TrainConfig,
    pub(crate) step: u64,
    pub(crate) data_fingerprint: &'a str,
    /// The images that it was trained on, as far as that is known.
    pub(crate) seen: Option<&'a SeenImages>,
}

/// What a file is to hold.
#[derive(Debug, Clone)]
pub(crate) struct Content {
    /// The first one is the default; none: that of the training configuration.
    pub(crate) sizes: Vec<InputSize>,
    pub(crate) outputs: Vec<Output>,
    pub(crate) precision: Precision,
    pub(crate) licence: String,
}

impl Content {
    /// The embedding alone, as it was trained.
    pub(crate) fn embedding() -> Self {
        let (outputs, precision) = (vec![Output::Embedding], Precision::F32);
        Self { sizes: Vec::new(), outputs, precision, licence: String::new() }
    }
}

/// A model as an ONNX file.
pub(crate) fn encode(model: &Model, origin: &Origin<'_>, content: &Content) -> Result<Vec<u8>> {
    let trained = origin.config.preprocess()?;
    let mut sizes = content.sizes.clone();
    if sizes.is_empty() {
        sizes.push(InputSize { height: trained.crop_height, width: trained.crop_width });
    }
    let InputSize { height, width } = sizes[0];
    let shape = model.encoder().shape();
    let card = EncoderCard {
        format: CARD_FORMAT,
        arch: origin.config.encoder.arch.clone(),
        feature: if shape.has_class_feature() { Feature::Cls } else { Feature::Avg },
        embedding_dim: model.encoder().dim(),
        precision: content.precision,
        sizes,
        preprocess: trained.for_size(height, width),
        licence: content.licence.clone(),
        step: origin.step,
        data_fingerprint: origin.data_fingerprint.into(),
        checksum: true,
        seen: origin.seen.cloned(),
        config: serde_json::to_value(origin.config)?,
    };
    let wants_projection = content.outputs.contains(&Output::Projection);
    let export = Export {
        encoder: model.encoder(),
        parameters: model.encoder_parameters(),
        projector: wants_projection.then(|| model.projector_parameters()),
        outputs: &content.outputs,
        card: &card,
    };
    Ok(export.encode()?)
}
