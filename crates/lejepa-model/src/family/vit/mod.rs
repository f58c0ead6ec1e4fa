//! The family of vision transformers.

mod block;
mod forward;
mod masking;
mod names;
mod position_grid;
mod settings;
mod shape;
mod weights;

use std::collections::HashMap;
use std::sync::Arc;

use candle_core::Tensor;

use self::settings::SIZES;
use super::{CentreViews, Family, Network};
use crate::{EncoderConfig, FoundPositions, ImageSize, KnownGrid, Result, Scope};

pub use self::forward::{VisionTransformer, VitTokens};
pub use self::settings::VitSettings;
pub use self::shape::{Pool, VitShape};

impl Family for VitShape {
    type Settings = VitSettings;

    fn name() -> &'static str {
        "vit"
    }

    fn timm_names() -> &'static [&'static str] {
        &names::TIMM
    }

    fn examples() -> &'static [&'static str] {
        &["vit_small_patch16_224", "vit_small_patch14_reg4_dinov2"]
    }

    fn named(arch: &str) -> Result<Option<Self>> {
        names::named(arch)
    }

    fn fixed_settings(&self) -> Vec<&'static str> {
        let registers = (self.registers > 0).then_some("registers");
        SIZES.into_iter().chain(registers).collect()
    }

    fn own(config: &EncoderConfig, settings: VitSettings) -> Result<Self> {
        settings.own(config)
    }

    fn with_settings(self, config: &EncoderConfig, settings: VitSettings) -> Result<Self> {
        let image_size = config.image_size.unwrap_or(self.image_size);
        settings.options(config, Self { image_size, ..self })
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
        self.dim
    }

    fn stride(&self) -> usize {
        self.patch_size
    }

    fn expected_size(&self, ImageSize { height, width }: ImageSize) -> Option<String> {
        let has_rest = height % self.patch_size != 0 || width % self.patch_size != 0;
        has_rest.then(|| format!("a multiple of the patch size {}", self.patch_size))
    }

    fn has_class_feature(&self) -> bool {
        self.pool == Pool::Class
    }

    fn has_maskable_patches(&self) -> bool {
        true
    }

    fn centre_views(&self) -> CentreViews {
        CentreViews::Global
    }

    fn default_drop_path(&self) -> Option<f64> {
        Some(0.1)
    }

    fn position_grid(&self) -> Option<ImageSize> {
        Some(self.grid())
    }

    fn adapt(
        &self,
        tensors: &mut HashMap<String, Tensor>,
        grid: KnownGrid,
    ) -> Result<Option<FoundPositions>> {
        weights::adapt(tensors, self, grid)
    }

    fn build(&self, scope: Scope<'_>) -> Result<Arc<dyn Network>> {
        Ok(Arc::new(VisionTransformer::new(self, scope)?))
    }
}
