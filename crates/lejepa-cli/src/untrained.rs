//! Encoders as they were before their first step.

use anyhow::Result;
use candle_core::Device;
use lejepa_data::Output;
use lejepa_embed::{Encoder, EncoderBuilder, InputSize, Preprocess};
use lejepa_train::{Model, TrainConfig};

use crate::encoder_file::{self, Content, Origin};

/// The encoder as it was before its first step, with those of the outputs that it has: its card holds all that
/// decides it. Nothing if it has no such card.
pub(crate) fn untrained(
    encoder: &Encoder,
    outputs: &[Output],
    opener: &EncoderBuilder,
) -> Result<Option<Encoder>> {
    let config =
        encoder.card().and_then(|card| serde_json::from_value::<TrainConfig>(card.config.clone()).ok());
    let Some(config) = config else { return Ok(None) };
    let model = Model::new(&config, &Device::Cpu)?;
    let origin = Origin { config: &config, step: 0, data_fingerprint: "", seen: None };
    let Preprocess { crop_height: height, crop_width: width, .. } = *encoder.preprocess();
    let content = Content {
        sizes: vec![InputSize { height, width }],
        outputs: outputs.iter().copied().filter(|output| encoder.has(*output)).collect(),
        ..Content::embedding()
    };
    let bytes = encoder_file::encode(&model, &origin, &content)?;
    Ok(Some(opener.open_bytes("the untrained encoder", &bytes)?))
}
