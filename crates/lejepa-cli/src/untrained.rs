//! Encoders as they were before their first step.

use anyhow::Result;
use candle_core::Device;
use lejepa_data::Output;
use lejepa_embed::{Encoder, EncoderBuilder, InputSize, Preprocess};
use lejepa_train::{Model, TrainConfig};

use crate::encoder_file::{self, Content, Origin, Place};

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
    // Its weights are in a folder for as long as it takes to open them, if they are too many for one file.
    let folder = tempfile::tempdir()?;
    let out = folder.path().join("untrained.onnx");
    let place = Place { out: &out, most_inside: lejepa_onnx::LARGEST_INSIDE };
    let written = encoder_file::write(&model, &origin, &content, &place)?;
    Ok(Some(written.open(&opener.clone().trusted())?))
}

/// What such a twin is called: weights of others had a beginning that nobody here knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Twin {
    /// The encoder before its first step.
    Beginning,
    /// Its architecture with random weights.
    Architecture,
}

impl Twin {
    pub(crate) fn of(encoder: &Encoder) -> Self {
        let began_elsewhere =
            encoder.card().is_some_and(|card| card.step == 0 || !card.config["train"]["init"].is_null());
        if began_elsewhere { Self::Architecture } else { Self::Beginning }
    }

    /// Beside the only encoder.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Beginning => "same encoder, untrained",
            Self::Architecture => "same architecture, random weights",
        }
    }

    /// Beside one of several encoders.
    pub(crate) fn title_beside(self, name: &str) -> String {
        match self {
            Self::Beginning => format!("{name}, untrained"),
            Self::Architecture => format!("{name}, random weights"),
        }
    }

    pub(crate) fn description(self, file: &str) -> String {
        match self {
            Self::Beginning => format!("{file} before its first step"),
            Self::Architecture => {
                format!("the architecture of {file} with random weights: its own began elsewhere")
            }
        }
    }
}
