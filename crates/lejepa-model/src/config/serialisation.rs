//! The `[encoder]` table in files: one flat table, whichever of its keys belong to a family.

use std::fmt;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error as _, MapAccess, Visitor};
use serde::ser::{Serialize, SerializeStruct, Serializer};
use toml::Value;

use super::{EncoderConfig, keys};
use crate::family::FAMILIES;

const NAME: &str = "EncoderConfig";

impl Serialize for EncoderConfig {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let length = 2 + usize::from(self.image_size.is_some()) + self.settings.iter().count();
        let mut table = serializer.serialize_struct(NAME, length)?;
        table.serialize_field("arch", &self.arch)?;
        if let Some(size) = &self.image_size {
            table.serialize_field("image_size", size)?;
        }
        table.serialize_field("channels", &self.channels)?;
        for (key, value) in self.settings.iter() {
            table.serialize_field(key.name, value)?;
        }
        table.end()
    }
}

impl<'de> Deserialize<'de> for EncoderConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_struct(NAME, keys::names(), TableVisitor)
    }
}

struct TableVisitor;

impl<'de> Visitor<'de> for TableVisitor {
    type Value = EncoderConfig;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "struct {NAME}")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<EncoderConfig, A::Error> {
        let (mut config, mut seen) = (EncoderConfig::default(), Vec::new());
        while let Some(KeyName(name)) = map.next_key()? {
            if seen.contains(&name) {
                return Err(A::Error::duplicate_field(name));
            }
            seen.push(name);
            match name {
                "arch" => config.arch = map.next_value()?,
                "image_size" => config.image_size = map.next_value()?,
                "channels" => config.channels = map.next_value()?,
                _ => {
                    let value = map.next_value_seed(SettingSeed { name })?;
                    config.settings.set(name, value);
                }
            }
        }
        Ok(config)
    }
}

/// The name of a key that some encoder has.
struct KeyName(&'static str);

impl<'de> Deserialize<'de> for KeyName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NameVisitor;

        impl Visitor<'_> for NameVisitor {
            type Value = KeyName;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("field identifier")
            }

            fn visit_str<E: serde::de::Error>(self, typed: &str) -> Result<KeyName, E> {
                let name = keys::names().iter().find(|name| **name == typed);
                name.map(|name| KeyName(name)).ok_or_else(|| E::unknown_field(typed, keys::names()))
            }
        }

        deserializer.deserialize_identifier(NameVisitor)
    }
}

/// The value of a key of some family's settings.
///
/// Whether the architecture has the key is not known yet, but its type is, so that messages can point to the line.
struct SettingSeed {
    name: &'static str,
}

impl<'de> DeserializeSeed<'de> for SettingSeed {
    type Value = Option<Value>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Option<Value>, D::Error> {
        let Some(value) = Option::<Value>::deserialize(deserializer)? else { return Ok(None) };
        let of_key = FAMILIES.iter().find(|family| family.keys().contains(&self.name));
        let Some(family) = of_key else { return Ok(None) };
        family.written(self.name, value).map_err(D::Error::custom)
    }
}
