//! Encoder files: from a model to their bytes.

use std::path::Path;

use anyhow::Result;
use lejepa_data::{CARD_FORMAT, EncoderCard, Feature, InputSize, Output, Precision, SeenImages};
use lejepa_onnx::Export;
use lejepa_train::{Model, TrainConfig};

use crate::written_encoder::WrittenEncoder;

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

/// Where a file is to be.
pub(crate) struct Place<'a> {
    pub(crate) out: &'a Path,
    /// Bytes of weights that are kept inside of it.
    pub(crate) most_inside: u64,
}

impl Content {
    /// The embedding alone, as it was trained.
    pub(crate) fn embedding() -> Self {
        let (outputs, precision) = (vec![Output::Embedding], Precision::F32);
        Self { sizes: Vec::new(), outputs, precision, licence: String::new() }
    }
}

/// A model as an ONNX file, and where its weights are more than may be inside of it, beside it in this
/// folder.
pub(crate) fn write(
    model: &Model,
    origin: &Origin<'_>,
    content: &Content,
    place: &Place<'_>,
) -> Result<WrittenEncoder> {
    let card = card(model, origin, content)?;
    let export = export(model, content, &card);
    if export.weights_length() <= place.most_inside {
        return Ok(WrittenEncoder::inside(export.encode()?));
    }
    WrittenEncoder::beside(place.out, |weights, location| Ok(export.encode_beside(weights, location)?))
}

fn export<'a>(model: &'a Model, content: &'a Content, card: &'a EncoderCard) -> Export<'a> {
    let wants_projection = content.outputs.contains(&Output::Projection);
    Export {
        encoder: model.encoder(),
        parameters: model.encoder_parameters(),
        projector: wants_projection.then(|| model.projector_parameters()),
        outputs: &content.outputs,
        card,
    }
}

fn card(model: &Model, origin: &Origin<'_>, content: &Content) -> Result<EncoderCard> {
    let trained = origin.config.preprocess()?;
    let mut sizes = content.sizes.clone();
    if sizes.is_empty() {
        sizes.push(InputSize { height: trained.crop_height, width: trained.crop_width });
    }
    let InputSize { height, width } = sizes[0];
    let shape = model.encoder().shape();
    Ok(EncoderCard {
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
    })
}
