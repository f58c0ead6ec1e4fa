//! Writes an encoder as an ONNX graph that carries its own preprocessing.
//!
//! One file holds the graph (input [`PIXELS_INPUT`](lejepa_data::PIXELS_INPUT), output
//! [`Output`](lejepa_data::Output)s, any batch size) and an
//! [`EncoderCard`](lejepa_data::EncoderCard) in its metadata, from which readers learn how to
//! prepare an image. Weights of more than [`LARGEST_INSIDE`] bytes are in a second file beside it:
//! [`Export::encode_beside`].
//!
//! ```
//! use candle_core::{DType, Device};
//! use lejepa_data::{CARD_FORMAT, EncoderCard, Feature, InputSize, Output, Precision, Preprocess};
//! use lejepa_model::{Encoder, EncoderConfig, Parameters};
//! use lejepa_onnx::Export;
//!
//! let config = EncoderConfig { image_size: Some(32.into()), ..Default::default() };
//! let mut parameters = Parameters::new(0, DType::F32, &Device::Cpu);
//! let encoder = Encoder::new(&config, parameters.root())?;
//! let card = EncoderCard {
//!     format: CARD_FORMAT,
//!     arch: config.arch.clone(),
//!     feature: Feature::Cls,
//!     embedding_dim: encoder.dim(),
//!     precision: Precision::F32,
//!     preprocess: Preprocess::new(32, (32, 32), 3),
//!     sizes: vec![InputSize { height: 32, width: 32 }],
//!     licence: String::new(),
//!     step: 0,
//!     data_fingerprint: String::new(),
//!     checksum: false, // set by the export
//!     seen: None,
//!     config: serde_json::Value::Null,
//! };
//! let export = Export {
//!     encoder: &encoder,
//!     parameters: &parameters,
//!     projector: None,
//!     outputs: &[Output::Embedding, Output::PatchTokens],
//!     card: &card,
//! };
//! let onnx_file: Vec<u8> = export.encode()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod batch_norm;
mod beside;
mod convolution;
mod error;
mod export;
mod family;
mod graph;
mod layers;
mod linear;
mod projector;
#[rustfmt::skip]
#[allow(missing_docs, unreachable_pub, clippy::all)]
mod proto;
mod quantised;

pub use error::{Error, Result};
pub use export::{Export, LARGEST_INSIDE, available_outputs, with_checksum, with_self_test};
