//! The folder of a report: the report itself in several forms, what was drawn, and the cells from which an
//! interrupted evaluation goes on.
//!
//! ```text
//! report.json              everything, see [`Report`]
//! identity.json            what it is of: suite, images, encoders, by their content
//! report.md, report.html   for people
//! scores.csv, classes.csv, confusion.csv
//! draws/flowers102.csv     training samples of every draw
//! cells/0f3a.json          one probe on one kind of features, with all predictions
//! cells/pictures-6b.json   maps and pictures
//! cells/video-c1.json      what was found in a clip
//! video/attention/dog/     masks and film of a clip
//! ```

use std::path::{Path, PathBuf};

use lejepa_data::{Lock, Overwrite, write_atomically};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::report::{Json, RENDERERS, Report, plain};
use crate::run::identity::Identity;
use crate::run::video_run;
use crate::sets::{Draw, ImageList, Shots};
use crate::suite::is_plain_name;
use crate::{Error, Result};

/// Where an evaluation writes.
#[derive(Debug, Clone)]
pub struct ReportFolder {
    path: PathBuf,
    overwrite: Overwrite,
}

/// What is kept between two evaluations.
#[derive(Serialize, Deserialize)]
struct Kept<T> {
    /// Of its key and content.
    blake3: String,
    content: T,
}

fn checksum(key: &str, content: &impl Serialize) -> Result<String> {
    let json = serde_json::to_vec(&(key, content)).map_err(Error::Json)?;
    Ok(blake3::hash(&json).to_hex()[..32].to_string())
}

/// A line of a list of drawn samples.
#[derive(Serialize)]
struct DrawnSample {
    shots: Shots,
    draw: usize,
    image: String,
    class: String,
}

/// What the report is of.
const IDENTITY: &str = "identity.json";

/// Files that renderers write besides the report as JSON.
fn rendered() -> impl Iterator<Item = &'static str> {
    RENDERERS.iter().flat_map(|renderer| renderer.files()).copied().filter(|name| *name != Json::FILE)
}

impl ReportFolder {
    /// A folder that need not be there yet.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), overwrite: Overwrite::Never }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Replaces whatever report is there.
    pub fn overwriting(self, overwrite: Overwrite) -> Self {
        Self { overwrite, ..self }
    }

    /// The right to write into it, which one process at a time has.
    pub(crate) fn lock(&self) -> Result<Lock> {
        Ok(Lock::of_folder(&self.path)?)
    }

    /// Whether what lies in the way may be removed.
    pub(crate) fn overwrites(&self) -> bool {
        self.overwrite == Overwrite::Always
    }

    /// Makes sure that what lies in the folder is of the same evaluation, begun or done before, and removes
    /// what this one will not write again. A report of anything else stays, unless the user says otherwise.
    pub(crate) fn claim(&self, identity: &Identity) -> Result<()> {
        let refuse = |found: String| Err(Error::OtherReport { found, folder: self.path.clone() });
        let path = self.path.join(IDENTITY);
        let found = std::fs::read(&path).ok();
        let earlier: Option<Identity> = found.as_ref().and_then(|json| serde_json::from_slice(json).ok());
        let lost = match &earlier {
            Some(earlier) => earlier.lost_in(identity),
            None => {
                let mut names = [IDENTITY, Json::FILE].into_iter().chain(rendered());
                let foreign = names.find(|name| self.path.join(name).symlink_metadata().is_ok());
                foreign.map(|name| format!("a {name} that is of no evaluation, or of an earlier version"))
            }
        };
        if let Some(found) = lost.clone().filter(|_| !self.overwrites()) {
            return refuse(found);
        }
        // Lists of sets that the earlier evaluation had are its own.
        let had = |set: &str| earlier.as_ref().is_some_and(|earlier| earlier.sets().any(|it| it == set));
        let mut lists = identity.sets().filter(|set| !had(set)).map(|set| self.draws(set));
        if let Some(path) = lists.find(|path| path.symlink_metadata().is_ok() && !self.overwrites()) {
            return Err(lejepa_data::Error::Exists { path }.into());
        }
        rendered().try_for_each(|name| self.remove(&self.path.join(name)))?;
        if lost.is_some() {
            self.remove(&self.path.join(Json::FILE))?;
        }
        // What else is in these folders is not of an evaluation.
        if let Some(earlier) = &earlier {
            let sets = earlier.sets().filter(|name| is_plain_name(name));
            sets.map(|set| self.draws(set)).try_for_each(|path| self.remove(&path))?;
            let clips = earlier.clips().filter(|name| is_plain_name(name));
            clips.filter(|_| lost.is_some()).try_for_each(|clip| video_run::remove(&self.path, clip))?;
        }
        let json = serde_json::to_vec_pretty(identity).map_err(Error::Json)?;
        Ok(write_atomically(&path, |file| file.write_all(&json))?)
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
        for renderer in RENDERERS {
            for file in renderer.render(report)? {
                write_atomically(&self.path.join(file.name), |to| to.write_all(&file.content))?;
            }
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
                    let (image, class) = (plain(&info.id), plain(info.class.unwrap_or_default()));
                    let line = DrawnSample { shots: *shots, draw: draw.number, image, class };
                    writer.serialize(line).map_err(Error::Csv)?;
                }
            }
        }
        let text = writer.into_inner().map_err(|error| Error::Write(error.into_error()))?;
        if text.is_empty() {
            return Ok(());
        }
        Ok(write_atomically(&self.draws(dataset), |file| file.write_all(&text))?)
    }

    /// What was measured before; nothing if the file is not there, or not as it was written under this key.
    pub(crate) fn read_cell<T: Serialize + DeserializeOwned>(&self, key: &str) -> Option<T> {
        let kept: Kept<T> = serde_json::from_slice(&std::fs::read(self.cell(key)).ok()?).ok()?;
        (kept.blake3 == checksum(key, &kept.content).ok()?).then_some(kept.content)
    }

    pub(crate) fn write_cell(&self, key: &str, cell: &impl Serialize) -> Result<()> {
        let kept = Kept { blake3: checksum(key, cell)?, content: cell };
        let json = serde_json::to_vec(&kept).map_err(Error::Json)?;
        Ok(write_atomically(&self.cell(key), |file| file.write_all(&json))?)
    }

    fn draws(&self, dataset: &str) -> PathBuf {
        self.path.join("draws").join(format!("{dataset}.csv"))
    }

    fn cell(&self, key: &str) -> PathBuf {
        self.path.join("cells").join(format!("{key}.json"))
    }
}
