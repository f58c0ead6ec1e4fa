//! IDX files, the format of MNIST and its relatives, gzipped or not.
//!
//! ```text
//! 0 0 8 rank        magic: unsigned bytes, number of axes
//! u32 per axis      big-endian sizes
//! bytes             row-major
//! ```

use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use flate2::bufread::GzDecoder;

use super::unpack_limit::UnpackLimit;
use super::{Dataset, ReadOptions, Split};
use crate::{Error, Image, Result, Stored, regular_file};

/// Grey images of one size with labels, held in memory.
#[derive(Debug)]
pub(super) struct Idx {
    file: PathBuf,
    count: usize,
    height: usize,
    width: usize,
    pixels: Vec<u8>,
    labels: Option<Vec<u8>>,
    class_names: Vec<String>,
}

impl Idx {
    /// Whether a folder holds IDX images.
    pub(super) fn is_at(folder: &Path) -> bool {
        [Split::Train, Split::Test].iter().any(|&split| images_file(folder, split).is_some())
    }

    /// Reads `train-images-idx3-ubyte` and `train-labels-idx1-ubyte` (`t10k-` for the test split),
    /// with or without `.gz`.
    pub(super) fn open(folder: &Path, split: Split, options: &ReadOptions) -> Result<Self> {
        let images = images_file(folder, split)
            .ok_or_else(|| Error::NoSplit { split: split.name(), path: folder.into() })?;
        let limit = options.unpack_limit();
        let (shape, pixels) = read(&images, 3, limit)?;
        let [count, height, width] = shape[..] else {
            return Err(invalid(&images, "images need three axes"));
        };
        if count == 0 || height == 0 || width == 0 {
            return Err(invalid(&images, format!("no pixels: {count} images of {height}x{width}")));
        }
        let labels = match find(folder, split, "labels-idx1") {
            Some(path) => Some(read_labels(&path, count, limit)?),
            None => None,
        };
        let class_count = labels.iter().flatten().max().map_or(0, |&largest| usize::from(largest) + 1);
        Ok(Self {
            file: images,
            count,
            height,
            width,
            pixels,
            labels,
            class_names: (0..class_count).map(|class| class.to_string()).collect(),
        })
    }
}

impl Dataset for Idx {
    fn len(&self) -> usize {
        self.count
    }

    fn stored(&self, index: usize) -> Result<Stored> {
        let size = self.height * self.width;
        let pixels = self.pixels[index * size..(index + 1) * size].to_vec();
        Ok(Stored::Pixels(Image::from_pixels(self.height, self.width, 1, pixels)?))
    }

    fn name(&self, index: usize) -> String {
        format!("{} image {index}", self.file.display())
    }

    fn label(&self, index: usize) -> Option<usize> {
        self.labels.as_ref().map(|labels| usize::from(labels[index]))
    }

    fn class_names(&self) -> &[String] {
        &self.class_names
    }

    fn files(&self) -> Vec<PathBuf> {
        vec![self.file.clone()]
    }
}

fn images_file(folder: &Path, split: Split) -> Option<PathBuf> {
    find(folder, split, "images-idx3")
}

/// The file `{split}-{kind}-ubyte`, also as `{split}-{kind with a dot}-ubyte`, gzipped or not.
fn find(folder: &Path, split: Split, kind: &str) -> Option<PathBuf> {
    let split = match split {
        Split::Train => "train",
        Split::Test => "t10k",
        Split::Validation | Split::Unlabelled => return None,
    };
    let dotted = kind.replace('-', ".");
    [kind, &dotted]
        .iter()
        .flat_map(|kind| ["", ".gz"].map(|ending| folder.join(format!("{split}-{kind}-ubyte{ending}"))))
        .find(|path| path.is_file())
}

fn read_labels(path: &Path, images: usize, limit: UnpackLimit) -> Result<Vec<u8>> {
    let (shape, labels) = read(path, 1, limit)?;
    if shape != [images] {
        return Err(invalid(path, format!("{} labels for {images} images", labels.len())));
    }
    Ok(labels)
}

/// The sizes and values of an IDX file with `rank` axes.
fn read(path: &Path, rank: usize, limit: UnpackLimit) -> Result<(Vec<usize>, Vec<u8>)> {
    let failed = |source: std::io::Error| match source.kind() {
        std::io::ErrorKind::UnexpectedEof => invalid(path, "it ends too early"),
        // What the decoder calls data that its checksum does not fit.
        std::io::ErrorKind::InvalidInput | std::io::ErrorKind::InvalidData => {
            invalid(path, format!("it is damaged: {source}"))
        }
        _ => Error::Io { action: "read", path: path.into(), source },
    };
    let file = BufReader::new(regular_file::open(path).map_err(failed)?);
    let gzipped = path.extension().is_some_and(|ending| ending == "gz");
    let mut reader: Box<dyn Read> = if gzipped { Box::new(GzDecoder::new(file)) } else { Box::new(file) };

    let mut magic = [0; 4];
    reader.read_exact(&mut magic).map_err(failed)?;
    if magic != [0, 0, 8, rank as u8] {
        return Err(invalid(path, format!("expected magic [0, 0, 8, {rank}], got {magic:?}")));
    }
    let mut shape = Vec::with_capacity(rank);
    for _axis in 0..rank {
        let mut size = [0; 4];
        reader.read_exact(&mut size).map_err(failed)?;
        shape.push(u32::from_be_bytes(size) as usize);
    }
    let expected = shape
        .iter()
        .try_fold(1usize, |product, &size| product.checked_mul(size))
        .ok_or_else(|| invalid(path, format!("sizes overflow: {shape:?}")))?;
    limit.check("it", expected as u64).map_err(|problem| invalid(path, problem))?;
    // Memory grows with what is really there, whatever the header promises.
    let mut values = Vec::new();
    reader.take(expected as u64 + 1).read_to_end(&mut values).map_err(failed)?;
    if values.len() != expected {
        let got = if values.len() > expected { "more".into() } else { values.len().to_string() };
        return Err(invalid(path, format!("expected {expected} bytes for shape {shape:?}, got {got}")));
    }
    Ok((shape, values))
}

fn invalid(path: &Path, problem: impl Into<String>) -> Error {
    Error::Invalid { format: "IDX", path: path.into(), problem: problem.into() }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn images(count: u32) -> Vec<u8> {
        let mut bytes = vec![0, 0, 8, 3];
        for size in [count, 2, 3] {
            bytes.extend(size.to_be_bytes());
        }
        bytes.extend((0..count * 6).map(|value| value as u8));
        bytes
    }

    fn labels(count: u32) -> Vec<u8> {
        let mut bytes = vec![0, 0, 8, 1];
        bytes.extend(count.to_be_bytes());
        bytes.extend((0..count).map(|value| (value % 3) as u8));
        bytes
    }

    fn folder(files: &[(&str, Vec<u8>)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, bytes) in files {
            std::fs::write(folder.path().join(name), bytes).unwrap();
        }
        folder
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn error_of(files: &[(&str, Vec<u8>)]) -> String {
        Idx::open(folder(files).path(), Split::Train, &ReadOptions::default()).unwrap_err().to_string()
    }

    #[test]
    fn plain_and_gzipped_files_give_the_same_images() {
        let plain = folder(&[("train-images-idx3-ubyte", images(5)), ("train-labels-idx1-ubyte", labels(5))]);
        let packed = folder(&[
            ("train-images-idx3-ubyte.gz", gzip(&images(5))),
            ("train-labels-idx1-ubyte.gz", gzip(&labels(5))),
        ]);
        let plain = crate::open(plain.path(), Split::Train).unwrap();
        let packed = crate::open(packed.path(), Split::Train).unwrap();
        assert_eq!(plain.len(), 5);
        assert_eq!(plain.image(4).unwrap(), packed.image(4).unwrap());
        assert_eq!(plain.image(1).unwrap().pixels(), [6, 7, 8, 9, 10, 11]);
        assert_eq!(packed.label(4), Some(1));
        assert_eq!(plain.class_names().len(), 3);
    }

    #[test]
    fn labels_are_not_needed() {
        let unlabelled = folder(&[("train-images-idx3-ubyte", images(5))]);
        assert_eq!(
            Idx::open(unlabelled.path(), Split::Train, &ReadOptions::default()).unwrap().label(0),
            None
        );
    }

    #[test]
    fn damaged_files_are_named_with_the_cause() {
        let mut truncated = images(5);
        truncated.truncate(30);
        let message = error_of(&[("train-images-idx3-ubyte", truncated)]);
        assert!(message.contains("expected 30 bytes") && message.contains("got 14"), "{message}");

        let mut packed = gzip(&images(500));
        packed.truncate(packed.len() / 2);
        assert!(error_of(&[("train-images-idx3-ubyte.gz", packed)]).contains("ends too early"));

        let mut packed = gzip(&images(500));
        let trailer = packed.len() - 8;
        packed[trailer] ^= 1;
        let message = error_of(&[("train-images-idx3-ubyte.gz", packed)]);
        assert!(message.contains("it is damaged") && message.contains("checksum"), "{message}");

        let mut longer = images(5);
        longer.push(0);
        assert!(error_of(&[("train-images-idx3-ubyte", longer)]).contains("got more"));

        assert!(error_of(&[("train-images-idx3-ubyte", labels(5))]).contains("magic"));
        assert!(error_of(&[("train-images-idx3-ubyte", vec![0, 0])]).contains("ends too early"));
        assert!(error_of(&[("train-images-idx3-ubyte", images(0))]).contains("no pixels"));

        let mut huge = vec![0, 0, 8, 3];
        huge.extend([0xff; 12]);
        assert!(error_of(&[("train-images-idx3-ubyte", huge)]).contains("overflow"));

        let files = [("train-images-idx3-ubyte", images(5)), ("train-labels-idx1-ubyte", labels(4))];
        assert!(error_of(&files).contains("4 labels for 5 images"));
    }

    #[test]
    fn a_few_bytes_do_not_become_more_than_the_limit() {
        // Nearly 2 MB of zeros in 2 KB.
        let packed = folder(&[("train-images-idx3-ubyte.gz", gzip(&images(300_000)))]);
        let open = |unpack_limit| {
            let options = ReadOptions { unpack_limit, ..Default::default() };
            Idx::open(packed.path(), Split::Train, &options)
        };
        assert!(open(None).is_ok() && open(Some(2)).is_ok());
        let message = open(Some(1)).unwrap_err().to_string();
        assert!(
            message.contains("more than the limit of 1 MB: set `data.options.unpack_limit`"),
            "{message}"
        );
    }

    #[test]
    fn a_split_that_is_not_there_is_named() {
        let folder = folder(&[("train-images-idx3-ubyte", images(5))]);
        let message = Idx::open(folder.path(), Split::Test, &ReadOptions::default()).unwrap_err().to_string();
        assert!(message.contains("no test split"), "{message}");
    }
}
