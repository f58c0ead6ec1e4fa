//! The family of residual networks, grouped ones (ResNeXt) among them.

mod block;
mod forward;
mod names;
mod settings;
mod shape;

use std::sync::Arc;

use self::settings::SIZES;
use super::stages::STRIDE;
use super::{Family, Network};
use crate::{EncoderConfig, ImageSize, Result, Scope};

pub use self::forward::ResNet;
pub use self::settings::ResNetSettings;
pub use self::shape::{ResNetBlock, ResNetShape};

impl Family for ResNetShape {
    type Settings = ResNetSettings;

    fn name() -> &'static str {
        "resnet"
    }

    fn timm_names() -> &'static [&'static str] {
        &names::TIMM
    }

    fn examples() -> &'static [&'static str] {
        &["resnet50", "resnext50_32x4d"]
    }

    fn named(arch: &str) -> Result<Option<Self>> {
        Ok(Self::named(arch))
    }

    fn fixed_settings(&self) -> Vec<&'static str> {
        SIZES.into()
    }

    fn own(config: &EncoderConfig, settings: ResNetSettings) -> Result<Self> {
        settings.own(config)
    }

    fn with_settings(self, config: &EncoderConfig, settings: ResNetSettings) -> Result<Self> {
        Ok(Self {
            image_size: config.image_size.unwrap_or(self.image_size),
            channels: config.channels,
            drop_path: settings.drop_path.unwrap_or(self.drop_path),
            ..self
        })
    }

    fn check(&self) -> Result<()> {
        self.check_sizes()
    }

    fn image_size(&self) -> ImageSize {
        self.image_size
    }

    fn channels(&self) -> usize {
        self.channels
    }

    fn dim(&self) -> usize {
        self.outputs(3)
    }

    fn stride(&self) -> usize {
        STRIDE
    }

    fn default_weight_decay(&self) -> Option<f64> {
        Some(5e-4)
    }

    fn build(&self, scope: Scope<'_>) -> Result<Arc<dyn Network>> {
        Ok(Arc::new(ResNet::new(self, scope)?))
    }
}
