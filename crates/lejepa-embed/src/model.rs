//! An encoder file and how sessions are made from it.

use std::borrow::Cow;
use std::fs::File;
use std::io::{Read, Seek};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use lejepa_data::{Precision, WEIGHTS_KEY};
use ort::environment::Environment;
use ort::logging::LogLevel;
use ort::session::Session;

use crate::external_file::{self, ExternalFile};
use crate::onnx_file::{Damaged, OnnxFile};
use crate::time_limit::Cancel;
use crate::{Error, FileLimits, Provider, Result};

/// Protobuf cannot hold more in one file.
const LARGEST_FILE: u64 = i32::MAX as u64;

/// Bytes of a value that is computed when a session is made, such as a weight in f32 of one in 16 bits.
const LARGEST_CONSTANT: &str = "268435456";

/// The bytes of a file, read again whenever a session is made: weights need not be in memory twice.
#[derive(Debug)]
enum Source {
    /// Stays the same file even if another one takes its name.
    File(Mutex<File>),
    Memory(Arc<[u8]>),
}

/// All that sessions have in common.
#[derive(Debug)]
pub(crate) struct Model {
    /// For messages.
    pub(crate) name: String,
    source: Source,
    /// Weights that are not in the file itself.
    external: Vec<ExternalFile>,
    /// Of the bytes that were read first.
    hash: blake3::Hash,
    length: u64,
}

/// How sessions are made.
#[derive(Debug, Clone)]
pub(crate) struct SessionSettings {
    pub(crate) environment: Environment,
    /// Of ONNX Runtime.
    pub(crate) version: String,
    pub(crate) provider: Provider,
    /// Threads of one inference.
    pub(crate) threads: usize,
    /// Height and width, for graphs that leave them open.
    pub(crate) size: (usize, usize),
    /// How the file's numbers are stored.
    pub(crate) precision: Precision,
}

impl Model {
    /// Opens a file and reads what it says about itself.
    pub(crate) fn open(path: &Path, limits: &FileLimits) -> Result<(Self, OnnxFile)> {
        let failed = |source: std::io::Error| match source.kind() {
            std::io::ErrorKind::NotFound => Error::NotFound { path: path.into() },
            _ => Error::Io { path: path.into(), source },
        };
        // Before it is opened: a pipe would be waited for.
        if !std::fs::metadata(path).map_err(failed)?.is_file() {
            return Err(Error::NotAFile { path: path.into() });
        }
        let file = File::open(path).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        let name = path.display().to_string();
        if metadata.len() > LARGEST_FILE {
            return Err(Error::TooLarge { name, length: metadata.len(), limit: LARGEST_FILE });
        }
        Self::described(name, Source::File(Mutex::new(file)), (Some(path), limits))
    }

    /// The same for a file in memory.
    pub(crate) fn in_memory(name: &str, bytes: &[u8], limits: &FileLimits) -> Result<(Self, OnnxFile)> {
        Self::described(name.into(), Source::Memory(bytes.into()), (None, limits))
    }

    fn described(
        name: String,
        source: Source,
        (path, limits): (Option<&Path>, &FileLimits),
    ) -> Result<(Self, OnnxFile)> {
        let bytes = source.bytes(&name)?;
        let file = OnnxFile::read(&bytes).map_err(|Damaged| Error::Damaged { name: name.clone() })?;
        if file.checksum.as_ref().is_some_and(|checksum| !checksum.holds()) {
            return Err(Error::Altered { name });
        }
        let external = external_file::open_all(&name, path, &file.external, limits)?;
        if let Some(hash) = file.metadata(WEIGHTS_KEY) {
            external_file::check(&name, &external, hash)?;
        }
        let (hash, length) = (blake3::hash(&bytes), bytes.len() as u64);
        drop(bytes);
        Ok((Self { name, source, external, hash, length }, file))
    }

    /// Bytes of the file and of those that hold its weights.
    pub(crate) fn length(&self) -> u64 {
        self.external.iter().map(ExternalFile::length).fold(self.length, u64::saturating_add)
    }

    /// A session that computes one output.
    pub(crate) fn session(
        &self,
        output: &str,
        settings: &SessionSettings,
        cancel: &Cancel,
    ) -> Result<Session> {
        let pruned = OnnxFile::pruned(&self.bytes()?, output)
            .map_err(|Damaged| Error::Damaged { name: self.name.clone() })?;
        let failed = |error: ort::Error<_>| Error::runtime(ort::Error::from(error));
        let mut builder = Session::builder(&settings.environment)
            .map_err(Error::runtime)?
            .with_log_level(LogLevel::Error)
            .map_err(failed)?
            .with_intra_threads(settings.threads)
            .map_err(failed)?
            // Threads that wait in a loop for the next product take the processor away from decoding.
            .with_intra_op_spinning(false)
            .map_err(failed)?
            // Larger ones are computed when they are needed, where that can be stopped.
            .with_config_entry("optimization.constant_folding_max_output_size_in_bytes", LARGEST_CONSTANT)
            .map_err(failed)?;
        if settings.precision == Precision::Int8 {
            // GELU by tanh errs by 5e-4 at most, far below the rounding to 8 bits behind it, in half the time.
            builder = builder.with_approximate_gelu().map_err(failed)?;
        }
        for (name, size) in [("height", settings.size.0), ("width", settings.size.1)] {
            builder = builder.with_dimension_override(name, size as i64).map_err(failed)?;
        }
        if let Some(provider) = settings.provider.dispatch() {
            builder = builder.with_execution_providers([provider]).map_err(|error| Error::Provider {
                provider: settings.provider,
                source: ort::Error::from(error),
            })?;
        }
        for file in &self.external {
            let bytes = file.bytes()?;
            builder =
                builder.with_external_initializer_file_in_memory(&file.location, bytes).map_err(failed)?;
        }
        cancel.loading(builder.canceler());
        let unreadable = |source| Error::Unreadable { name: self.name.clone(), source };
        builder.commit_from_memory(&pruned).map_err(unreadable)
    }

    /// A hash of the whole file and of those that hold its weights.
    pub(crate) fn fingerprint(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        hasher.update(self.hash.as_bytes());
        self.external.iter().for_each(|file| {
            hasher.update(&file.fingerprint());
        });
        hasher.finalize().to_hex().to_string()
    }

    /// The bytes that were read first; an error if the file holds others by now.
    fn bytes(&self) -> Result<Cow<'_, [u8]>> {
        let bytes = self.source.bytes(&self.name)?;
        match blake3::hash(&bytes) == self.hash {
            true => Ok(bytes),
            false => Err(Error::Changed { path: self.name.clone().into() }),
        }
    }
}

impl Source {
    fn bytes(&self, name: &str) -> Result<Cow<'_, [u8]>> {
        match self {
            Self::Memory(bytes) => Ok(Cow::Borrowed(bytes)),
            Self::File(file) => {
                let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
                let mut bytes = Vec::new();
                file.rewind()
                    .and_then(|()| Read::by_ref(&mut *file).take(LARGEST_FILE).read_to_end(&mut bytes))
                    .map_err(|source| Error::Io { path: name.into(), source })?;
                Ok(Cow::Owned(bytes))
            }
        }
    }
}
