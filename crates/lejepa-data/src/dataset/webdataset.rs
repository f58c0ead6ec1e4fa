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

use super::array_labels::believed;
use super::labels::Labels;
use super::mapped_file::map;
use super::{Dataset, Split, shards};
use crate::{Error, Result, Stored, encoded_file, regular_file};

/// Image files inside tar files, found once and read when they are asked for.
#[derive(Debug)]
pub(super) struct WebDataset {
    files: Vec<PathBuf>,
    samples: Vec<Sample>,
    labels: Labels,
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
}

impl WebDataset {
    /// Whether a path is a tar file, or a folder of tar files and nothing else below it. A gzipped tar
    /// file is recognised so that its error can say what to do.
    pub(super) fn is_at(path: &Path) -> bool {
        if path.is_dir() {
            return shards::are_at(path, ENDING) && !has_folders(path);
        }
        shards::are_at(path, ENDING) || is_packed(path)
    }

    /// Walks the headers of a split's tar files.
    pub(super) fn open(path: &Path, split: Split) -> Result<Self> {
        if is_packed(path) {
            return Err(invalid(path, "it is compressed, unpack it with gunzip first"));
        }
        let folder = if path.is_dir() { path } else { path.parent().unwrap_or(Path::new("")) };
        let files = shards::of_split(path, ENDING, split)?;
        let shards = files.par_iter().enumerate().map(|(number, file)| Shard::open(number, file));
        let shards = shards.collect::<Result<Vec<_>>>()?;

        let without_image: usize = shards.iter().map(|shard| shard.without_image).sum();
        let samples: Vec<Sample> = shards.into_iter().flat_map(|shard| shard.samples).collect();
        if samples.is_empty() {
            return Err(Error::NoImages { path: path.into() });
        }
        let values = samples.iter().map(|sample| sample.label).collect();
        let class_names = read_class_names(folder)?;
        let labels = Labels::new(values, class_names, |index| samples[index].name(&files))?;
        let mut notes: Vec<String> = labels.note().into_iter().chain(shards::missing(path, &files)).collect();
        if without_image > 0 {
            notes.push(format!("{without_image} samples without an image are left out"));
        }
        Ok(Self { files, samples, labels, notes })
    }
}

impl Dataset for WebDataset {
    fn len(&self) -> usize {
        self.samples.len()
    }

    fn stored(&self, index: usize) -> Result<Stored> {
        encoded_file::copied(&self.samples[index].image).map(Stored::File)
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

    fn files(&self) -> Vec<PathBuf> {
        self.files.clone()
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
        let mut shard = Self::default();
        let mut open = OpenSample::default();
        let mut close = |sample: OpenSample| match sample.image {
            Some((entry, image)) => {
                shard.samples.push(Sample { shard: number, entry, image, label: sample.label })
            }
            None if sample.key.is_empty() => {}
            None => shard.without_image += 1,
        };
        if !has_end(&file) {
            return Err(invalid(path, "it is cut off: the two empty blocks of its end are missing"));
        }
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
                    let length = encoded_file::check_length(content.len() as u64);
                    length.map_err(|error| damaged_entry(error.to_string()))?;
                    open.image = Some((name, content));
                }
                _ => {}
            }
        }
        close(open);
        Ok(shard)
    }
}

/// Whether an archive ends as it should, with two blocks of zeros.
fn has_end(file: &[u8]) -> bool {
    const BLOCK: usize = 512;
    let end = file.len().checked_sub(2 * BLOCK).map(|start| &file[start..]);
    file.len().is_multiple_of(BLOCK) && end.is_some_and(|end| end.iter().all(|&byte| byte == 0))
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
    believed(label.ok_or("expected a label in digits")?).map(|label| label as u32)
}

fn read_json(content: &Bytes) -> std::result::Result<Option<u32>, String> {
    if content.len() > LABEL_BYTES {
        return Ok(None);
    }
    let json: serde_json::Value = serde_json::from_slice(content).map_err(|error| error.to_string())?;
    match json.get("label") {
        None | Some(serde_json::Value::Null) => Ok(None),
        Some(label) => match label.as_number().and_then(serde_json::Number::as_i128) {
            Some(label) => believed(label).map(|label| Some(label as u32)),
            None => Err(format!("label {label} is no class number")),
        },
    }
}

/// One name per line, from a file beside the shards.
fn read_class_names(folder: &Path) -> Result<Vec<String>> {
    let Some(path) = CLASS_NAME_FILES.iter().map(|name| folder.join(name)).find(|path| path.is_file()) else {
        return Ok(Vec::new());
    };
    match regular_file::read_to_string(&path) {
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

#[cfg(test)]
mod tests {
    use super::*;

    const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/formats/webdataset");

    fn fixture(name: &str) -> PathBuf {
        Path::new(FIXTURES).join(name)
    }

    /// What `make_archives.py` wrote as image `number`.
    fn assert_is_image(data: &dyn Dataset, index: usize, number: usize) {
        let image = data.image(index).unwrap();
        assert_eq!((image.height(), image.width(), image.channels()), (2, 3, 1));
        let expected: Vec<u8> = (0..6).map(|place| (40 * number + place) as u8).collect();
        assert_eq!(image.pixels(), expected, "image {number}");
    }

    /// Entries, and the end of an archive behind them.
    fn open_bytes(bytes: &[u8]) -> Result<WebDataset> {
        open_as_it_is(&[bytes, &[0; 1024]].concat())
    }

    fn open_as_it_is(bytes: &[u8]) -> Result<WebDataset> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data.tar");
        std::fs::write(&path, bytes).unwrap();
        WebDataset::open(&path, Split::Train)
    }

    #[test]
    fn an_archive_without_its_end_is_cut_off() {
        let content = std::fs::read(fixture("shards/train-000000.tar")).unwrap();
        assert!(open_as_it_is(&content).is_ok());
        let used = content.iter().rposition(|&byte| byte != 0).unwrap() + 1;
        for length in [used, used.next_multiple_of(512), used.next_multiple_of(512) + 512, content.len() / 2]
        {
            let message = open_as_it_is(&content[..length]).unwrap_err().to_string();
            assert!(message.contains("cut off"), "{length} bytes: {message}");
        }
    }

    fn entry(kind: tar::EntryType, name: &str, content: &[u8]) -> Vec<u8> {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(kind);
        header.set_path(name).unwrap();
        header.set_size(content.len() as u64);
        header.as_gnu_mut().unwrap().set_real_size(content.len() as u64);
        header.set_cksum();
        let mut bytes = [header.as_bytes(), content].concat();
        bytes.resize(bytes.len().next_multiple_of(512), 0);
        bytes
    }

    #[test]
    fn a_member_of_holes_is_refused_by_its_length() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data.tar");
        let mut header = tar::Header::new_gnu();
        header.set_path("a.png").unwrap();
        header.set_size(1 << 36);
        header.set_cksum();
        std::fs::write(&path, header.as_bytes()).unwrap();
        std::fs::File::options().write(true).open(&path).unwrap().set_len((1 << 36) + 3 * 512).unwrap();
        let message = WebDataset::open(&path, Split::Train).unwrap_err().to_string();
        let said = "not a valid tar file (a.png: an image file must have at most 1073741824 bytes, got: 68719476736)";
        assert!(message.starts_with(said), "{message}");
    }

    #[test]
    fn shards_make_one_set_with_class_names() {
        let data = crate::open(&fixture("shards"), Split::Train).unwrap();
        assert_eq!((data.len(), data.class_names()), (3, &["cat", "dog", "fox"].map(String::from)[..]));
        for index in [2, 0, 1] {
            assert_is_image(data.as_ref(), index, index);
            assert_eq!(data.label(index), Some(index));
        }
        assert!(data.name(2).ends_with("train-000001.tar image 0002.PNG"), "{}", data.name(2));
        let validation = crate::open(&fixture("shards"), Split::Validation).unwrap();
        assert_is_image(validation.as_ref(), 0, 7);
        assert_eq!((validation.len(), validation.label(0)), (1, Some(1)));
    }

    #[test]
    fn what_is_no_sample_is_left_out_and_counted() {
        let data = crate::open(&fixture("mixed.tar"), Split::Train).unwrap();
        assert_eq!((data.len(), data.label(0), data.label(1)), (2, Some(0), None));
        assert_is_image(data.as_ref(), 0, 3);
        assert_is_image(data.as_ref(), 1, 6);
        assert_eq!(data.class_names(), ["4"], "without names there are the numbers that occur");
        let expected = [
            "1 of 2 images have no label",
            "1 samples without an image are left out",
            "of the class numbers up to 4, 1 occur",
        ];
        assert_eq!(data.notes(), expected);
        assert!(matches!(WebDataset::open(&fixture("mixed.tar"), Split::Test), Err(Error::NoSplit { .. })));
    }

    #[test]
    fn long_names_are_read() {
        for name in ["long-gnu.tar", "long-pax.tar"] {
            let data = crate::open(&fixture(name), Split::Train).unwrap();
            assert!(data.name(0).ends_with("xxx.png") && data.name(0).len() > 300, "{}", data.name(0));
            assert!(data.name(1).ends_with("é.png"), "{}", data.name(1));
            assert_is_image(data.as_ref(), 1, 2);
        }
    }

    #[test]
    fn compressed_shards_say_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("train-0.tar.gz");
        std::fs::write(&path, b"\x1f\x8b").unwrap();
        let message = crate::open(&path, Split::Train).err().unwrap().to_string();
        assert!(message.contains("gunzip first"), "{message}");
        let message = WebDataset::open(folder.path(), Split::Train).unwrap_err().to_string();
        assert!(message.contains("gunzip first"), "{message}");
    }

    #[test]
    fn a_folder_of_images_is_no_webdataset_because_of_a_tar_file() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::copy(fixture("mixed.tar"), folder.path().join("images.tar")).unwrap();
        assert!(WebDataset::is_at(folder.path()));
        std::fs::create_dir(folder.path().join("cats")).unwrap();
        assert!(!WebDataset::is_at(folder.path()));
    }

    #[test]
    fn damaged_shards_are_named_with_the_cause() {
        let good = std::fs::read(fixture("shards/train-000000.tar")).unwrap();
        for (length, problem) in [(0, "no images"), (300, "tar"), (530, "cut off")] {
            let message = open_bytes(&good[..length]).unwrap_err().to_string();
            assert!(message.contains(problem), "{message}");
        }
        let mut damaged = good.clone();
        damaged[3] = b'X';
        assert!(open_bytes(&damaged).unwrap_err().to_string().contains("checksum"));

        let mut huge = tar::Header::new_gnu();
        huge.set_path("1.png").unwrap();
        huge.set_size(u64::MAX >> 2);
        huge.set_cksum();
        assert!(open_bytes(huge.as_bytes()).unwrap_err().to_string().contains("longer than the file"));
    }

    #[test]
    fn labels_that_are_no_class_numbers_are_refused() {
        let regular = tar::EntryType::Regular;
        for (name, content) in [
            ("1.cls", "cat"),
            ("1.cls", "-1"),
            ("1.cls", ""),
            ("1.json", "{"),
            ("1.json", r#"{"label": "cat"}"#),
            ("1.json", r#"{"label": 0.5}"#),
        ] {
            let message = open_bytes(&entry(regular, name, content.as_bytes())).unwrap_err().to_string();
            assert!(message.contains(name), "{message}");
        }
        for (name, content) in
            [("9.cls", "4000000000"), ("9.cls", "99999999999999"), ("9.json", r#"{"label": 1000001}"#)]
        {
            let absurd = [entry(regular, "9.png", b"x"), entry(regular, name, content.as_bytes())].concat();
            let message = open_bytes(&absurd).unwrap_err().to_string();
            let expected = format!("{name}: expected labels from 0 to 1000000, got ");
            assert!(message.contains(&expected) && message.contains("data.tar"), "{message}");
        }
        let deep = entry(regular, "1.json", &b"[".repeat(100_000));
        assert!(open_bytes(&deep).is_err());
    }

    #[test]
    fn sparse_files_and_devices_are_skipped() {
        let parts = [tar::EntryType::Char, tar::EntryType::Symlink, tar::EntryType::GNUSparse]
            .map(|kind| entry(kind, "0.png", b""));
        let bytes = [parts.concat(), entry(tar::EntryType::Regular, "1.png", b"x")].concat();
        assert_eq!(open_bytes(&bytes).unwrap().len(), 1);
    }
}
