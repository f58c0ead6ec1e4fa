//! Which fields of the table an architecture has, and which of them its name fixes.

use super::EncoderConfig;
use crate::{Error, Result};

/// What can be written beside `arch`.
pub(super) struct Allowed<'a> {
    /// The architecture's family, which is also how it is called with sizes of one's own.
    pub(super) family: &'static str,
    /// What can be given.
    pub(super) fields: &'a [&'static str],
    /// What the architecture has, but its name fixes.
    pub(super) fixed: &'a [&'static str],
}

impl EncoderConfig {
    /// Every field that belongs to one architecture and not to another: all but `arch` and `channels`.
    pub const ARCHITECTURE_FIELDS: [&'static str; 17] = [
        "encoder.image_size",
        "encoder.patch_size",
        "encoder.dim",
        "encoder.depth",
        "encoder.heads",
        "encoder.mlp_hidden",
        "encoder.registers",
        "encoder.layer_scale",
        "encoder.pool",
        "encoder.class_token",
        "encoder.embed_prefix",
        "encoder.drop_path",
        "encoder.depths",
        "encoder.widths",
        "encoder.block",
        "encoder.groups",
        "encoder.group_width",
    ];

    /// The fields that were given, in the same order.
    fn given(&self) -> [Option<String>; 17] {
        fn shown<T: std::fmt::Debug>(value: &Option<T>) -> Option<String> {
            value.as_ref().map(|value| format!("{value:?}").to_lowercase())
        }
        [
            self.image_size.map(|size| size.to_string()),
            shown(&self.patch_size),
            shown(&self.dim),
            shown(&self.depth),
            shown(&self.heads),
            shown(&self.mlp_hidden),
            shown(&self.registers),
            shown(&self.layer_scale),
            shown(&self.pool),
            shown(&self.class_token),
            shown(&self.embed_prefix),
            shown(&self.drop_path),
            shown(&self.depths),
            shown(&self.widths),
            shown(&self.block),
            shown(&self.groups),
            shown(&self.group_width),
        ]
    }

    /// Refuses what the architecture does not have or its name fixes.
    pub(super) fn allow(&self, allowed: &Allowed<'_>) -> Result<()> {
        let Allowed { family, fields, fixed } = allowed;
        for (field, value) in Self::ARCHITECTURE_FIELDS.into_iter().zip(self.given()) {
            let Some(got) = value else { continue };
            let name = field.trim_start_matches("encoder.");
            if fixed.contains(&name) {
                let expected =
                    format!("absent, because {} fixes it (own sizes: arch = \"{family}\")", self.arch);
                return Err(Error::Setting { field, expected, got });
            }
            if !fields.contains(&name) {
                let expected = format!("absent, because {family} encoders do not have it");
                return Err(Error::Setting { field, expected, got });
            }
        }
        Ok(())
    }

    /// A field without which sizes of one's own are not complete.
    pub(super) fn required<T>(&self, field: &'static str, value: Option<T>) -> Result<T> {
        value.ok_or_else(|| Error::Setting {
            field,
            expected: format!("given when encoder.arch is {:?}", self.arch),
            got: "nothing".into(),
        })
    }
}
