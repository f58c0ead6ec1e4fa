//! Which encoder to build: a timm name, or a family with sizes of one's own.

mod fields;
mod keys;
mod names;
mod serialisation;
mod settings;

use toml::Value;

use crate::family::FAMILIES;
use crate::{EncoderShape, Error, ImageSize, Result};

pub(crate) use self::fields::fields_of;
pub use self::settings::FamilySettings;

/// The `[encoder]` table of a recipe, as it was written.
///
/// A name fixes the sizes of its architecture; those that it does not fix, and all of them with the name of a family
/// alone, can be given. A key that an architecture does not have is refused.
#[derive(Debug, Clone, PartialEq)]
pub struct EncoderConfig {
    /// A timm name such as `vit_tiny_patch16_224`, or `vit`, `resnet` or `convnextv2` with sizes of one's own.
    pub arch: String,
    /// Pixels of a global view; the name's own size if absent.
    pub image_size: Option<ImageSize>,
    /// 1 for grey images, 3 for colour.
    pub channels: usize,
    /// All other keys of the table: those of the family.
    pub settings: FamilySettings,
}

impl Default for EncoderConfig {
    fn default() -> Self {
        Self::named("vit_tiny_patch16_224")
    }
}

impl EncoderConfig {
    const DROP_PATH: &str = "drop_path";

    /// An architecture with everything that its name fixes and all else by default.
    pub fn named(arch: &str) -> Self {
        Self { arch: arch.into(), image_size: None, channels: 3, settings: FamilySettings::default() }
    }

    /// The sizes that the table stands for, checked.
    pub fn resolve(&self) -> Result<EncoderShape> {
        for family in FAMILIES {
            if let Some(shape) = family.resolve(self)? {
                return Ok(shape);
            }
        }
        let (expected, got) = (names::expected(&self.arch), format!("{:?}", self.arch));
        Err(Error::Setting { field: "encoder.arch", expected, got })
    }

    /// Every key that belongs to one architecture and not to another: all but `arch` and `channels`.
    pub fn architecture_fields() -> impl Iterator<Item = &'static str> {
        std::iter::once("encoder.image_size").chain(keys::of_settings().map(|key| key.path))
    }

    /// Stochastic depth: the probability that the last block is passed over in training, if it is given.
    pub fn drop_path(&self) -> Option<f64> {
        self.settings.get(Self::DROP_PATH).and_then(Value::as_float)
    }

    /// Gives stochastic depth, or leaves it to the default.
    pub fn set_drop_path(&mut self, probability: Option<f64>) {
        self.settings.set(Self::DROP_PATH, probability.map(Value::from));
    }

    /// A value without which sizes of one's own are not complete.
    pub fn required<T>(&self, field: &'static str, value: Option<T>) -> Result<T> {
        value.ok_or_else(|| Error::Setting {
            field,
            expected: format!("given when encoder.arch is {:?}", self.arch),
            got: "nothing".into(),
        })
    }
}

#[cfg(test)]
mod tests;
