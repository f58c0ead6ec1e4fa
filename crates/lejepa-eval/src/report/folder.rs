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
use std::sync::{Arc, Mutex, PoisonError};

use lejepa_data::{Claim, Job, Overwrite, regular_file};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::report::{Json, RENDERERS, Report, plain};
use crate::run::identity::Identity;
use crate::run::video_run;
use crate::sets::{Draw, ImageList, Shots};
use crate::suite::is_plain_name;
use crate::{Error, Result};

/// Where an evaluation writes.
#[derive(Debug)]
pub struct ReportFolder {
    path: PathBuf,
    overwrite: Overwrite,
    /// While an evaluation is at work in it.
    claim: Mutex<Option<Arc<Claim>>>,
}

/// An evaluation at work in a folder.
pub(crate) struct Work<'a>(&'a ReportFolder);

impl Drop for Work<'_> {
    fn drop(&mut self) {
        *self.0.claim.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
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
        Self { path: path.into(), overwrite: Overwrite::Never, claim: Mutex::default() }
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
    pub(crate) fn lock(&self) -> Result<Work<'_>> {
        let claim = self.claim_folder()?;
        *self.claim.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(claim));
        Ok(Work(self))
    }

    /// The same for those who write.
    pub(crate) fn claimed(&self) -> Result<Arc<Claim>> {
        let held = self.claim.lock().unwrap_or_else(PoisonError::into_inner).clone();
        held.map_or_else(|| self.claim_folder().map(Arc::new), Ok)
    }

    /// Which evaluation has written there is told by its identity.
    fn claim_folder(&self) -> Result<Claim> {
        Ok(Claim::of_folder(&self.path, &[], Job::new("eval", []), self.overwrite)?)
    }

    /// Whether what lies in the way may be removed.
    pub(crate) fn overwrites(&self) -> bool {
        self.overwrite == Overwrite::Always
    }

    /// Makes sure that what lies in the folder is of the same evaluation, begun or done before, and removes
    /// what this one will not write again. A report of anything else, and what somebody has put into the place of a
    /// result, stays unless the user says otherwise.
    pub(crate) fn claim(&self, identity: &Identity) -> Result<()> {
        let refuse = |found: String| Err(Error::OtherReport { found, folder: self.path.clone() });
        let claim = self.claimed()?;
        let path = self.path.join(IDENTITY);
        let found = regular_file::read(&path).ok();
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
        let results = [IDENTITY, Json::FILE].into_iter().chain(rendered()).map(|name| self.path.join(name));
        let lists = identity.sets().map(|set| self.draws(set));
        results.chain(lists).try_for_each(|path| claim.check(&path))?;
        rendered().try_for_each(|name| claim.remove(&self.path.join(name)))?;
        if lost.is_some() {
            claim.remove(&self.path.join(Json::FILE))?;
        }
        // What else is in these folders is not of an evaluation.
        if let Some(earlier) = &earlier {
            let sets = earlier.sets().filter(|name| is_plain_name(name));
            sets.map(|set| self.draws(set)).try_for_each(|path| claim.remove(&path))?;
            let clips = earlier.clips().filter(|name| is_plain_name(name));
            clips
                .filter(|_| lost.is_some())
                .try_for_each(|clip| video_run::remove(&claim, &self.path, clip))?;
        }
        let json = serde_json::to_vec_pretty(identity).map_err(Error::Json)?;
        Ok(claim.write(&path, &json)?)
    }

    /// Writes the report in all its forms; each file is whole at any moment.
    pub(crate) fn write(&self, report: &Report) -> Result<()> {
        let claim = self.claimed()?;
        for renderer in RENDERERS {
            for file in renderer.render(report)? {
                claim.write(&self.path.join(file.name), &file.content)?;
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
        Ok(self.claimed()?.write(&self.draws(dataset), &text)?)
    }

    /// What was measured before; nothing if the file is not there, or not as it was written under this key.
    pub(crate) fn read_cell<T: Serialize + DeserializeOwned>(&self, key: &str) -> Option<T> {
        let kept: Kept<T> = serde_json::from_slice(&regular_file::read(&self.cell(key)).ok()?).ok()?;
        (kept.blake3 == checksum(key, &kept.content).ok()?).then_some(kept.content)
    }

    pub(crate) fn write_cell(&self, key: &str, cell: &impl Serialize) -> Result<()> {
        let kept = Kept { blake3: checksum(key, cell)?, content: cell };
        let json = serde_json::to_vec(&kept).map_err(Error::Json)?;
        Ok(self.claimed()?.keep(&self.cell(key), &json)?)
    }

    fn draws(&self, dataset: &str) -> PathBuf {
        self.path.join("draws").join(format!("{dataset}.csv"))
    }

    fn cell(&self, key: &str) -> PathBuf {
        self.path.join("cells").join(format!("{key}.json"))
    }
}
