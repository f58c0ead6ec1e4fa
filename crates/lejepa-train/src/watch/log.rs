//! `watch.jsonl`: one JSON object per look.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use lejepa_data::regular_file;

use super::WatchMetrics;
use crate::Result;

/// An open `watch.jsonl`.
#[derive(Debug)]
pub struct WatchLog {
    path: PathBuf,
    file: File,
    last_kept: Option<WatchMetrics>,
}

impl WatchLog {
    /// Opens the log for a run that goes on after `start` steps: looks that an interrupted run has
    /// taken later are dropped.
    pub fn open(path: &Path, start: u64) -> Result<Self> {
        let mut kept = read_watch(path)?;
        kept.retain(|look| look.step <= start);
        lejepa_data::write_atomically(path, |file| kept.iter().try_for_each(|look| write_line(file, look)))?;
        let file =
            OpenOptions::new().append(true).open(path).map_err(|error| failed("write", path, error))?;
        Ok(Self { path: path.into(), file, last_kept: kept.pop() })
    }

    /// The last look of the sessions before.
    pub fn last_kept(&self) -> Option<&WatchMetrics> {
        self.last_kept.as_ref()
    }

    /// Adds a line.
    pub fn append(&mut self, look: &WatchMetrics) -> Result<()> {
        write_line(&mut self.file, look).map_err(|error| failed("write", &self.path, error))
    }
}

/// All looks of a run; none if the file is not there. A line that was cut off is left out.
pub fn read_watch(path: &Path) -> Result<Vec<WatchMetrics>> {
    match regular_file::read(path) {
        Ok(bytes) => {
            let lines = bytes.split(|&byte| byte == b'\n');
            Ok(lines.filter_map(|line| serde_json::from_slice(line).ok()).collect())
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(failed("read", path, error)),
    }
}

fn write_line(file: &mut dyn Write, look: &WatchMetrics) -> std::io::Result<()> {
    writeln!(file, "{}", serde_json::to_string(look)?)
}

fn failed(action: &'static str, path: &Path, source: std::io::Error) -> crate::Error {
    lejepa_data::Error::Io { action, path: path.into(), source }.into()
}

#[cfg(test)]
mod tests {
    use super::super::GaugeMetrics;
    use super::*;

    fn look(step: u64) -> WatchMetrics {
        let gauge = GaugeMetrics {
            sigreg_over_floor: 1.25,
            rankme: 7.5,
            weak_directions: 2,
            verdict: "2 weak directions".into(),
        };
        WatchMetrics {
            step,
            watched: Some("0123456789abcdef".into()),
            features: gauge.clone(),
            embeddings: gauge,
            knn: Some(0.5),
            linear: None,
        }
    }

    #[test]
    fn a_log_goes_on_where_the_run_goes_on() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("watch.jsonl");
        assert_eq!(read_watch(&path).unwrap(), []);
        let mut log = WatchLog::open(&path, 0).unwrap();
        [10, 20, 30].iter().for_each(|&step| log.append(&look(step)).unwrap());
        let whole = std::fs::read(&path).unwrap();
        std::fs::write(&path, &whole[..whole.len() - 5]).unwrap();
        assert_eq!(read_watch(&path).unwrap(), [look(10), look(20)], "the last line was cut off");

        WatchLog::open(&path, 10).unwrap().append(&look(20)).unwrap();
        assert_eq!(read_watch(&path).unwrap(), [look(10), look(20)]);
    }
}
