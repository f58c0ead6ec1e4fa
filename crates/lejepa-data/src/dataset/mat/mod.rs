//! MATLAB 5 files, as `save` and `scipy.io.savemat` write them: as much as the label files of image
//! sets need.
//!
//! ```text
//! 116 bytes of text, 8 of offset, u16 version 0x0100, u16 "MI" in the writer's byte order
//! one element per variable: an array, or zlib data that holds one
//! ```

mod array;
mod element;

pub(super) use array::Array;

use std::io::Read;
use std::path::{Path, PathBuf};

use flate2::read::ZlibDecoder;

use crate::{Error, Result, regular_file};
use array::Header;
use element::{ByteOrder, COMPRESSED, Element, Elements, MATRIX};

/// What a parser returns: the problem as text, to which [`MatFile`] adds the file.
type Parsed<T> = std::result::Result<T, String>;

const HEADER_BYTES: usize = 128;

/// Most bytes of a file, and of a variable once it is unpacked: nine times the largest known label
/// file, so that a few bytes of zlib data cannot fill the memory.
const BYTE_LIMIT: u64 = 64 << 20;

/// The variables of a file; each is unpacked when it is asked for.
#[derive(Debug)]
pub(super) struct MatFile {
    path: PathBuf,
    bytes: Vec<u8>,
    order: ByteOrder,
}

impl MatFile {
    /// Reads a file and checks its header.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let failed = |source| Error::Io { action: "read", path: path.into(), source };
        let mut bytes = Vec::new();
        let file = regular_file::open(path).map_err(failed)?;
        file.take(BYTE_LIMIT + 1).read_to_end(&mut bytes).map_err(failed)?;
        Self::from_bytes(path, bytes)
    }

    fn from_bytes(path: &Path, bytes: Vec<u8>) -> Result<Self> {
        let order = byte_order(&bytes).map_err(|problem| invalid(path, problem))?;
        Ok(Self { path: path.into(), bytes, order })
    }

    /// Finds a variable and takes from it what the caller needs.
    pub(super) fn read<T>(&self, name: &str, take: impl FnOnce(Array) -> Parsed<T>) -> Result<T> {
        self.variable(name)
            .and_then(|found| found.ok_or_else(|| "it is not there".into()))
            .and_then(take)
            .map_err(|problem| self.invalid(format!("variable `{name}`: {problem}")))
    }

    /// An error that names this file.
    pub(super) fn invalid(&self, problem: String) -> Error {
        invalid(&self.path, problem)
    }

    fn variable(&self, name: &str) -> Parsed<Option<Array>> {
        let mut elements = Elements::new(self.bytes.get(HEADER_BYTES..).unwrap_or_default(), self.order);
        while let Some(element) = elements.next()? {
            let unpacked;
            let element = if element.kind == COMPRESSED {
                unpacked = unpack(element.data)?;
                Elements::new(&unpacked, self.order).required()?
            } else {
                element
            };
            if let Some(header) = named_array(element, self.order)?
                && header.name == name.as_bytes()
            {
                return header.array().map(Some);
            }
        }
        Ok(None)
    }
}

fn named_array(element: Element<'_>, order: ByteOrder) -> Parsed<Option<Header<'_>>> {
    if element.kind == MATRIX { Header::parse(element.data, order) } else { Ok(None) }
}

fn byte_order(bytes: &[u8]) -> Parsed<ByteOrder> {
    if bytes.len() as u64 > BYTE_LIMIT {
        return Err(format!("more than {BYTE_LIMIT} bytes"));
    }
    match bytes.get(HEADER_BYTES - 4..HEADER_BYTES) {
        Some([0, 2, b'I', b'M'] | [2, 0, b'M', b'I']) => {
            Err("it is in the HDF5 form of MATLAB 7.3: save it again with `-v7`".into())
        }
        Some([0, 1, b'I', b'M']) => Ok(ByteOrder::Little),
        Some([1, 0, b'M', b'I']) => Ok(ByteOrder::Big),
        Some(other) => Err(format!("expected version 1 and `MI` at the end of the header, got {other:?}")),
        None => Err("it ends too early".into()),
    }
}

fn unpack(data: &[u8]) -> Parsed<Vec<u8>> {
    let mut unpacked = Vec::new();
    ZlibDecoder::new(data)
        .take(BYTE_LIMIT + 1)
        .read_to_end(&mut unpacked)
        .map_err(|error| format!("damaged zlib data: {error}"))?;
    if unpacked.len() as u64 > BYTE_LIMIT {
        return Err(format!("it unpacks to more than {BYTE_LIMIT} bytes"));
    }
    Ok(unpacked)
}

fn invalid(path: &Path, problem: String) -> Error {
    Error::Invalid { format: "MATLAB", path: path.into(), problem }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::fixture;

    fn written(bytes: &[u8]) -> Result<MatFile> {
        MatFile::from_bytes(Path::new("labels.mat"), bytes.to_vec())
    }

    fn fixtures() -> [MatFile; 2] {
        ["mat/plain.mat", "mat/packed.mat"].map(|name| MatFile::open(&fixture::path(name)).unwrap())
    }

    #[test]
    fn numbers_of_every_class_are_read() {
        for file in fixtures() {
            for bits in ["8", "16", "32", "64"] {
                for class in ["int", "uint"] {
                    let numbers = file.read(&format!("{class}{bits}"), Array::whole_numbers).unwrap();
                    assert_eq!(numbers, [1, 2, 100]);
                }
            }
            assert_eq!(file.read("float64", Array::whole_numbers).unwrap(), [1, 2, 100]);
            assert_eq!(file.read("float32", Array::whole_numbers).unwrap(), [1, 2, 100]);
            assert_eq!(file.read("matrix", Array::whole_numbers).unwrap(), [1, 4, 2, 5, 3, 6]);
            assert_eq!(file.read("empty", Ok).unwrap(), Array::Numbers(vec![]));
            assert_eq!(file.read("negative", Ok).unwrap(), Array::Numbers(vec![-1.0, 3.0]));
        }
    }

    #[test]
    fn text_cells_and_structs_are_read() {
        for file in fixtures() {
            assert_eq!(file.read("text", Ok).unwrap(), Array::Text("hello".into()));
            assert_eq!(file.read("names", Array::texts).unwrap(), ["a", "Citroën", "日本"]);
            let structs = file.read("structs", Ok).unwrap();
            assert_eq!(structs.field("label").unwrap().whole_numbers().unwrap(), [5, 70_000]);
            assert_eq!(structs.field("name").unwrap().texts().unwrap(), ["x", "longer text"]);
        }
    }

    #[test]
    fn what_a_label_file_should_not_hold_is_refused_by_name() {
        for file in fixtures() {
            for (name, problem) in [
                ("absent", "it is not there"),
                ("negative", "whole numbers, got -1"),
                ("fraction", "whole numbers, got 0.5"),
                ("text", "expected numbers"),
                ("rows", "text of 2 rows"),
                ("names", "expected one number in each cell"),
                ("complex", "complex numbers"),
                ("deep", "nest more than 8 deep"),
            ] {
                let message = file.read(name, Array::whole_numbers).unwrap_err().to_string();
                let expected = format!("variable `{name}`: ");
                assert!(message.contains(&expected) && message.contains(problem), "{message}");
            }
            let message = file.read("mixed", Array::texts).unwrap_err().to_string();
            assert!(message.contains("expected cells of text"), "{message}");
            let message = file.read("structs", |structs| structs.field("size")).unwrap_err().to_string();
            assert!(message.contains("no field `size`"), "{message}");
        }
    }

    #[test]
    fn big_endian_files_are_read() {
        // No writer makes them any more: one array of two uint16, and the name as a small element.
        let mut bytes = b"MATLAB 5.0 MAT-file".to_vec();
        bytes.resize(124, b' ');
        bytes.extend([1, 0, b'M', b'I']);
        let words = [14u32, 48, 6, 8, 11, 0, 5, 8, 1, 2, 0x0002_0001];
        bytes.extend(words.iter().flat_map(|word| word.to_be_bytes()));
        bytes.extend(b"ab\0\0");
        bytes.extend([0, 4, 0, 4, 1, 2, 3, 4]);
        let file = written(&bytes).unwrap();
        assert_eq!(file.read("ab", Array::whole_numbers).unwrap(), [0x0102, 0x0304]);
    }

    #[test]
    fn files_of_another_kind_are_named_with_the_cause() {
        let bytes = std::fs::read(fixture::path("mat/plain.mat")).unwrap();
        let mut newer = bytes.clone();
        newer[125] = 2;
        assert!(written(&newer).unwrap_err().to_string().contains("HDF5 form of MATLAB 7.3"));
        let mut other = bytes.clone();
        other[126] = b'X';
        let message = written(&other).unwrap_err().to_string();
        assert!(
            message.contains("`MI` at the end of the header") && message.contains("labels.mat"),
            "{message}"
        );
        assert!(written(&bytes[..100]).unwrap_err().to_string().contains("ends too early"));
        assert!(written(b"").unwrap_err().to_string().contains("ends too early"));
    }

    #[test]
    fn no_shortened_or_damaged_file_makes_the_reader_panic() {
        for name in ["mat/plain.mat", "mat/packed.mat"] {
            let bytes = std::fs::read(fixture::path(name)).unwrap();
            let file = written(&bytes[..bytes.len() - 1]).unwrap();
            assert!(file.read("absent", Ok).unwrap_err().to_string().contains("ends too early"));
            for length in 128..bytes.len() {
                assert!(written(&bytes[..length]).unwrap().read("deep", Ok).is_err());
            }
        }
        let bytes = std::fs::read(fixture::path("mat/plain.mat")).unwrap();
        for place in 128..bytes.len() {
            for value in [0, 0x7f, 0xff] {
                let mut damaged = bytes.clone();
                damaged[place] = value;
                let file = written(&damaged).unwrap();
                for name in ["structs", "names", "rows", "uint64"] {
                    let _ = file.read(name, Ok);
                }
            }
        }
    }

    #[test]
    fn a_little_zlib_data_cannot_fill_the_memory() {
        let mut bytes = std::fs::read(fixture::path("mat/plain.mat")).unwrap();
        bytes.truncate(HEADER_BYTES);
        let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
        std::io::copy(&mut std::io::repeat(0).take(BYTE_LIMIT + 1), &mut encoder).unwrap();
        let packed = encoder.finish().unwrap();
        bytes.extend(COMPRESSED.to_le_bytes());
        bytes.extend((packed.len() as u32).to_le_bytes());
        bytes.extend(packed);
        let message = written(&bytes).unwrap().read("labels", Ok).unwrap_err().to_string();
        assert!(message.contains("unpacks to more than"), "{message}");
    }
}
