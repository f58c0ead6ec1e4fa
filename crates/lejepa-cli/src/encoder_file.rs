//! From a trained (or untrained) model to the bytes of an encoder file.

use std::path::Path;

use anyhow::Result;
use lejepa_data::{CARD_FORMAT, EncoderCard};
use lejepa_embed::{Encoder, EncoderBuilder};
use lejepa_train::{Model, TrainConfig};

/// Where a model comes from, for its card.
pub(crate) struct Origin<'a> {
    pub(crate) config: &'a TrainConfig,
    pub(crate) step: u64,
    pub(crate) data_fingerprint: &'a str,
}

/// The encoder of a model as an ONNX file.
pub(crate) fn encode(model: &Model, origin: &Origin<'_>) -> Result<Vec<u8>> {
    let card = EncoderCard {
        format: CARD_FORMAT,
        arch: origin.config.encoder.arch.clone(),
        embedding_dim: model.encoder().dim(),
        preprocess: origin.config.preprocess()?,
        step: origin.step,
        data_fingerprint: origin.data_fingerprint.into(),
        config: serde_json::to_value(origin.config)?,
    };
    Ok(lejepa_onnx::encode(model.encoder(), model.encoder_parameters(), &card)?)
}

/// How encoders are opened by every command.
pub(crate) fn opener(library: Option<&Path>) -> EncoderBuilder {
    match library {
        Some(library) => Encoder::builder().library(library),
        None => Encoder::builder(),
    }
}
