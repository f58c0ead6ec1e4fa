//! How many training samples of each class a probe sees.

use std::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Samples per class: a number, or `"all"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Shots {
    /// So many of each class, or all of a class that has fewer.
    Each(usize),
    /// The whole training split.
    All,
}

impl fmt::Display for Shots {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Each(count) => count.fmt(formatter),
            Self::All => formatter.pad("all"),
        }
    }
}

impl std::str::FromStr for Shots {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.parse() {
            Ok(0) => Err("expected at least 1 sample per class, or all"),
            Ok(count) => Ok(Self::Each(count)),
            Err(_) if text == "all" => Ok(Self::All),
            Err(_) => Err("expected a number of samples per class, or all"),
        }
    }
}

impl Serialize for Shots {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Each(count) => count.serialize(serializer),
            Self::All => "all".serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Shots {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Number(u64),
            Text(String),
        }
        let text = match Written::deserialize(deserializer)? {
            Written::Number(count) => count.to_string(),
            Written::Text(text) => text,
        };
        text.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_or_all_and_nothing_else() {
        let shots: Vec<Shots> = serde_json::from_str(r#"[1, 10, "all"]"#).unwrap();
        assert_eq!(shots, [Shots::Each(1), Shots::Each(10), Shots::All]);
        assert_eq!(serde_json::to_string(&shots).unwrap(), r#"[1,10,"all"]"#);
        for wrong in ["0", "-1", "\"some\"", "1.5"] {
            assert!(serde_json::from_str::<Shots>(wrong).is_err(), "{wrong}");
        }
    }
}
