//! The definition of a family of encoders, from its name in a recipe to the network that is built.

use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::Arc;

use candle_core::Tensor;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{EncoderConfig, Error, FoundPositions, ImageSize, KnownGrid, Pass, Result, Scope};

/// Larger images are a mistake in a recipe.
const LARGEST_SIDE: usize = 4096;

/// A family of encoders, implemented by the sizes of one of them.
pub trait Family: Debug + Send + Sync {
    /// The keys of `[encoder]` that encoders of the family have besides `arch`, `image_size` and `channels`. All are
    /// optional; a key that other families have too is of the same type there.
    type Settings: Serialize + DeserializeOwned
    where
        Self: Sized;

    /// The family's name, which is `encoder.arch` of an encoder with sizes of one's own.
    fn name() -> &'static str
    where
        Self: Sized;

    /// Names of timm's to suggest: those that people write most, not all that can be built.
    fn timm_names() -> &'static [&'static str]
    where
        Self: Sized;

    /// Names that show what those of the family look like.
    fn examples() -> &'static [&'static str]
    where
        Self: Sized;

    /// The sizes behind a name of timm's; nothing for names of other families. An error for names of the family that
    /// cannot be built.
    fn named(arch: &str) -> Result<Option<Self>>
    where
        Self: Sized;

    /// Keys of the settings that the name of these sizes fixes.
    fn fixed_settings(&self) -> Vec<&'static str>;

    /// Sizes of one's own.
    fn own(config: &EncoderConfig, settings: Self::Settings) -> Result<Self>
    where
        Self: Sized;

    /// The sizes behind a name with the settings that it does not fix.
    fn with_settings(self, config: &EncoderConfig, settings: Self::Settings) -> Result<Self>
    where
        Self: Sized;

    /// Refuses sizes that do not fit.
    fn check(&self) -> Result<()>;

    /// Pixels of a global view.
    fn image_size(&self) -> ImageSize;

    /// Channels of an image.
    fn channels(&self) -> usize;

    /// Length of a feature vector.
    fn dim(&self) -> usize;

    /// Pixels between neighbouring places of the last feature map; image sizes are best a multiple of it.
    fn stride(&self) -> usize;

    /// Sizes of images that the encoder takes, if this is none of them.
    fn expected_size(&self, _size: ImageSize) -> Option<String> {
        None
    }

    /// Refuses images that the encoder cannot take.
    fn check_image_size(&self, field: &'static str, size: ImageSize) -> Result<()> {
        let ImageSize { height, width } = size;
        let refuse = |expected: String| Err(Error::Setting { field, expected, got: size.to_string() });
        if height == 0 || width == 0 || height > LARGEST_SIDE || width > LARGEST_SIDE {
            return refuse(format!("between 1 and {LARGEST_SIDE} pixels"));
        }
        self.expected_size(size).map_or(Ok(()), refuse)
    }

    /// Whether the feature is a class token; otherwise it is a mean over places.
    fn has_class_feature(&self) -> bool {
        false
    }

    /// Whether some of an image's patches can be hidden from the encoder in training.
    fn has_maskable_patches(&self) -> bool {
        false
    }

    /// The views whose embeddings make a sample's centre.
    fn centre_views(&self) -> CentreViews {
        CentreViews::All
    }

    /// Stochastic depth of a recipe that does not say it; nothing leaves it out.
    fn default_drop_path(&self) -> Option<f64> {
        None
    }

    /// Weight decay of a recipe that does not say it; nothing is the optimiser's own default.
    fn default_weight_decay(&self) -> Option<f64> {
        None
    }

    /// Rows and columns of the position embedding, which belongs to one image size; nothing without one.
    fn position_grid(&self) -> Option<ImageSize> {
        None
    }

    /// Gives external weights the encoder's own names and forms, positions of another grid its own.
    fn adapt(
        &self,
        _tensors: &mut HashMap<String, Tensor>,
        _grid: KnownGrid,
    ) -> Result<Option<FoundPositions>> {
        Ok(None)
    }

    /// Builds the network; parameters have timm's names.
    fn build(&self, scope: Scope<'_>) -> Result<Arc<dyn Network>>;
}

/// The views that make a sample's centre, to which all of its views are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CentreViews {
    /// The global views.
    Global,
    /// All views: the paper's listing counts all as global for other encoders than transformers.
    All,
}

/// A network of any family.
pub trait Network: Debug + Send + Sync {
    /// The feature of every image.
    ///
    /// # Shapes
    /// - `pixels`: `(images, channels, height, width)`
    /// - result: `(images, dim)`
    fn forward(&self, pixels: &Tensor, pass: &Pass) -> Result<Tensor>;

    /// The features of every place, in evaluation.
    ///
    /// # Shapes
    /// - `pixels`: `(images, channels, height, width)`
    /// - result: `(images, rows, columns, dim)`
    fn patch_tokens(&self, pixels: &Tensor) -> Result<Tensor>;
}
