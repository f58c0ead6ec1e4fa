//! A family as the list of all families holds it: without its types.

use toml::{Table, Value};

use super::{EncoderShape, Family};
use crate::config::fields_of;
use crate::{EncoderConfig, Result};

/// A family whose types are not known.
pub(crate) trait Listed: Sync {
    fn name(&self) -> &'static str;

    fn timm_names(&self) -> &'static [&'static str];

    fn examples(&self) -> &'static [&'static str];

    /// Keys of its settings.
    fn keys(&self) -> &'static [&'static str];

    /// A value of one of its settings as it is written: `1.0` instead of `1` where any number may stand. A problem
    /// if the value is of another type.
    fn written(&self, key: &str, value: Value) -> std::result::Result<Option<Value>, String>;

    /// The sizes that a configuration stands for; nothing if it is of another family.
    fn resolve(&self, config: &EncoderConfig) -> Result<Option<EncoderShape>>;
}

/// A family with the variant for its sizes.
pub(super) struct Wrapped<F>(pub(super) fn(F) -> EncoderShape);

impl<F: Family> Listed for Wrapped<F> {
    fn name(&self) -> &'static str {
        F::name()
    }

    fn timm_names(&self) -> &'static [&'static str] {
        F::timm_names()
    }

    fn examples(&self) -> &'static [&'static str] {
        F::examples()
    }

    fn keys(&self) -> &'static [&'static str] {
        fields_of::<F::Settings>()
    }

    fn written(&self, key: &str, value: Value) -> std::result::Result<Option<Value>, String> {
        let one = Table::from_iter([(key.to_string(), value)]);
        let settings: F::Settings =
            one.try_into().map_err(|error: toml::de::Error| error.message().to_string())?;
        let mut written = Table::try_from(&settings).map_err(|error| error.to_string())?;
        Ok(written.remove(key))
    }

    fn resolve(&self, config: &EncoderConfig) -> Result<Option<EncoderShape>> {
        let is_own = config.arch == F::name();
        let named = if is_own { None } else { F::named(&config.arch)? };
        let shape = match named {
            Some(shape) => {
                let settings = config.settings.read::<F>(&config.arch, &shape.fixed_settings())?;
                shape.with_settings(config, settings)?
            }
            None if is_own => F::own(config, config.settings.read::<F>(&config.arch, &[])?)?,
            None => return Ok(None),
        };
        shape.check()?;
        Ok(Some((self.0)(shape)))
    }
}
