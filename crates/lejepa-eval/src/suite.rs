//! Which probes run on which data: a TOML file, built in or a user's own.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::{Error, Knn, Result, Ridge};

/// A suite of probes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Suite {
    /// What it was asked for by.
    #[serde(skip)]
    pub name: String,
    /// Draws the training images, if they are limited, and what probes hold out.
    #[serde(default)]
    pub seed: u64,
    /// The most training images that are used; all if absent.
    pub train_limit: Option<usize>,
    /// The most test images that are used; all if absent.
    pub test_limit: Option<usize>,
    /// The probes, in the order of the table.
    pub probe: Vec<Probe>,
}

/// A probe with its settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Probe {
    /// Nearest neighbours.
    Knn(Knn),
    /// Ridge regression.
    Ridge(Ridge),
}

impl Probe {
    /// What the probe does, to be put beside a published number.
    pub fn protocol(&self, features: &str) -> String {
        match self {
            Self::Knn(knn) => knn.protocol(features),
            Self::Ridge(ridge) => ridge.protocol(features),
        }
    }

    /// A column's title.
    pub fn title(&self) -> String {
        match self {
            Self::Knn(knn) => format!("k-NN (k = {})", knn.k),
            Self::Ridge(_) => "ridge".into(),
        }
    }
}

/// Suites that need no file.
const BUILT_IN: [(&str, &str); 2] = [
    ("quick", include_str!("../../../eval/suites/quick.toml")),
    ("knn", include_str!("../../../eval/suites/knn.toml")),
];

impl Suite {
    /// A built-in suite by name, or any other by the path of its file.
    pub fn load(name: &str) -> Result<Self> {
        if let Some((_, text)) = BUILT_IN.iter().find(|(known, _)| *known == name) {
            return Self::parse(name, text);
        }
        let path = Path::new(name);
        if path.extension().is_none_or(|ending| ending != "toml") {
            let known = BUILT_IN.iter().map(|(known, _)| *known).collect();
            return Err(Error::UnknownSuite { name: name.into(), known });
        }
        let text = std::fs::read_to_string(path).map_err(|source| match source.kind() {
            std::io::ErrorKind::NotFound => lejepa_data::Error::NotFound { path: path.into() },
            _ => lejepa_data::Error::Io { action: "read", path: path.into(), source },
        })?;
        Self::parse(name, &text)
    }

    fn parse(name: &str, text: &str) -> Result<Self> {
        let invalid = |problem: String| Error::Suite { name: name.into(), problem };
        let mut suite: Self = toml::from_str(text).map_err(|error| invalid(error.to_string()))?;
        suite.name = name.into();
        suite.check().map_err(invalid)?;
        Ok(suite)
    }

    fn check(&self) -> std::result::Result<(), String> {
        if self.probe.is_empty() {
            return Err("it has no probe".into());
        }
        if [self.train_limit, self.test_limit].contains(&Some(0)) {
            return Err("a limit must be at least 1, got: 0".into());
        }
        for probe in &self.probe {
            match probe {
                Probe::Knn(Knn { k: 0, .. }) => return Err("`k` must be at least 1, got: 0".into()),
                Probe::Knn(Knn { temperature, .. }) if !(temperature.is_finite() && *temperature > 0.) => {
                    return Err(format!("`temperature` must be a positive number, got: {temperature}"));
                }
                Probe::Ridge(Ridge { lambdas, .. })
                    if lambdas.is_empty() || !lambdas.iter().all(|l| l.is_finite() && *l > 0.) =>
                {
                    return Err(format!("`lambdas` must be positive numbers, got: {lambdas:?}"));
                }
                Probe::Ridge(Ridge { holdout, .. }) if !(*holdout > 0. && *holdout < 1.) => {
                    return Err(format!("`holdout` must be between 0 and 1, got: {holdout}"));
                }
                Probe::Knn(_) | Probe::Ridge(_) => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(text: &str) -> String {
        Suite::parse("test", text).unwrap_err().to_string()
    }

    #[test]
    fn built_in_suites_are_valid() {
        for (name, _) in BUILT_IN {
            Suite::load(name).unwrap();
        }
    }

    #[test]
    fn mistakes_are_named() {
        assert!(problem("probe = []").contains("no probe"));
        assert!(problem("probes = []").contains("probes"));
        assert!(problem("[[probe]]\nkind = \"knn\"\nk = 0\ntemperature = 0.07").contains("`k`"));
        assert!(problem("[[probe]]\nkind = \"knn\"\nk = 5\ntemperature = 0").contains("temperature"));
        assert!(problem("[[probe]]\nkind = \"ridge\"\nlambdas = []\nholdout = 0.1").contains("lambdas"));
        assert!(problem("[[probe]]\nkind = \"ridge\"\nlambdas = [1.0]\nholdout = 1.0").contains("holdout"));
        assert!(problem("[[probe]]\nkind = \"svm\"").contains("svm"));
        assert!(Suite::load("quik").unwrap_err().to_string().contains("use quick, knn or"));
        assert!(Suite::load("nowhere.toml").unwrap_err().to_string().contains("nowhere.toml"));
    }
}
