//! WebDataset shards: tar files in which the files of one sample follow each other and share a name.
//!
//! ```text
//! train-000000.tar:  0001.jpg 0001.cls  0002.jpg 0002.cls ...      .cls: the label in digits
//!                    0001.png 0001.json ...                         .json: {"label": 3}
//! ```

use std::io::Cursor;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use rayon::prelude::*;
use tar::Archive;

use super::labels::Labels;
use super::mapped_file::map;
use super::{Dataset, Split, shards};
use crate::{Error, Result, Stored};

/// Image files inside tar files, found once and read when they are asked for.
#[derive(Debug)]
pub struct WebDataset {
    files: Vec<PathBuf>,
    samples: Vec<Sample>,
    labels: Labels,
    fingerprint: String,
    notes: Vec<String>,
}

const ENDING: &str = ".tar";
const PACKED_ENDINGS: [&str; 2] = [".tar.gz", ".tgz"];
const IMAGE_ENDINGS: [&str; 8] = ["jpg", "jpeg", "png", "webp", "bmp", "tif", "tiff", "gif"];
const CLASS_NAME_FILES: [&str; 2] = ["classnames.txt", "classes.txt"];
/// Longer label files are not labels.
const LABEL_BYTES: usize = 1 << 20;

#[derive(Debug)]
struct Sample {
    /// Which of the files.
    shard: usize,
    /// The image's name in there.
    entry: String,
    image: Bytes,
    label: Option<u32>,
}

/// What one tar file holds.
#[derive(Debug, Default)]
struct Shard {
    samples: Vec<Sample>,
    without_image: usize,
    length: usize,
}

impl WebDataset {
    /// Whether a path is a tar file, or a folder of tar files and nothing else below it. A gzipped tar
    /// file is recognised so that its error can say what to do.
    pub fn is_at(path: &Path) -> bool {
        if path.is_dir() {
            return shards::are_at(path, ENDING) && !has_folders(path);
        }
        shards::are_at(path, ENDING) || is_packed(path)
    }

    /// Walks the headers of a split's tar files.
    pub fn open(path: &Path, split: Split) -> Result<Self> {
        if is_packed(path) {
            return Err(invalid(path, "it is compressed, unpack it with gunzip first"));
        }
        let folder = if path.is_dir() { path } else { path.parent().unwrap_or(Path::new("")) };
        let files = shards::of_split(path, ENDING, split)?;
        let shards = files.par_iter().enumerate().map(|(number, file)| Shard::open(number, file));
        let shards = shards.collect::<Result<Vec<_>>>()?;

        let mut hasher = blake3::Hasher::new();
        for (file, shard) in files.iter().zip(&shards) {
            hasher.update(file.file_name().unwrap_or_default().as_encoded_bytes());
            hasher.update(&shard.length.to_le_bytes());
        }
        let without_image: usize = shards.iter().map(|shard| shard.without_image).sum();
        let samples: Vec<Sample> = shards.into_iter().flat_map(|shard| shard.samples).collect();
        if samples.is_empty() {
            return Err(Error::NoImages { path: path.into() });
        }
        let values = samples.iter().map(|sample| sample.label).collect();
        let class_names = read_class_names(folder)?;
        let labels = Labels::new(values, class_names, |index| samples[index].name(&files))?;
        labels.hash(&mut hasher);
        let fingerprint = hasher.finalize().to_hex()[..16].to_string();
        let mut notes: Vec<String> = labels.note().into_iter().collect();
        if without_image > 0 {
            notes.push(format!("{without_image} samples without an image are left out"));
        }
        Ok(Self { files, samples, labels, fingerprint, notes })
    }
}

impl Dataset for WebDataset {
    fn len(&self) -> usize {
        self.samples.len()
    }

    fn stored(&self, index: usize) -> Result<Stored> {
        Ok(Stored::File(self.samples[index].image.to_vec()))
    }

    fn name(&self, index: usize) -> String {
        self.samples[index].name(&self.files)
    }

    fn label(&self, index: usize) -> Option<usize> {
        self.labels.get(index)
    }

    fn class_names(&self) -> &[String] {
        self.labels.class_names()
    }

    /// Of the names and lengths of the tar files and all labels.
    fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    fn notes(&self) -> &[String] {
        &self.notes
    }
}

impl Sample {
    fn name(&self, files: &[PathBuf]) -> String {
        format!("{} image {}", files[self.shard].display(), self.entry)
    }
}

impl Shard {
    fn open(number: usize, path: &Path) -> Result<Self> {
        let file = map(path)?;
        let damaged = |error: std::io::Error| invalid(path, error.to_string());
        let mut shard = Self { length: file.len(), ..Self::default() };
        let mut open = OpenSample::default();
        let mut close = |sample: OpenSample| match sample.image {
            Some((entry, image)) => {
                shard.samples.push(Sample { shard: number, entry, image, label: sample.label })
            }
            None if sample.key.is_empty() => {}
            None => shard.without_image += 1,
        };
        let mut archive = Archive::new(Cursor::new(file.clone()));
        for entry in archive.entries_with_seek().map_err(damaged)? {
            let entry = entry.map_err(damaged)?;
            // Folders, links, devices and sparse files hold no image.
            if !entry.header().entry_type().is_file() {
                continue;
            }
            let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
            let damaged_entry = |problem: String| invalid(path, format!("{name}: {problem}"));
            let content = content(&file, entry.raw_file_position(), entry.size())
                .ok_or_else(|| damaged_entry("it is longer than the file".into()))?;
            let Some((key, ending)) = split_name(&name) else { continue };
            if key != open.key {
                close(std::mem::take(&mut open));
                open.key = key.into();
            }
            match ending.to_ascii_lowercase().as_str() {
                "cls" => open.label = Some(read_number(&content).map_err(damaged_entry)?),
                "json" => open.label = open.label.or(read_json(&content).map_err(damaged_entry)?),
                ending if IMAGE_ENDINGS.contains(&ending) && open.image.is_none() => {
                    open.image = Some((name, content));
                }
                _ => {}
            }
        }
        close(open);
        Ok(shard)
    }
}

/// A sample of which more files may follow.
#[derive(Default)]
struct OpenSample {
    key: String,
    image: Option<(String, Bytes)>,
    label: Option<u32>,
}

/// The bytes of an entry, if the file has them.
fn content(file: &Bytes, start: u64, length: u64) -> Option<Bytes> {
    let start = usize::try_from(start).ok()?;
    let end = start.checked_add(usize::try_from(length).ok()?)?;
    (end <= file.len()).then(|| file.slice(start..end))
}

/// The sample that a file belongs to and the file's ending: at the first dot of the base name.
fn split_name(path: &str) -> Option<(&str, &str)> {
    let base = path.rfind('/').map_or(0, |slash| slash + 1);
    let dot = base + path.get(base..)?.find('.')?;
    // `.DS_Store` and `._0001.jpg` are nobody's sample.
    (dot > base).then(|| (&path[..dot], &path[dot + 1..]))
}

fn read_number(content: &Bytes) -> std::result::Result<u32, String> {
    let text = content.get(..content.len().min(LABEL_BYTES)).and_then(|text| str::from_utf8(text).ok());
    let label = text.and_then(|text| text.trim().parse().ok());
    label.ok_or_else(|| "expected a label in digits".into())
}

fn read_json(content: &Bytes) -> std::result::Result<Option<u32>, String> {
    if content.len() > LABEL_BYTES {
        return Ok(None);
    }
    let json: serde_json::Value = serde_json::from_slice(content).map_err(|error| error.to_string())?;
    match json.get("label") {
        None | Some(serde_json::Value::Null) => Ok(None),
        Some(label) => match label.as_u64().and_then(|label| u32::try_from(label).ok()) {
            Some(label) => Ok(Some(label)),
            None => Err(format!("label {label} is no class number")),
        },
    }
}

/// One name per line, from a file beside the shards.
fn read_class_names(folder: &Path) -> Result<Vec<String>> {
    let Some(path) = CLASS_NAME_FILES.iter().map(|name| folder.join(name)).find(|path| path.is_file()) else {
        return Ok(Vec::new());
    };
    match std::fs::read_to_string(&path) {
        Ok(text) => {
            Ok(text.lines().map(str::trim).filter(|line| !line.is_empty()).map(String::from).collect())
        }
        Err(source) => Err(Error::Io { action: "read", path, source }),
    }
}

/// Tar files beside class folders are downloads that have been unpacked.
fn has_folders(path: &Path) -> bool {
    let is_hidden =
        |path: &PathBuf| path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
    std::fs::read_dir(path).is_ok_and(|entries| {
        entries.flatten().map(|entry| entry.path()).any(|path| !is_hidden(&path) && path.is_dir())
    })
}

fn is_packed(path: &Path) -> bool {
    let any_at = |path: &Path| PACKED_ENDINGS.iter().any(|ending| shards::are_at(path, ending));
    any_at(path) && !shards::are_at(path, ENDING)
}

fn invalid(path: &Path, problem: impl Into<String>) -> Error {
    Error::Invalid { format: "tar", path: path.into(), problem: problem.into() }
}
