//! CIFAR-10 and CIFAR-100, as the official archives unpack: binary records, or Python pickles.
//!
//! ```text
//! CIFAR-10 record     label, 1024 red, 1024 green, 1024 blue
//! CIFAR-100 record    coarse label, fine label, 1024 red, 1024 green, 1024 blue
//! pickle              {"data": uint8[images, 3072], "labels" or "fine_labels": [...]}
//! ```

use std::io::Read;
use std::path::{Path, PathBuf};

use bytes::Bytes;

use super::labels::Labels;
use super::mapped_file::map;
use super::pickle::{Pickle, Value};
use super::{Dataset, Split};
use crate::{Error, Image, Result, Stored, regular_file};

/// Images of 32x32 pixels in mapped files.
#[derive(Debug)]
pub(super) struct Cifar {
    batches: Vec<Batch>,
    labels: Labels,
    notes: Vec<String>,
}

const SIDE: usize = 32;
const PLANE: usize = SIDE * SIDE;

/// One of the four official archives.
#[derive(Debug, PartialEq)]
struct Layout {
    folder: &'static str,
    train: &'static [&'static str],
    test: &'static str,
    class_names: &'static str,
    /// What a pickle calls the labels and the names of the classes; none for binary records.
    keys: Option<(&'static str, &'static str)>,
    classes: usize,
}

const LAYOUTS: [Layout; 4] = [
    Layout {
        folder: "cifar-10-batches-py",
        train: &["data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5"],
        test: "test_batch",
        class_names: "batches.meta",
        keys: Some(("labels", "label_names")),
        classes: 10,
    },
    Layout {
        folder: "cifar-10-batches-bin",
        train: &[
            "data_batch_1.bin",
            "data_batch_2.bin",
            "data_batch_3.bin",
            "data_batch_4.bin",
            "data_batch_5.bin",
        ],
        test: "test_batch.bin",
        class_names: "batches.meta.txt",
        keys: None,
        classes: 10,
    },
    Layout {
        folder: "cifar-100-python",
        train: &["train"],
        test: "test",
        class_names: "meta",
        keys: Some(("fine_labels", "fine_label_names")),
        classes: 100,
    },
    Layout {
        folder: "cifar-100-binary",
        train: &["train.bin"],
        test: "test.bin",
        class_names: "fine_label_names.txt",
        keys: None,
        classes: 100,
    },
];

/// The images of one file.
#[derive(Debug)]
struct Batch {
    file: PathBuf,
    bytes: Bytes,
    /// From one image to the next.
    stride: usize,
    /// Bytes of labels before the planes of an image.
    header: usize,
    labels: Vec<Option<u32>>,
}

impl Cifar {
    /// Whether a folder is an unpacked archive, or has one in it.
    pub(super) fn is_at(path: &Path) -> bool {
        !find(path).is_empty()
    }

    /// Maps the files of a split. Training batches that are absent are named in the notes.
    pub(super) fn open(path: &Path, split: Split) -> Result<Self> {
        let (folder, layout) = match &find(path)[..] {
            [] => return Err(Error::UnknownFormat { path: path.into() }),
            // The same images, as pickles and as records.
            [(folder, layout), others @ ..]
                if others.iter().all(|(_, other)| other.classes == layout.classes) =>
            {
                (folder.clone(), *layout)
            }
            _ => return Err(invalid(path, "it holds CIFAR-10 and CIFAR-100, give the folder of one")),
        };
        let names = match split {
            Split::Train => layout.train,
            Split::Test => &[layout.test],
            Split::Validation | Split::Unlabelled => &[],
        };
        let (files, absent): (Vec<_>, Vec<_>) =
            names.iter().map(|name| folder.join(name)).partition(|file| file.is_file());
        if files.is_empty() {
            return Err(Error::NoSplit { split: split.name(), path: folder });
        }
        let batches = files.into_iter().map(|file| layout.read(file)).collect::<Result<Vec<_>>>()?;
        let class_names = layout.read_class_names(&folder)?;
        let values = batches.iter().flat_map(|batch| batch.labels.iter().copied()).collect();
        let labels = Labels::new(values, class_names, |index| name(&batches, index))?;
        let notes = match &absent[..] {
            [] => Vec::new(),
            [first, ..] => vec![format!(
                "{} of {} training batches are not there, such as {}",
                absent.len(),
                names.len(),
                first.display()
            )],
        };
        Ok(Self { batches, labels, notes })
    }
}

impl Dataset for Cifar {
    fn len(&self) -> usize {
        self.batches.iter().map(|batch| batch.labels.len()).sum()
    }

    fn stored(&self, index: usize) -> Result<Stored> {
        let (batch, index) = locate(&self.batches, index);
        let start = index * batch.stride + batch.header;
        let [red, green, blue] = [0, 1, 2].map(|channel| &batch.bytes[start + channel * PLANE..][..PLANE]);
        let pixels = red.iter().zip(green).zip(blue).flat_map(|((&red, &green), &blue)| [red, green, blue]);
        Ok(Stored::Pixels(Image::from_pixels(SIDE, SIDE, 3, pixels.collect())?))
    }

    fn name(&self, index: usize) -> String {
        name(&self.batches, index)
    }

    fn label(&self, index: usize) -> Option<usize> {
        self.labels.get(index)
    }

    fn class_names(&self) -> &[String] {
        self.labels.class_names()
    }

    fn files(&self) -> Vec<PathBuf> {
        self.batches.iter().map(|batch| batch.file.clone()).collect()
    }

    fn notes(&self) -> &[String] {
        &self.notes
    }
}

impl Layout {
    fn is_in(&self, folder: &Path) -> bool {
        let has_images = self.train.iter().chain([&self.test]).any(|name| folder.join(name).is_file());
        // A file `train` or `test.bin` could be anything, were it not for the names beside it.
        let names = folder.join(self.class_names);
        has_images && (self.classes == 10 || names.is_file() && (self.keys.is_none() || is_pickle(&names)))
    }

    fn read(&self, file: PathBuf) -> Result<Batch> {
        let bytes = map(&file)?;
        let Some((labels_key, _)) = self.keys else { return self.read_records(file, bytes) };
        let (images, labels) = unpickle(&bytes, labels_key).map_err(|problem| invalid(&file, problem))?;
        Ok(Batch { file, bytes: images, stride: 3 * PLANE, header: 0, labels })
    }

    fn read_records(&self, file: PathBuf, bytes: Bytes) -> Result<Batch> {
        let header = if self.classes == 10 { 1 } else { 2 };
        let stride = header + 3 * PLANE;
        if bytes.is_empty() || !bytes.len().is_multiple_of(stride) {
            let problem = format!("{} bytes are not whole records of {stride}", bytes.len());
            return Err(invalid(&file, problem));
        }
        // The last byte before the planes is the fine label.
        let labels = bytes.chunks_exact(stride).map(|record| Some(u32::from(record[header - 1]))).collect();
        Ok(Batch { file, bytes, stride, header, labels })
    }

    /// One name per class; numbers if the file with the names is absent.
    fn read_class_names(&self, folder: &Path) -> Result<Vec<String>> {
        let file = folder.join(self.class_names);
        if !file.is_file() {
            return Ok((0..self.classes).map(|class| class.to_string()).collect());
        }
        let bytes = map(&file)?;
        let names: Vec<String> = match self.keys {
            Some((_, key)) => {
                let pickle = Pickle::parse(&bytes).map_err(|problem| invalid(&file, problem))?;
                let items = pickle.entry(key).and_then(|names| pickle.items(names)).unwrap_or_default();
                let texts = items.iter().filter_map(|&item| pickle.text(item));
                texts.map(|text| String::from_utf8_lossy(text).into_owned()).collect()
            }
            None => {
                let text = String::from_utf8_lossy(&bytes);
                text.lines().map(str::trim).filter(|line| !line.is_empty()).map(String::from).collect()
            }
        };
        if names.len() != self.classes {
            return Err(invalid(&file, format!("{} class names, expected {}", names.len(), self.classes)));
        }
        Ok(names)
    }
}

/// The images and labels of a pickled batch.
fn unpickle(bytes: &Bytes, labels_key: &str) -> std::result::Result<(Bytes, Vec<Option<u32>>), String> {
    let pickle = Pickle::parse(bytes)?;
    let images = pickle.entry("data").and_then(|data| pickle.array(data)).ok_or("no array `data`")?;
    let [count, width] = images.shape[..] else {
        return Err(format!("`data` has {} axes, expected 2", images.shape.len()));
    };
    if count == 0 || width != 3 * PLANE {
        return Err(format!("`data` is {count}x{width}, expected images of {} values", 3 * PLANE));
    }
    let labels = pickle.entry(labels_key).and_then(|labels| pickle.items(labels));
    let labels = labels.ok_or_else(|| format!("no list `{labels_key}`"))?;
    if labels.len() != count {
        return Err(format!("{} labels for {count} images", labels.len()));
    }
    let labels = labels.iter().map(|label| match label {
        Value::Int(label) => u32::try_from(*label).map(Some).map_err(|_| format!("label {label}")),
        _ => Err("a label that is no number".into()),
    });
    Ok((images.values.clone(), labels.collect::<std::result::Result<_, String>>()?))
}

/// The unpacked archives at or in a folder.
fn find(path: &Path) -> Vec<(PathBuf, &'static Layout)> {
    let here = LAYOUTS.iter().map(|layout| (path.to_path_buf(), layout));
    let below = LAYOUTS.iter().map(|layout| (path.join(layout.folder), layout));
    here.chain(below).filter(|(folder, layout)| layout.is_in(folder)).collect()
}

fn is_pickle(file: &Path) -> bool {
    let mut first = [0; 2];
    regular_file::open(file).and_then(|mut file| file.read_exact(&mut first)).is_ok()
        && first[0] == 0x80
        && (2..=5).contains(&first[1])
}

/// The batch of an image, and its place there.
fn locate(batches: &[Batch], mut index: usize) -> (&Batch, usize) {
    let last = batches.len() - 1;
    for batch in &batches[..last] {
        if index < batch.labels.len() {
            return (batch, index);
        }
        index -= batch.labels.len();
    }
    (&batches[last], index)
}

fn name(batches: &[Batch], index: usize) -> String {
    let (batch, index) = locate(batches, index);
    format!("{} image {index}", batch.file.display())
}

fn invalid(path: &Path, problem: impl Into<String>) -> Error {
    Error::Invalid { format: "CIFAR", path: path.into(), problem: problem.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/formats/cifar");

    /// What `make_archives.py` wrote as image `number`, at a channel and place.
    fn value(number: usize, channel: usize, place: usize) -> u8 {
        ((50 * number + 100 * channel + place) % 251) as u8
    }

    fn assert_is_image(data: &dyn Dataset, index: usize, number: usize) {
        let image = data.image(index).unwrap();
        assert_eq!((image.height(), image.width(), image.channels()), (32, 32, 3));
        for (at, &pixel) in image.pixels().iter().enumerate() {
            assert_eq!(pixel, value(number, at % 3, at / 3), "image {number}, value {at}");
        }
    }

    fn record(labels: &[u8], number: usize) -> Vec<u8> {
        let planes = (0..3).flat_map(|channel| (0..PLANE).map(move |place| value(number, channel, place)));
        labels.iter().copied().chain(planes).collect()
    }

    fn folder(files: &[(&str, &[u8])]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, bytes) in files {
            std::fs::write(folder.path().join(name), bytes).unwrap();
        }
        folder
    }

    fn error_of(files: &[(&str, &[u8])]) -> String {
        Cifar::open(folder(files).path(), Split::Train).unwrap_err().to_string()
    }

    #[test]
    fn pickles_of_python_2_are_read() {
        let path = Path::new(FIXTURES).join("cifar-10-batches-py");
        let train = crate::open(&path, Split::Train).unwrap();
        assert_eq!(train.len(), 4);
        for index in 0..4 {
            assert_is_image(train.as_ref(), index, index);
        }
        assert_eq!((0..4).map(|index| train.label(index).unwrap()).collect::<Vec<_>>(), [1, 9, 2, 9]);
        assert_eq!((train.class_names().len(), train.class_names()[9].as_str()), (10, "truck"));
        assert!(train.name(3).ends_with("data_batch_2 image 1"));
        assert!(train.notes()[0].starts_with("3 of 5 training batches are not there"), "{:?}", train.notes());

        let test = crate::open(&path, Split::Test).unwrap();
        assert_is_image(test.as_ref(), 0, 7);
        assert_eq!((test.len(), test.label(0), test.notes().len()), (1, Some(6), 0));
    }

    #[test]
    fn pickles_of_python_3_are_read_in_every_protocol() {
        let data = crate::open(&Path::new(FIXTURES).join("python3"), Split::Train).unwrap();
        assert_eq!(data.len(), 4);
        for (index, protocol) in (2..=5).enumerate() {
            assert_is_image(data.as_ref(), index, protocol);
            assert_eq!(data.label(index), Some(protocol));
        }
    }

    #[test]
    fn cifar_100_has_fine_labels() {
        let data = crate::open(&Path::new(FIXTURES).join("cifar-100-python"), Split::Train).unwrap();
        assert_is_image(data.as_ref(), 1, 1);
        assert_eq!((data.len(), data.label(0), data.class_names().len()), (2, Some(99), 100));
        assert_eq!(data.class_names()[99], "class 99");

        let names = (0..100).map(|class| format!("class {class}\n")).collect::<String>();
        let records = [record(&[1, 99], 5), record(&[2, 0], 6)].concat();
        let files = [("train.bin", &records[..]), ("fine_label_names.txt", names.as_bytes())];
        let data = crate::open(folder(&files).path(), Split::Train).unwrap();
        assert_is_image(data.as_ref(), 1, 6);
        assert_eq!((data.label(0), data.label(1)), (Some(99), Some(0)));
    }

    #[test]
    fn binary_records_are_read_without_names_too() {
        let first = [record(&[3], 0), record(&[9], 1)].concat();
        let files = [("data_batch_1.bin", &first[..]), ("data_batch_4.bin", &record(&[4], 2))];
        let folder = folder(&files);
        let data = crate::open(folder.path(), Split::Train).unwrap();
        assert_eq!((data.len(), data.label(2), data.class_names().len()), (3, Some(4), 10));
        assert_is_image(data.as_ref(), 2, 2);
        assert!(data.notes()[0].contains("data_batch_2.bin"), "{:?}", data.notes());
        for split in [Split::Test, Split::Validation] {
            assert!(matches!(Cifar::open(folder.path(), split), Err(Error::NoSplit { .. })));
        }
    }

    #[test]
    fn the_parent_of_one_archive_will_do() {
        let parent = tempfile::tempdir().unwrap();
        let inner = parent.path().join("cifar-10-batches-bin");
        std::fs::create_dir(&inner).unwrap();
        std::fs::write(inner.join("test_batch.bin"), record(&[1], 0)).unwrap();
        assert_eq!(crate::open(parent.path(), Split::Test).unwrap().len(), 1);
        let message = Cifar::open(Path::new(FIXTURES), Split::Train).unwrap_err().to_string();
        assert!(message.contains("CIFAR-10 and CIFAR-100"), "{message}");
    }

    #[test]
    fn damaged_records_are_named_with_the_cause() {
        let mut long = record(&[1], 0);
        long.push(0);
        assert!(
            error_of(&[("data_batch_1.bin", &long)]).contains("3074 bytes are not whole records of 3073")
        );
        assert!(error_of(&[("data_batch_1.bin", b"")]).contains("0 bytes"));
        let message = error_of(&[("data_batch_1.bin", &record(&[10], 0))]);
        assert!(message.contains("label 10 of") && message.contains("10 classes"), "{message}");
        let files = [("data_batch_1.bin", &record(&[1], 0)[..]), ("batches.meta.txt", b"cat\ndog\n")];
        assert!(error_of(&files).contains("2 class names, expected 10"));
    }

    #[test]
    fn damaged_pickles_are_named_with_the_cause() {
        let good = std::fs::read(Path::new(FIXTURES).join("python3/data_batch_3")).unwrap();
        assert!(error_of(&[("data_batch_1", &good[..good.len() / 2])]).contains("ends too early"));
        assert!(error_of(&[("data_batch_1", b"\x1f\x8bnot a pickle")]).contains("not a pickle"));
        assert!(error_of(&[("data_batch_1", b"")]).contains("ends too early"));
        assert!(error_of(&[("data_batch_1", b"\x80\x02}.")]).contains("no array `data`"));

        let replace = |from: &[u8], to: &[u8]| {
            let at = good.windows(from.len()).position(|window| window == from).unwrap();
            [&good[..at], to, &good[at + from.len()..]].concat()
        };
        // 3072 columns, little-endian.
        let message = error_of(&[("data_batch_1", &replace(b"M\0\x0c", b"M\0\x0d"))]);
        assert!(message.contains("shape [1, 3328] with 3072 values"), "{message}");
        let message = error_of(&[("data_batch_1", &replace(b"]q\x02K\x03a", b"]q\x02K\x0aa"))]);
        assert!(message.contains("label 10"), "{message}");
        let message = error_of(&[("data_batch_1", &replace(b"]q\x02K\x03a", b"]q\x02"))]);
        assert!(message.contains("0 labels for 1 images"), "{message}");
        let message = error_of(&[("data_batch_1", &replace(b"numpy\ndtype", b"posix\nsystem"))]);
        assert!(message.contains("refuses to run code: posix.system"), "{message}");
        let message = error_of(&[("data_batch_1", &replace(b"u1", b"f8"))]);
        assert!(message.contains("array of f8"), "{message}");
    }
}
