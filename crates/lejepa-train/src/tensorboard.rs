//! TensorBoard event files: scalars by step.
//!
//! ```text
//! record = length (u64), masked CRC of length (u32), event, masked CRC of event (u32)    little-endian
//! masked = (crc rotated right by 15) + 0xa282ead8                                        of CRC-32C
//! ```
//!
//! An event is a protobuf message: `tensorflow.Event` with the few fields that scalars need.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use prost::Message;

use crate::Result;

/// The event file of one session of a run.
#[derive(Debug)]
pub struct TensorBoard {
    path: PathBuf,
    file: File,
}

impl TensorBoard {
    /// Starts a file of its own for a session that goes on at step `start`: what earlier files of the
    /// folder hold for this and later steps is then not shown any more.
    pub fn open(folder: &Path, start: u64) -> Result<Self> {
        std::fs::create_dir_all(folder).map_err(|error| failed(folder, error))?;
        // Of a session that was killed before its first checkpoint too.
        let has_earlier = std::fs::read_dir(folder).is_ok_and(|mut files| files.next().is_some());
        let (path, file) = create(folder)?;
        let mut board = Self { path, file };
        board.write(0, What::FileVersion(FILE_VERSION.into()))?;
        if has_earlier {
            board.write(start, What::SessionLog(SessionLog { status: SESSION_START }))?;
        }
        Ok(board)
    }

    /// Adds numbers with their names, and makes them visible to readers at once.
    pub fn scalars(&mut self, step: u64, values: &[(&str, f64)]) -> Result<()> {
        let value = |&(tag, value): &(&str, f64)| Value { tag: tag.into(), simple_value: Some(value as f32) };
        self.write(step, What::Summary(Summary { value: values.iter().map(value).collect() }))
    }

    fn write(&mut self, step: u64, what: What) -> Result<()> {
        let wall_time = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0., |time| time.as_secs_f64());
        let step = i64::try_from(step).unwrap_or(i64::MAX);
        let event = Event { wall_time, step, what: Some(what) }.encode_to_vec();
        let length = (event.len() as u64).to_le_bytes();
        // One write per record: a reader never sees half of one, unless the disk is full.
        let record =
            [&length[..], &masked_crc(&length).to_le_bytes(), &event, &masked_crc(&event).to_le_bytes()]
                .concat();
        self.file
            .write_all(&record)
            .and_then(|()| self.file.flush())
            .map_err(|error| failed(&self.path, error))
    }
}

/// What TensorBoard expects in the first record of a file.
const FILE_VERSION: &str = "brain.Event:2";
/// `tensorflow.SessionLog.START`
const SESSION_START: i32 = 1;

/// A file that was not there before: TensorBoard reads the files of a folder in the order of their names.
fn create(folder: &Path) -> Result<(PathBuf, File)> {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    let first = format!("events.out.tfevents.{seconds}.lejepa");
    let mut path = folder.join(&first);
    let mut sessions = 0;
    loop {
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Ok(file) => return Ok((path, file)),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                sessions += 1;
                path = folder.join(format!("{first}.{sessions}"));
            }
            Err(error) => return Err(failed(&path, error)),
        }
    }
}

fn masked_crc(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes).rotate_right(15).wrapping_add(0xa282_ead8)
}

fn failed(path: &Path, source: std::io::Error) -> crate::Error {
    lejepa_data::Error::Io { action: "write", path: path.into(), source }.into()
}

#[derive(Clone, PartialEq, Message)]
struct Event {
    #[prost(double, tag = "1")]
    wall_time: f64,
    #[prost(int64, tag = "2")]
    step: i64,
    #[prost(oneof = "What", tags = "3, 5, 7")]
    what: Option<What>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
enum What {
    #[prost(string, tag = "3")]
    FileVersion(String),
    #[prost(message, tag = "5")]
    Summary(Summary),
    #[prost(message, tag = "7")]
    SessionLog(SessionLog),
}

#[derive(Clone, PartialEq, Message)]
struct Summary {
    #[prost(message, repeated, tag = "1")]
    value: Vec<Value>,
}

#[derive(Clone, PartialEq, Message)]
struct Value {
    #[prost(string, tag = "1")]
    tag: String,
    /// Optional, as a member of a `oneof`: a value of 0 must be written too.
    #[prost(float, optional, tag = "2")]
    simple_value: Option<f32>,
}

#[derive(Clone, PartialEq, Message)]
struct SessionLog {
    #[prost(int32, tag = "1")]
    status: i32,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All events of a file, with every checksum checked.
    fn read(path: &Path) -> Vec<Event> {
        let bytes = std::fs::read(path).unwrap();
        let mut rest = &bytes[..];
        let mut events = Vec::new();
        let take = |rest: &mut &[u8], count: usize| {
            let (taken, left) = rest.split_at(count);
            *rest = left;
            taken.to_vec()
        };
        while !rest.is_empty() {
            let length = take(&mut rest, 8);
            assert_eq!(take(&mut rest, 4), masked_crc(&length).to_le_bytes());
            let event = take(&mut rest, u64::from_le_bytes(length.try_into().unwrap()) as usize);
            assert_eq!(take(&mut rest, 4), masked_crc(&event).to_le_bytes());
            events.push(Event::decode(&event[..]).unwrap());
        }
        events
    }

    fn files(folder: &Path) -> Vec<PathBuf> {
        let mut paths: Vec<_> =
            std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        paths
    }

    /// The first record that TensorFlow itself writes begins with these bytes: a length of 24 with its
    /// checksum.
    #[test]
    fn checksums_are_masked_as_tensorflow_does() {
        assert_eq!(masked_crc(&24u64.to_le_bytes()).to_le_bytes(), [0xa3, 0x7f, 0x4b, 0x22]);
    }

    #[test]
    fn every_session_has_a_file_that_says_where_it_starts() {
        let folder = tempfile::tempdir().unwrap();
        let runs = folder.path().join("tensorboard");
        let mut first = TensorBoard::open(&runs, 0).unwrap();
        first.scalars(0, &[("loss", 2.5), ("lr", 0.)]).unwrap();
        let mut second = TensorBoard::open(&runs, 7).unwrap();
        second.scalars(7, &[("loss", -1.25)]).unwrap();

        let paths = files(&runs);
        assert_eq!(paths.len(), 2);
        let whats = |path: &Path| read(path).into_iter().map(|event| (event.step, event.what.unwrap()));
        let version = (0, What::FileVersion("brain.Event:2".into()));
        let scalar = |tag: &str, value| Value { tag: tag.into(), simple_value: Some(value) };
        let summary = |value| What::Summary(Summary { value });
        let expected = [version.clone(), (0, summary(vec![scalar("loss", 2.5), scalar("lr", 0.)]))];
        assert_eq!(whats(&paths[0]).collect::<Vec<_>>(), expected);
        let start = What::SessionLog(SessionLog { status: 1 });
        let expected = [version.clone(), (7, start.clone()), (7, summary(vec![scalar("loss", -1.25)]))];
        assert_eq!(whats(&paths[1]).collect::<Vec<_>>(), expected);
        // A run that was killed before its first checkpoint begins again.
        TensorBoard::open(&runs, 0).unwrap();
        assert_eq!(whats(&files(&runs)[2]).collect::<Vec<_>>(), [version, (0, start)]);
        assert!(read(&paths[0])[0].wall_time > 1.7e9);
    }
}
