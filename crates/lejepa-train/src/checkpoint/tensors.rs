//! The tensors of a checkpoint, written and read one after the other: a second copy of all of them would be as large
//! as weights and optimiser state together.
//!
//! What is written is what `safetensors::serialize` makes of them, byte for byte.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::path::Path;

use candle_core::{DType, Device, Tensor};
use lejepa_data::regular_file;
use safetensors::tensor::{Metadata, TensorInfo};
use safetensors::{SafeTensorError, View};

use super::header::KEY;

/// A fingerprint of tensors by name, whatever their order.
#[derive(Debug, Default)]
pub(super) struct Digest(BTreeMap<String, blake3::Hash>);

impl Digest {
    pub(super) fn add(&mut self, name: &str, bytes: &[u8]) {
        self.0.insert(name.into(), blake3::hash(bytes));
    }

    pub(super) fn finish(&self) -> String {
        let mut all = blake3::Hasher::new();
        for (name, digest) in &self.0 {
            all.update(&(name.len() as u64).to_le_bytes()).update(name.as_bytes()).update(digest.as_bytes());
        }
        all.finalize().to_hex().to_string()
    }
}

/// Writes a file of tensors with one entry of metadata.
pub(super) fn write(
    mut tensors: Vec<(String, &Tensor)>,
    entry: String,
    file: &mut dyn Write,
) -> std::io::Result<()> {
    tensors.sort_by(|(left_name, left), (right_name, right)| {
        View::dtype(right).cmp(&View::dtype(left)).then(left_name.cmp(right_name))
    });
    let mut offset = 0;
    let places = tensors.iter().map(|(name, tensor)| {
        let start = offset;
        offset += tensor.data_len();
        let (dtype, shape) = (View::dtype(tensor), tensor.dims().to_vec());
        (name.clone(), TensorInfo { dtype, shape, data_offsets: (start, offset) })
    });
    let metadata = Metadata::new(Some(HashMap::from([(KEY.to_string(), entry)])), places.collect())
        .map_err(std::io::Error::other)?;
    let mut header = serde_json::to_vec(&metadata)?;
    header.resize(header.len().next_multiple_of(size_of::<u64>()), b' ');
    file.write_all(&(header.len() as u64).to_le_bytes())?;
    file.write_all(&header)?;
    tensors.iter().try_for_each(|(_, tensor)| file.write_all(&tensor.data()))
}

/// What stands before the tensors.
#[derive(Debug)]
pub(super) struct Beginning {
    metadata: Metadata,
    file: File,
}

/// Why a file cannot be read.
pub(super) enum Failure {
    Damaged(String),
    Io(std::io::Error),
}

impl From<SafeTensorError> for Failure {
    fn from(error: SafeTensorError) -> Self {
        Self::Damaged(error.to_string())
    }
}

impl Beginning {
    /// Reads what stands before the tensors; they need not all be there.
    pub(super) fn read(path: &Path) -> Result<Self, Failure> {
        /// Headers of real checkpoints are far shorter.
        const LONGEST: u64 = 100 << 20;
        let mut file = regular_file::open(path).map_err(Failure::Io)?;
        let mut length = [0; size_of::<u64>()];
        fill(&mut file, &mut length, "it is empty")?;
        let length = u64::from_le_bytes(length);
        if length > LONGEST {
            return Err(Failure::Damaged("its header is too long".into()));
        }
        let mut text = Vec::new();
        (&mut file).take(length).read_to_end(&mut text).map_err(Failure::Io)?;
        if text.len() as u64 != length {
            return Err(Failure::Damaged("its header is cut off".into()));
        }
        let metadata = serde_json::from_slice(&text).map_err(|error| Failure::Damaged(error.to_string()))?;
        Ok(Self { metadata, file })
    }

    /// The entry of metadata.
    pub(super) fn entry(&self) -> Result<&str, Failure> {
        let entry = self.metadata.metadata().as_ref().and_then(|entries| entries.get(KEY));
        entry.map(String::as_str).ok_or_else(|| Failure::Damaged(format!("no `{KEY}` metadata")))
    }

    /// Reads all tensors, and their digest.
    pub(super) fn tensors(mut self) -> Result<(HashMap<String, Tensor>, String), Failure> {
        let (mut tensors, mut digest) = (HashMap::new(), Digest::default());
        let damaged = |error: candle_core::Error| Failure::Damaged(error.to_string());
        let before = self.file.stream_position().map_err(Failure::Io)?;
        let left = self.file.metadata().map_err(Failure::Io)?.len().saturating_sub(before);
        let length = self.metadata.data_len() as u64;
        if length > left {
            return Err(Failure::Damaged("it is cut off".into()));
        }
        if left > length {
            return Err(Failure::Damaged("there is more in it than its header says".into()));
        }
        for name in self.metadata.offset_keys() {
            let Some(info) = self.metadata.info(&name) else { continue };
            let (start, end) = info.data_offsets;
            let mut bytes = vec![0; end - start];
            fill(&mut self.file, &mut bytes, "it is cut off")?;
            digest.add(&name, &bytes);
            let dtype = DType::try_from(info.dtype).map_err(damaged)?;
            let tensor =
                Tensor::from_raw_buffer(&bytes, dtype, &info.shape, &Device::Cpu).map_err(damaged)?;
            tensors.insert(name, tensor);
        }
        Ok((tensors, digest.finish()))
    }
}

fn fill(file: &mut File, bytes: &mut [u8], problem: &str) -> Result<(), Failure> {
    file.read_exact(bytes).map_err(|error| match error.kind() {
        std::io::ErrorKind::UnexpectedEof => Failure::Damaged(problem.into()),
        _ => Failure::Io(error),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_what_the_library_writes_at_once_and_reads_back() {
        let tensor = |values: &[f32]| Tensor::new(values, &Device::Cpu).unwrap();
        let (first, second) = (tensor(&[1., 2., 3.]), tensor(&[4.]).reshape((1, 1)).unwrap());
        let counts = Tensor::new(&[7i64, 8], &Device::Cpu).unwrap();
        let all =
            || vec![("z".to_string(), &first), ("a.b".to_string(), &second), ("a".to_string(), &counts)];
        let entry = || HashMap::from([(KEY.to_string(), "\"said\"".to_string())]);
        let mut written = Vec::new();
        write(all(), "\"said\"".into(), &mut written).unwrap();
        assert!(written == safetensors::serialize(all(), Some(entry())).unwrap());

        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("step.safetensors");
        std::fs::write(&path, &written).unwrap();
        let Ok(beginning) = Beginning::read(&path) else { panic!("the beginning can be read") };
        assert!(beginning.entry().is_ok_and(|entry| entry == "\"said\""));
        let Ok((read, digest)) = beginning.tensors() else { panic!("the tensors can be read") };
        assert_eq!(read["z"].to_vec1::<f32>().unwrap(), [1., 2., 3.]);
        assert_eq!(read["a.b"].dims(), [1, 1]);
        assert_eq!(read["a"].to_vec1::<i64>().unwrap(), [7, 8]);
        let mut expected = Digest::default();
        all().iter().for_each(|(name, tensor)| expected.add(name, &tensor.data()));
        assert_eq!(digest, expected.finish());
        let longer = [&written[..], b"more"].concat();
        for length in [0, 7, 9, 40, written.len() - 1, written.len() + 1] {
            std::fs::write(&path, &longer[..length]).unwrap();
            let read = Beginning::read(&path).and_then(Beginning::tensors);
            assert!(matches!(read, Err(Failure::Damaged(_))), "{length} bytes");
        }
    }
}
