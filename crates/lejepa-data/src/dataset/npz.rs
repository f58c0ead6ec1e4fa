//! `.npz` archives of numpy, with the names that MedMNIST and Keras use, or one pair of arrays.
//!
//! ```text
//! train_images train_labels val_images val_labels test_images test_labels    MedMNIST
//! x_train y_train x_test y_test                                              Keras
//! images labels | x y | arr_0 arr_1                                          a training split
//! ```
//!
//! Stored arrays are mapped; compressed ones are decompressed into memory when a split is opened. The checksums of
//! both are compared.

use std::io::{Cursor, Read};
use std::path::Path;

use bytes::Bytes;
use zip::{CompressionMethod, ZipArchive};

use super::image_array::FoundArray;
use super::npy::array_names;
use super::npy_array::NpyArray;
use super::npy_header::{self, NpyHeader};
use super::unpack_limit::UnpackLimit;
use super::{ImageArray, ReadOptions, Split, checksum, mapped_file};
use crate::{Error, Result, regular_file};

/// Opens `.npz` archives.
#[derive(Debug)]
pub(super) struct Npz;

impl Npz {
    /// Whether the path is a zip archive whose first member is an array.
    pub(super) fn is_at(path: &Path) -> bool {
        first_member(path).is_some_and(|name| name.ends_with(b".npy"))
    }

    /// Reads the arrays of a split. Named arrays are a training split.
    pub(super) fn open(path: &Path, split: Split, options: &ReadOptions) -> Result<ImageArray> {
        let mut archive = Archive::open(path, options.unpack_limit())?;
        let (images, labels) = archive.choose(split, options)?;
        let array = archive.array(&images)?;
        let (shape, source) = array.images().map_err(|problem| archive.invalid_member(&images, problem))?;
        let labels_name = labels;
        let labels = match &labels_name {
            Some(name) => {
                let array = archive.array(name)?;
                let labels = array.labels(shape.count);
                Some(labels.map_err(|problem| archive.invalid_member(name, problem))?)
            }
            None => None,
        };
        let path = path.into();
        FoundArray { path, name: images, shape, source, labels, labels_name, notes: Vec::new() }.whole()
    }
}

/// The name of a zip archive's first member.
fn first_member(path: &Path) -> Option<Vec<u8>> {
    let mut header = [0; 30];
    let mut file = regular_file::open(path).ok()?;
    file.read_exact(&mut header).ok().filter(|()| header.starts_with(b"PK\x03\x04"))?;
    let mut name = vec![0; usize::from(u16::from_le_bytes([header[26], header[27]]))];
    file.read_exact(&mut name).ok().map(|()| name)
}

struct Archive<'a> {
    path: &'a Path,
    bytes: Bytes,
    zip: ZipArchive<Cursor<Bytes>>,
    limit: UnpackLimit,
}

impl<'a> Archive<'a> {
    fn open(path: &'a Path, limit: UnpackLimit) -> Result<Self> {
        let bytes = mapped_file::map(path)?;
        let zip =
            ZipArchive::new(Cursor::new(bytes.clone())).map_err(|error| invalid(path, error.to_string()))?;
        Ok(Self { path, bytes, zip, limit })
    }

    /// The names of the images and labels to read.
    fn choose(&self, split: Split, options: &ReadOptions) -> Result<(String, Option<String>)> {
        let no_split = || Error::NoSplit { split: split.name(), path: self.path.into() };
        let mut present = array_names(split).iter().filter(|(images, _labels)| self.has(images));
        let images = match &options.images {
            Some(_) if split != Split::Train => return Err(no_split()),
            Some(name) => name.clone(),
            None => match present.next() {
                Some((images, _labels)) => images.to_string(),
                None if self.has_known_images() => return Err(no_split()),
                None => return Err(self.absent("images")),
            },
        };
        let labels = options.labels.clone().or_else(|| {
            let mut pairs = Split::ALL.iter().flat_map(|&split| array_names(split));
            let known = pairs.find(|(known, _labels)| *known == images)?.1;
            self.has(known).then(|| known.to_string())
        });
        Ok((images, labels))
    }

    fn has(&self, name: &str) -> bool {
        self.zip.index_for_name(&format!("{name}.npy")).is_some()
    }

    fn has_known_images(&self) -> bool {
        let mut names = Split::ALL.iter().flat_map(|&split| array_names(split));
        names.any(|(images, _labels)| self.has(images))
    }

    fn array(&mut self, name: &str) -> Result<NpyArray> {
        let index = self.zip.index_for_name(&format!("{name}.npy")).ok_or_else(|| self.absent(name))?;
        let bytes = self.member(index).map_err(|problem| self.invalid_member(name, problem))?;
        NpyArray::new(bytes).map_err(|problem| self.invalid_member(name, problem))
    }

    /// Finds or decompresses a member; the error says what is wrong with it.
    fn member(&mut self, index: usize) -> std::result::Result<Bytes, String> {
        let mut member = self.zip.by_index(index).map_err(|error| error.to_string())?;
        if member.compression() == CompressionMethod::Stored {
            let start = member.data_start().and_then(|start| usize::try_from(start).ok());
            let place = start.zip(usize::try_from(member.size()).ok());
            let end = place.and_then(|(start, length)| start.checked_add(length));
            let Some((start, end)) = start.zip(end).filter(|(_, end)| *end <= self.bytes.len()) else {
                return Err("it lies outside the file".into());
            };
            let bytes = self.bytes.slice(start..end);
            checksum::check(&bytes, member.crc32())?;
            return Ok(bytes);
        }
        let mut bytes = Vec::new();
        let mut read = |limit: u64, bytes: &mut Vec<u8>| {
            (&mut member).take(limit).read_to_end(bytes).map_err(|error| error.to_string())
        };
        // Memory grows with what is there, and only as far as the header of the array says.
        read(npy_header::LONGEST as u64, &mut bytes)?;
        let expected = NpyHeader::parse(&bytes)?.file_length()?;
        self.limit.check("it", expected as u64)?;
        let missing = expected.saturating_sub(bytes.len()) as u64;
        read(missing.saturating_add(1), &mut bytes)?;
        Ok(Bytes::from(bytes))
    }

    fn absent(&self, name: &str) -> Error {
        const LISTED: usize = 20;
        let mut names: Vec<_> =
            self.zip.file_names().flatten().take(LISTED).map(|name| name.replace(".npy", "")).collect();
        if self.zip.len() > LISTED {
            names.push("...".into());
        }
        invalid(self.path, format!("no array {name}, but: {}", names.join(", ")))
    }

    fn invalid_member(&self, name: &str, problem: String) -> Error {
        invalid(self.path, format!("{name}: {problem}"))
    }
}

fn invalid(path: &Path, problem: String) -> Error {
    Error::Invalid { format: "npz", path: path.into(), problem }
}

#[cfg(test)]
mod tests {
    use super::super::array_fixtures::{assert_holds, fixture, names, open_with, problem_with, written};
    use super::*;

    fn problem(images: &str, labels: Option<&str>) -> String {
        problem_with(&fixture("npz/named.npz"), names(Some(images), labels))
    }

    /// Opens every split of a changed archive and reads every image.
    fn read_all(bytes: &[u8]) -> Result<()> {
        let (_folder, path) = written("changed.npz", bytes);
        for split in [Split::Train, Split::Test] {
            let dataset = Npz::open(&path, split, &ReadOptions::default())?;
            use crate::Dataset;
            (0..dataset.len()).try_for_each(|index| dataset.image(index).map(drop))?;
        }
        Ok(())
    }

    #[test]
    fn medmnist_and_keras_have_their_splits() {
        let open = |name: &str, split| crate::open(&fixture(name), split).unwrap();
        assert_holds(&*open("npz/medmnist.npz", Split::Train), 0, 3, &[0, 2, 1, 2, 0]);
        assert_holds(&*open("npz/medmnist.npz", Split::Validation), 5, 3, &[1, 1]);
        assert_holds(&*open("npz/medmnist.npz", Split::Test), 7, 3, &[2, 0, 1]);
        assert_holds(&*open("npz/keras.npz", Split::Train), 0, 1, &[0, 2, 1, 2, 0]);
        assert_holds(&*open("npz/keras.npz", Split::Test), 5, 1, &[0, 2]);
        assert_holds(&*open("npz/positional.npz", Split::Train), 0, 3, &[0, 2, 1, 2, 0]);
        let train = open("npz/keras.npz", Split::Train);
        assert!(train.name(2).ends_with("keras.npz x_train image 2"), "{}", train.name(2));
    }

    #[test]
    fn options_name_arrays() {
        let options = names(Some("pictures"), Some("classes"));
        let named = open_with(&fixture("npz/named.npz"), options.clone()).unwrap();
        assert_holds(&*named, 0, 3, &[0, 2, 1, 2, 0]);
        let unlabelled = open_with(&fixture("npz/named.npz"), names(Some("pictures"), None)).unwrap();
        assert_eq!(unlabelled.label(0), None);
        let test = open_with(&fixture("npz/medmnist.npz"), names(Some("test_images"), None)).unwrap();
        assert_holds(&*test, 7, 3, &[2, 0, 1]);
        let message = Npz::open(&fixture("npz/named.npz"), Split::Test, &options).unwrap_err().to_string();
        assert!(message.contains("no test split"), "{message}");
    }

    #[test]
    fn what_is_not_there_is_named_with_what_is() {
        let message = problem_with(&fixture("npz/named.npz"), names(None, None));
        assert!(message.contains("no array images, but: pictures, classes"), "{message}");
        assert!(problem("photos", None).contains("no array photos, but: pictures"));
        assert!(problem("pictures", Some("kinds")).contains("no array kinds"));
        let message = crate::open(&fixture("npz/keras.npz"), Split::Validation).err().unwrap().to_string();
        assert!(message.contains("no validation split"), "{message}");
        let fold = ReadOptions { fold: Some(2), ..Default::default() };
        assert!(problem_with(&fixture("npz/keras.npz"), fold).contains("`data.options.fold` must be absent"));
    }

    #[test]
    fn arrays_that_are_no_images_or_labels_are_named_with_the_cause() {
        assert!(problem("float", None).contains("float: images are float32, expected uint8"));
        assert!(problem("object", None).contains("object: images are Python objects"));
        assert!(problem("fortran", None).contains("Fortran order"));
        assert!(problem("several", None).contains("several: expected images of shape"));
        assert!(problem("pictures", Some("several")).contains("several: expected one label for each"));
        assert!(problem("pictures", Some("object")).contains("object: labels are Python objects"));
    }

    #[test]
    fn damaged_archives_are_errors() {
        for name in ["medmnist", "keras"] {
            let whole = std::fs::read(fixture(&format!("npz/{name}.npz"))).unwrap();
            read_all(&whole).unwrap();
            for length in (0..whole.len()).step_by(13) {
                assert!(read_all(&whole[..length]).is_err(), "{name} {length}");
            }
            // Names may change unnoticed; nothing may stop the program.
            for place in (0..whole.len()).step_by(7) {
                let mut bytes = whole.clone();
                bytes[place] ^= 0xff;
                let _ = read_all(&bytes);
            }
        }
    }

    #[test]
    fn one_wrong_byte_of_an_array_is_an_error_whether_it_is_compressed_or_not() {
        use std::io::Write;
        let images = std::fs::read(fixture("npy/pair/images.npy")).unwrap();
        for method in [CompressionMethod::Stored, CompressionMethod::Deflated] {
            let mut writer = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
            let options = zip::write::SimpleFileOptions::default().compression_method(method);
            writer.start_file("images.npy", options).unwrap();
            writer.write_all(&images).unwrap();
            let mut bytes = writer.finish().unwrap().into_inner();
            let (_folder, path) = written("whole.npz", &bytes);
            open_with(&path, names(None, None)).unwrap();
            // The last byte of the array is the one before the directory.
            let directory = bytes.windows(4).position(|bytes| bytes == b"PK\x01\x02").unwrap();
            bytes[directory - 2] ^= 1;
            let (_folder, path) = written("wrong.npz", &bytes);
            let message = problem_with(&path, names(None, None));
            assert!(message.contains("images: ") && message.contains("hecksum"), "{method}: {message}");
        }
    }

    #[test]
    fn a_few_bytes_do_not_become_more_than_the_limit() {
        use std::io::Write;
        let text = "{'descr': '|u1', 'fortran_order': False, 'shape': (2048, 32, 32), }\n";
        let header = [b"\x93NUMPY\x01\x00", &(text.len() as u16).to_le_bytes()[..], text.as_bytes()].concat();
        let mut writer = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
        let options =
            zip::write::SimpleFileOptions::default().compression_method(CompressionMethod::Deflated);
        writer.start_file("images.npy", options).unwrap();
        writer.write_all(&[header, vec![0; 2 << 20]].concat()).unwrap();
        let (_folder, path) = written("zeros.npz", writer.finish().unwrap().get_ref());
        let limited = |unpack_limit| ReadOptions { unpack_limit: Some(unpack_limit), ..Default::default() };
        assert_eq!(open_with(&path, limited(3)).unwrap().len(), 2048);
        let message = problem_with(&path, limited(1));
        assert!(
            message.contains("images: it asks for 2 MB of memory, more than the limit of 1 MB"),
            "{message}"
        );
    }

    #[test]
    fn a_stored_array_beyond_the_end_of_the_file_is_an_error() {
        let mut bytes = std::fs::read(fixture("npz/keras.npz")).unwrap();
        let directory = bytes.windows(4).position(|bytes| bytes == b"PK\x01\x02").unwrap();
        for size in [20, 24] {
            bytes[directory + size..][..4].copy_from_slice(&0x7fff_ffffu32.to_le_bytes());
        }
        let message = read_all(&bytes).unwrap_err().to_string();
        assert!(message.contains("outside the file"), "{message}");
    }

    #[test]
    fn an_array_that_is_longer_or_shorter_than_its_header_says_is_an_error() {
        use std::io::Write;
        let images = std::fs::read(fixture("npy/pair/images.npy")).unwrap();
        for length in [images.len() - 1, images.len() + 1, images.len() + 100_000] {
            for method in [CompressionMethod::Stored, CompressionMethod::Deflated] {
                let mut changed = images.clone();
                changed.resize(length, 0);
                let mut writer = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
                let options = zip::write::SimpleFileOptions::default().compression_method(method);
                writer.start_file("images.npy", options).unwrap();
                writer.write_all(&changed).unwrap();
                let (_folder, path) = written("changed.npz", writer.finish().unwrap().get_ref());
                let message = problem_with(&path, names(None, None));
                assert!(message.contains("expected 360 bytes"), "{message}");
            }
        }
    }
}
