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
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{Draw, Error, ImageList, Report, Result, Shots, to_csv, to_html, to_markdown};

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

impl ReportFolder {
    /// A folder that need not be there yet.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
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
