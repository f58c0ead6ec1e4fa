//! Which probes run on which data: a TOML file, built in or a user's own.

use std::path::Path;

use lejepa_data::Split;
pub use lejepa_probe::Probe;
use serde::{Deserialize, Serialize};

use crate::isotropy::{Demonstration, Isotropy};
use crate::pictures::Pictures;
use crate::report::paper;
use crate::sets::Shots;
use crate::{Error, Result};

/// A suite of probes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Suite {
    /// What it was asked for by.
    #[serde(skip)]
    pub name: String,
    /// What it is for, in a sentence.
    #[serde(default)]
    pub about: String,
    /// Draws training images and what probes hold out.
    #[serde(default)]
    pub seed: u64,
    /// Sets that are looked for below a folder; none if the data is to be named.
    #[serde(default)]
    pub datasets: Vec<String>,
    /// Training samples per class.
    #[serde(default = "all")]
    pub shots: Vec<Shots>,
    /// Draws of training samples, where not all are taken.
    #[serde(default = "three")]
    pub draws: usize,
    /// Whether validation images are learnt from too, as most tables of transfer learning do.
    #[serde(default)]
    pub use_validation: bool,
    /// The split that is asked about, instead of the test split.
    pub test_split: Option<Split>,
    /// Whether the mean over classes of the accuracy within each has a column; it always has one for sets
    /// that are usually scored so.
    #[serde(default)]
    pub per_class: bool,
    /// For k-NN, the short side of an image over that of the crop, for encoders of at least 96 pixels: 256 to
    /// 224 is 1.143. What the encoder says itself if absent.
    pub knn_resize: Option<f64>,
    /// The most training images that are used; all if absent.
    pub train_limit: Option<usize>,
    /// The most test images that are used; all if absent.
    pub test_limit: Option<usize>,
    /// What stands beside the encoders.
    #[serde(default = "every_baseline")]
    pub baselines: Vec<Baseline>,
    /// Tables of the paper whose numbers stand beside ours.
    #[serde(default)]
    pub paper: Vec<String>,
    /// The probes, in the order of the table.
    #[serde(default)]
    pub probe: Vec<Probe>,
    /// Maps and pictures of test images in the report; none if absent.
    pub pictures: Option<Pictures>,
    /// The isotropy experiment on features.
    pub isotropy: Option<Isotropy>,
    /// The same on simulated features, without an encoder.
    pub demonstration: Option<Demonstration>,
}

/// What an encoder is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Baseline {
    /// The same encoder before its first step; of imported weights, the same architecture with random ones.
    Untrained,
    /// The values that the first encoder would see.
    Pixels,
}

fn all() -> Vec<Shots> {
    vec![Shots::All]
}

fn three() -> usize {
    3
}

fn every_baseline() -> Vec<Baseline> {
    vec![Baseline::Untrained, Baseline::Pixels]
}

/// Suites that need no file.
const BUILT_IN: [(&str, &str); 6] = [
    ("quick", include_str!("../../../../eval/suites/quick.toml")),
    ("knn", include_str!("../../../../eval/suites/knn.toml")),
    ("probes", include_str!("../../../../eval/suites/probes.toml")),
    ("fewshot", include_str!("../../../../eval/suites/fewshot.toml")),
    ("galaxy10", include_str!("../../../../eval/suites/galaxy10.toml")),
    ("isotropy", include_str!("../../../../eval/suites/isotropy.toml")),
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

    /// What is wrong with it.
    pub fn check(&self) -> std::result::Result<(), String> {
        if self.probe.is_empty() && self.isotropy.is_none() && self.demonstration.is_none() {
            return Err("it has no probe".into());
        }
        if [self.train_limit, self.test_limit].contains(&Some(0)) {
            return Err("a limit must be at least 1, got: 0".into());
        }
        match self.test_split {
            Some(Split::Train | Split::Unlabelled) => {
                return Err("`test_split` must be \"test\" or \"validation\"".into());
            }
            Some(Split::Validation) if self.use_validation => {
                return Err("`use_validation` learns from the images that `test_split` asks about".into());
            }
            _ => {}
        }
        if let Some(factor) = self.knn_resize.filter(|factor| !(1. ..=2.).contains(factor)) {
            return Err(format!("`knn_resize` must be between 1 and 2, got: {factor}"));
        }
        if self.shots.is_empty() {
            return Err("`shots` needs at least one value".into());
        }
        if self.draws == 0 {
            return Err("`draws` must be at least 1, got: 0".into());
        }
        if let Some(name) = self.datasets.iter().find(|name| !is_plain_name(name)) {
            return Err(format!("a dataset must be the name of a folder, got: {name:?}"));
        }
        if let Some(table) = self.paper.iter().find(|name| !paper::tables().any(|table| table == **name)) {
            let known: Vec<&str> = paper::tables().collect();
            return Err(format!("no table of the paper among {}: {table:?}", known.join(", ")));
        }
        let titles: Vec<String> = self.probe.iter().map(Probe::title).collect();
        if let Some(twice) = titles.iter().enumerate().find(|(index, title)| titles[..*index].contains(title))
        {
            return Err(format!("two probes have the same title: {}", twice.1));
        }
        self.probe.iter().try_for_each(Probe::check).map_err(|error| error.to_string())?;
        let named = |problem| format!("pictures: {problem}");
        self.pictures.as_ref().map_or(Ok(()), Pictures::check).map_err(named)?;
        let named = |problem| format!("isotropy: {problem}");
        self.isotropy.as_ref().map_or(Ok(()), Isotropy::check).map_err(named)?;
        let named = |problem| format!("demonstration: {problem}");
        self.demonstration.as_ref().map_or(Ok(()), Demonstration::check).map_err(named)
    }
}

/// A folder's name, and not a path that leads elsewhere.
pub(crate) fn is_plain_name(name: &str) -> bool {
    Path::new(name).file_name().is_some_and(|file| file == name)
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
            assert!(!Suite::load(name).unwrap().about.is_empty(), "{name}");
        }
    }

    #[test]
    fn probes_of_a_kind_stand_side_by_side_if_each_has_its_setting() {
        let given = |c: f64| format!("[[probe]]\nkind = \"logistic\"\nc = [{c}]\n");
        let suite = Suite::parse("test", &format!("{}{}", given(0.5), given(2.))).unwrap();
        let titles: Vec<String> = suite.probe.iter().map(Probe::title).collect();
        assert_eq!(titles, ["logistic (C = 0.5)", "logistic (C = 2)"]);
    }

    #[test]
    fn mistakes_are_named() {
        let knn = "[[probe]]\nkind = \"knn\"\nk = 5\ntemperature = 0.07";
        assert!(problem("probe = []").contains("no probe"));
        assert!(problem("probes = []").contains("probes"));
        assert!(problem("[[probe]]\nkind = \"knn\"\nk = 0\ntemperature = 0.07").contains("`k`"));
        assert!(problem("[[probe]]\nkind = \"knn\"\nk = 5\ntemperature = 0").contains("temperature"));
        assert!(problem("[[probe]]\nkind = \"ridge\"\nlambdas = []\nholdout = 0.1").contains("lambdas"));
        assert!(problem("[[probe]]\nkind = \"ridge\"\nlambdas = [1.0]\nholdout = 1.0").contains("holdout"));
        assert!(problem("[[probe]]\nkind = \"logistic\"\nc = [-1.0]\nholdout = 0.1").contains("`c`"));
        assert!(problem("[[probe]]\nkind = \"svm\"").contains("svm"));
        assert!(problem(&format!("{knn}\n{knn}")).contains("same title"));
        for (line, named) in [
            ("shots = []", "shots"),
            ("shots = [0]", "at least 1"),
            ("draws = 0", "draws"),
            ("datasets = [\"../x\"]", "../x"),
            ("paper = [\"table\"]", "transfer"),
            ("train_limit = 0", "limit"),
            ("test_split = \"train\"", "test_split"),
            ("knn_resize = 256.0", "knn_resize"),
            ("test_split = \"validation\"\nuse_validation = true", "use_validation"),
        ] {
            assert!(problem(&format!("{line}\n{knn}")).contains(named), "{line}");
        }
        for (line, named) in [("points = 0", "pictures: `points`"), ("images = 1000", "at most 100")] {
            assert!(problem(&format!("{knn}\n[pictures]\n{line}")).contains(named), "{line}");
        }
        assert!(Suite::load("quik").unwrap_err().to_string().contains("use quick, knn"));
        assert!(Suite::load("nowhere.toml").unwrap_err().to_string().contains("nowhere.toml"));
    }
}
