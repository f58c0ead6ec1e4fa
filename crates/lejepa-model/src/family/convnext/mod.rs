//! The family of ConvNeXt V2.

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

pub use self::forward::ConvNext;
pub use self::settings::ConvNextSettings;
pub use self::shape::ConvNextShape;

impl Family for ConvNextShape {
    type Settings = ConvNextSettings;

    fn name() -> &'static str {
        "convnextv2"
    }

    fn timm_names() -> &'static [&'static str] {
        &names::TIMM
    }

    fn examples() -> &'static [&'static str] {
        &["convnextv2_tiny"]
    }

    fn named(arch: &str) -> Result<Option<Self>> {
        Ok(Self::named(arch))
    }

    fn fixed_settings(&self) -> Vec<&'static str> {
        SIZES.into()
    }

    fn own(config: &EncoderConfig, settings: ConvNextSettings) -> Result<Self> {
        settings.own(config)
    }

    fn with_settings(self, config: &EncoderConfig, settings: ConvNextSettings) -> Result<Self> {
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
        let [.., last] = self.widths;
        last
    }

    fn stride(&self) -> usize {
        STRIDE
    }

    fn expected_size(&self, size: ImageSize) -> Option<String> {
        (size.height.min(size.width) < STRIDE).then(|| format!("at least {STRIDE} pixels"))
    }

    fn build(&self, scope: Scope<'_>) -> Result<Arc<dyn Network>> {
        Ok(Arc::new(ConvNext::new(self, scope)?))
    }
}
