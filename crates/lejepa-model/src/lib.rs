//! Defines encoders and the projector, with timm's parameter names.
//!
//! An [`EncoderConfig`] names an architecture, [`Parameters`] owns the tensors and an [`Encoder`]
//! maps pixels `(batch, channels, height, width)` to features `(batch, dim)`. Every layer is made of
//! operations whose gradient Candle gets right; the tests check that against PyTorch.
//!
//! ```
//! use candle_core::{DType, Device, Tensor};
//! use lejepa_model::{Encoder, EncoderConfig, Parameters, Pass};
//!
//! let config = EncoderConfig { arch: "vit_tiny_patch16_224".into(), image_size: Some(32.into()), ..Default::default() };
//! let mut parameters = Parameters::new(0, DType::F32, &Device::Cpu);
//! let encoder = Encoder::new(&config, parameters.root())?;
//! let pixels = Tensor::zeros((2, 3, 32, 32), DType::F32, &Device::Cpu)?;
//! assert_eq!(encoder.forward(&pixels, &Pass::eval())?.dims(), [2, 192]);
//! # Ok::<(), lejepa_model::Error>(())
//! ```

mod config;
mod encoder;
mod error;
mod external_weights;
pub mod family;
mod image_size;
mod initialisation;
pub mod layers;
mod parameters;
mod pass;
mod projector;

pub use config::{EncoderConfig, FamilySettings};
pub use encoder::Encoder;
pub use error::{Error, Result};
pub use external_weights::{ExternalWeights, FoundPositions, KnownGrid};
pub use family::{
    CentreViews, ConvNext, ConvNextSettings, ConvNextShape, EncoderShape, Family, Network, Pool, ResNet,
    ResNetBlock, ResNetSettings, ResNetShape, VisionTransformer, VitSettings, VitShape, VitTokens,
};
pub use image_size::ImageSize;
pub use initialisation::Initialisation;
pub use parameters::{Parameters, Scope};
pub use pass::{Pass, SumAcross};
pub use projector::{Projector, ProjectorConfig, check_widths};
