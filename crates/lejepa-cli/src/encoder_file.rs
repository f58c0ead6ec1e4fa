//! Encoder files: from a model to their bytes, and how they are opened.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use lejepa_data::{CARD_FORMAT, EncoderCard, Feature, InputSize, Output, Precision};
use lejepa_embed::{Encoder, EncoderBuilder};
use lejepa_onnx::Export;
use lejepa_train::{Model, TrainConfig};

/// Where a model comes from, for its card.
pub(crate) struct Origin<'a> {
    pub(crate) config: &'a TrainConfig,
    pub(crate) step: u64,
    pub(crate) data_fingerprint: &'a str,
}

/// The encoder of a model as an ONNX file.
pub(crate) fn encode(model: &Model, origin: &Origin<'_>) -> Result<Vec<u8>> {
    let preprocess = origin.config.preprocess()?;
    let card = EncoderCard {
        format: CARD_FORMAT,
        arch: origin.config.encoder.arch.clone(),
        feature: if model.encoder().shape().has_class_feature() { Feature::Cls } else { Feature::Avg },
        embedding_dim: model.encoder().dim(),
        precision: Precision::F32,
        sizes: vec![InputSize { height: preprocess.crop_height, width: preprocess.crop_width }],
        preprocess,
        licence: String::new(),
        step: origin.step,
        data_fingerprint: origin.data_fingerprint.into(),
        config: serde_json::to_value(origin.config)?,
    };
    let export = Export {
        encoder: model.encoder(),
        parameters: model.encoder_parameters(),
        projector: None,
        outputs: &[Output::Embedding],
        card: &card,
    };
    Ok(export.encode()?)
}

/// What every command that runs an encoder takes.
#[derive(Debug, Args)]
pub(crate) struct RuntimeArguments {
    /// ONNX Runtime's shared library, instead of looking for it
    #[arg(long, value_name = "FILE")]
    pub(crate) onnxruntime: Option<PathBuf>,
}

impl RuntimeArguments {
    /// How the command opens encoders.
    pub(crate) fn opener(&self) -> EncoderBuilder {
        match &self.onnxruntime {
            Some(library) => Encoder::builder().library(library),
            None => Encoder::builder(),
        }
    }
}
