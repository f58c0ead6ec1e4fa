//! An encoder file and how sessions are made from it.

use std::fs::File;
use std::io::{Read, Seek};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use lejepa_data::Precision;
use ort::environment::Environment;
use ort::logging::LogLevel;
use ort::session::Session;

use crate::onnx_file::{Damaged, OnnxFile};
use crate::{Error, Provider, Result};

/// Protobuf cannot hold more in one file.
const LARGEST_FILE: u64 = i32::MAX as u64;

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
}

/// How sessions are made.
#[derive(Debug, Clone)]
pub(crate) struct SessionSettings {
    pub(crate) environment: Environment,
    pub(crate) provider: Provider,
    /// Threads of one inference.
    pub(crate) threads: usize,
    /// Height and width, for graphs that leave them open.
    pub(crate) size: (usize, usize),
    /// How the file's numbers are stored.
    pub(crate) precision: Precision,
}

impl Model {
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let failed = |source: std::io::Error| match source.kind() {
            std::io::ErrorKind::NotFound => Error::NotFound { path: path.into() },
            _ => Error::Io { path: path.into(), source },
        };
        let file = File::open(path).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        let name = path.display().to_string();
        if !metadata.is_file() {
            return Err(Error::NotAFile { path: path.into() });
        }
        if metadata.len() > LARGEST_FILE {
            return Err(Error::TooLarge { name, length: metadata.len(), limit: LARGEST_FILE });
        }
        Ok(Self { name, source: Source::File(Mutex::new(file)) })
    }

    pub(crate) fn in_memory(name: &str, bytes: &[u8]) -> Self {
        Self { name: name.into(), source: Source::Memory(bytes.into()) }
    }

    /// What the file says about itself.
    pub(crate) fn describe(&self) -> Result<OnnxFile> {
        self.with_bytes(|bytes| OnnxFile::read(bytes).map_err(|damage| self.damaged(damage)))
    }

    /// A session that computes one output.
    pub(crate) fn session(&self, output: &str, settings: &SessionSettings) -> Result<Session> {
        let pruned =
            self.with_bytes(|bytes| OnnxFile::pruned(bytes, output).map_err(|damage| self.damaged(damage)))?;
        let failed = |error: ort::Error<_>| Error::runtime(ort::Error::from(error));
        let mut builder = Session::builder(&settings.environment)
            .map_err(Error::runtime)?
            .with_log_level(LogLevel::Error)
            .map_err(failed)?
            .with_intra_threads(settings.threads)
            .map_err(failed)?
            // Threads that wait in a loop for the next product take the processor away from decoding.
            .with_intra_op_spinning(false)
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
        let unreadable = |source| Error::Unreadable { name: self.name.clone(), source };
        builder.commit_from_memory(&pruned).map_err(unreadable)
    }

    /// A hash of the whole file.
    pub(crate) fn fingerprint(&self) -> Result<String> {
        self.with_bytes(|bytes| Ok(blake3::hash(bytes).to_hex().to_string()))
    }

    fn damaged(&self, _damage: Damaged) -> Error {
        Error::Damaged { name: self.name.clone() }
    }

    fn with_bytes<T>(&self, read: impl FnOnce(&[u8]) -> Result<T>) -> Result<T> {
        match &self.source {
            Source::Memory(bytes) => read(bytes),
            Source::File(file) => {
                let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
                let mut bytes = Vec::new();
                file.rewind()
                    .and_then(|()| Read::by_ref(&mut *file).take(LARGEST_FILE).read_to_end(&mut bytes))
                    .map_err(|source| Error::Io { path: self.name.clone().into(), source })?;
                drop(file);
                read(&bytes)
            }
        }
    }
}
