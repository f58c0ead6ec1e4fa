//! What the `[encoder]` table says of one family alone.

use std::collections::BTreeMap;

use serde::Serialize;
use toml::{Table, Value};

use super::fields::fields_of;
use super::keys;
use crate::family::Family;
use crate::{Error, Result};

/// The keys of an `[encoder]` table that not every family has, with their values.
///
/// Which of them there may be is known when the architecture is: [`EncoderConfig::resolve`](crate::EncoderConfig::resolve)
/// refuses the others.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FamilySettings(BTreeMap<&'static str, Value>);

impl FamilySettings {
    /// The settings of a family, such as [`VitSettings`](crate::VitSettings).
    pub fn of(settings: &impl Serialize) -> Result<Self> {
        let refuse = |problem: String| Error::Settings { problem };
        let mut all = Self::default();
        for (name, value) in Table::try_from(settings).map_err(|error| refuse(error.to_string()))? {
            let Some(key) = keys::of_setting(&name) else {
                return Err(refuse(format!("no family has the key: {name}")));
            };
            all.0.insert(key.name, value);
        }
        Ok(all)
    }

    /// The value of a key.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    /// Gives a key a value, or none. Nothing happens to a key that no family has.
    pub(super) fn set(&mut self, name: &str, value: Option<Value>) {
        match (keys::of_setting(name), value) {
            (Some(key), Some(value)) => _ = self.0.insert(key.name, value),
            _ => _ = self.0.remove(name),
        }
    }

    /// The keys that are given with their values, in the order in which they are written.
    pub(super) fn iter(&self) -> impl Iterator<Item = (keys::Key, &Value)> {
        keys::of_settings().filter_map(|key| Some((key, self.0.get(key.name)?)))
    }

    /// The settings of an architecture of a family. Refuses keys that the family does not have, and `fixed` ones.
    pub(crate) fn read<F: Family>(&self, arch: &str, fixed: &[&str]) -> Result<F::Settings> {
        let (family, fields) = (F::name(), fields_of::<F::Settings>());
        let mut table = Table::new();
        for (key, value) in self.iter() {
            let refuse = |expected| Err(Error::Setting { field: key.path, expected, got: shown(value) });
            if fixed.contains(&key.name) {
                return refuse(format!("absent, because {arch} fixes it (own sizes: arch = \"{family}\")"));
            }
            if !fields.contains(&key.name) {
                return refuse(format!("absent, because {family} encoders do not have it"));
            }
            table.insert(key.name.into(), value.clone());
        }
        table.try_into().map_err(|error: toml::de::Error| Error::Settings { problem: error.message().into() })
    }
}

fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_string)
}
