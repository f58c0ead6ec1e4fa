//! The folder of a report: the report itself in several forms, what was drawn, and the cells from which an
//! interrupted evaluation goes on.
//!
//! ```text
//! report.json              everything, see [`Report`]
//! report.md, report.html   for people
//! scores.csv, classes.csv, confusion.csv
//! draws/flowers102.csv     training samples of every draw
//! cells/0f3a.json          one probe on one kind of features, with all predictions
//! cells/pictures-6b.json   maps and pictures
//! cells/video-c1.json      what was found in a clip
//! video/attention/dog/     masks and film of a clip
//! ```

use std::path::{Path, PathBuf};

use lejepa_data::write_atomically;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::{CandidateInfo, Draw, Error, ImageList, Report, Result, Shots, to_csv, to_html, to_markdown};

/// Where an evaluation writes.
#[derive(Debug, Clone)]
pub struct ReportFolder {
    path: PathBuf,
}

/// A line of a list of drawn samples.
#[derive(Serialize)]
struct DrawnSample<'a> {
    shots: Shots,
    draw: usize,
    image: &'a str,
    class: &'a str,
}

/// Files of a report besides `report.json`.
const WRITTEN: [&str; 7] = [
    "report.md",
    "report.html",
    "scores.csv",
    "classes.csv",
    "confusion.csv",
    "isotropy.csv",
    "verdicts.csv",
];

/// What tells one evaluation from another, of any version of the report.
#[derive(Deserialize)]
struct EarlierReport {
    suite: String,
    candidates: Vec<EarlierCandidate>,
    datasets: Vec<EarlierDataset>,
    #[serde(default)]
    videos: Vec<serde::de::IgnoredAny>,
}

#[derive(Deserialize)]
struct EarlierCandidate {
    name: String,
    description: String,
    fingerprint: Option<String>,
}

#[derive(Deserialize)]
struct EarlierDataset {
    name: String,
    path: String,
}

impl EarlierReport {
    /// What of it the new report will not have, in words. A set that was not reached is no difference, nor is
    /// an encoder that was trained further or moved.
    fn differs(&self, new: &Report, sets: &[[&str; 2]], has_video: bool) -> Option<String> {
        if self.suite != new.suite {
            return Some(format!("a report of the suite {}", self.suite));
        }
        let known = |set: &&EarlierDataset| sets.contains(&[set.name.as_str(), set.path.as_str()]);
        if let Some(set) = self.datasets.iter().find(|set| !known(set)) {
            return Some(format!("a report of {}", set.path));
        }
        let known = |candidate: &&EarlierCandidate| {
            let same_weights =
                |it: &CandidateInfo| it.fingerprint.is_some() && it.fingerprint == candidate.fingerprint;
            let same = |it: &CandidateInfo| it.description == candidate.description || same_weights(it);
            candidate.fingerprint.is_none() || new.candidates.iter().any(same)
        };
        if let Some(candidate) = self.candidates.iter().find(|candidate| !known(candidate)) {
            return Some(format!("a report of {}, {}", candidate.name, candidate.description));
        }
        (!self.videos.is_empty() && !has_video).then(|| "masks of clips".into())
    }
}

impl ReportFolder {
    /// A folder that need not be there yet.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes sure that what lies in the folder is of the same evaluation, begun or done before, and removes
    /// what this one will not write again. A report of other data, another suite or other encoders stays.
    pub(crate) fn claim(&self, report: &Report, sets: &[[&str; 2]], has_video: bool) -> Result<()> {
        let refuse = |found: String| Err(Error::OtherReport { found, folder: self.path.clone() });
        let mut is_ours = false;
        if let Ok(bytes) = std::fs::read(self.path.join("report.json")) {
            is_ours = true;
            let Ok(earlier) = serde_json::from_slice::<EarlierReport>(&bytes) else {
                return refuse("a report.json that is not of an evaluation".into());
            };
            if let Some(found) = earlier.differs(report, sets, has_video) {
                return refuse(found);
            }
        } else if let Some(name) = WRITTEN.iter().find(|name| self.path.join(name).exists()) {
            return refuse(format!("a {name} that is not of an evaluation"));
        }
        for name in WRITTEN {
            self.remove(&self.path.join(name))?;
        }
        // What else is in there is not of an evaluation.
        let draws = self.path.join("draws");
        for [set, _] in sets.iter().filter(|_| is_ours) {
            self.remove(&draws.join(format!("{set}.csv")))?;
        }
        Ok(())
    }

    fn remove(&self, path: &Path) -> Result<()> {
        match std::fs::remove_file(path) {
            Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
                Err(lejepa_data::Error::Io { action: "remove", path: path.into(), source }.into())
            }
            _ => Ok(()),
        }
    }

    /// Writes the report in all its forms; each file is whole at any moment.
    pub(crate) fn write(&self, report: &Report) -> Result<()> {
        let json = serde_json::to_string_pretty(report).map_err(Error::Json)? + "\n";
        let mut files = vec![
            ("report.json", json.into_bytes()),
            ("report.md", to_markdown(report).into_bytes()),
            ("report.html", to_html(report).into_bytes()),
        ];
        files.extend(to_csv(report)?);
        for (name, content) in files {
            write_atomically(&self.path.join(name), |file| file.write_all(&content))?;
        }
        Ok(())
    }

    /// Lists the samples of all draws of a set.
    pub(crate) fn write_draws(
        &self,
        dataset: &str,
        images: &ImageList,
        draws: &[(Shots, Vec<Draw>)],
    ) -> Result<()> {
        let mut writer = csv::Writer::from_writer(Vec::new());
        for (shots, draws) in draws.iter().filter(|(shots, _)| *shots != Shots::All) {
            for draw in draws {
                for &sample in &draw.samples {
                    let info = images.info(sample);
                    let (image, class) = (info.id.as_str(), info.class.unwrap_or_default());
                    let line = DrawnSample { shots: *shots, draw: draw.number, image, class };
                    writer.serialize(line).map_err(Error::Csv)?;
                }
            }
        }
        let text = writer.into_inner().map_err(|error| Error::Write(error.into_error()))?;
        if text.is_empty() {
            return Ok(());
        }
        let path = self.path.join("draws").join(format!("{dataset}.csv"));
        Ok(write_atomically(&path, |file| file.write_all(&text))?)
    }

    /// What was measured before; nothing if the file is not there or not whole.
    pub(crate) fn read_cell<T: DeserializeOwned>(&self, key: &str) -> Option<T> {
        serde_json::from_slice(&std::fs::read(self.cell(key)).ok()?).ok()
    }

    pub(crate) fn write_cell(&self, key: &str, cell: &impl Serialize) -> Result<()> {
        let json = serde_json::to_vec(cell).map_err(Error::Json)?;
        Ok(write_atomically(&self.cell(key), |file| file.write_all(&json))?)
    }

    fn cell(&self, key: &str) -> PathBuf {
        self.path.join("cells").join(format!("{key}.json"))
    }
}
