//! Files of weights beside an ONNX file. They are looked for in its folder and nowhere else: ONNX Runtime
//! itself would take a file of the same name from the working directory.

use std::fs::File;
use std::io::{Read, Seek};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Instant;

use crate::onnx_file::{External, ExternalData};
use crate::{Error, FileLimits, Result};

/// What ONNX Runtime takes for an address in its own memory instead of a file.
const MEMORY_ADDRESS: &str = "_ORT_MEM_ADDR_";

/// One of them, open: it stays the same file even if another one takes its name.
#[derive(Debug)]
pub(crate) struct ExternalFile {
    /// As the graph names it.
    pub(crate) location: String,
    path: PathBuf,
    file: Mutex<File>,
    hash: blake3::Hash,
    length: u64,
    /// Sessions that are made at the same time share it.
    loaded: Mutex<Weak<[u8]>>,
}

/// All files of a graph. `model` is the ONNX file; nothing for one in memory.
pub(crate) fn open_all(
    name: &str,
    model: Option<&Path>,
    external: &External,
    limits: &FileLimits,
) -> Result<Vec<ExternalFile>> {
    let refuse = |problem: String| Err(Error::ExternalData { name: name.into(), problem });
    if external.inside_nodes {
        return refuse("constants of nodes in other files are not supported, only initialisers".into());
    }
    match (model, &*external.files) {
        (_, []) => Ok(Vec::new()),
        (Some(model), files) => {
            let found =
                files.iter().map(|data| open(name, data, &locate(name, model, &data.location)?, limits));
            let found = found.collect::<Result<Vec<_>>>()?;
            let bytes = found.iter().fold(0u64, |bytes, found| bytes.saturating_add(found.length));
            let (start, limit) = (Instant::now(), limits.time_for(bytes));
            let in_time = || match start.elapsed() <= limit {
                true => Ok(()),
                false => Err(Error::TimeLimit { name: name.into(), limit }),
            };
            found.into_iter().map(|found| found.hashed(&in_time)).collect()
        }
        (None, [first, ..]) => {
            refuse(format!("its weights are in another file, {}, and it is in memory", first.location))
        }
    }
}

/// Refuses a file of weights that is not the one that was exported, by its hash.
pub(crate) fn check(name: &str, files: &[ExternalFile], hash: &str) -> Result<()> {
    let refuse = |problem: String| Err(Error::ExternalData { name: name.into(), problem });
    match files {
        [only] if only.hash.to_hex().as_str() == hash => Ok(()),
        [only] => refuse(format!(
            "its file of weights is damaged, or that of another encoder: {}",
            only.path.display()
        )),
        _ => refuse(format!("expected one file of weights, got: {}", files.len())),
    }
}

/// The file of a location, which must lie in the folder of the ONNX file. Where that is a link, as in the
/// cache of the Hugging Face hub, the folder that it leads to is as good.
fn locate(name: &str, model: &Path, location: &str) -> Result<PathBuf> {
    let refuse = |problem: String| Error::ExternalData { name: name.into(), problem };
    let relative = Path::new(location);
    let plain = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
    if !relative.components().all(plain) || location.contains(MEMORY_ADDRESS) {
        return Err(refuse(format!("a file of weights outside of its folder: {location}")));
    }
    let folder = match model.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let path = folder.join(relative);
    let missing = |source: std::io::Error| match source.kind() {
        std::io::ErrorKind::NotFound => refuse(format!("a file of weights is missing: {}", path.display())),
        _ => Error::Io { path: path.clone(), source },
    };
    let real = path.canonicalize().map_err(missing)?;
    let real_model = model.canonicalize().map_err(missing)?;
    let folders = [folder.canonicalize().ok(), real_model.parent().map(Path::to_path_buf)];
    match folders.iter().flatten().any(|folder| real.starts_with(folder)) {
        true => Ok(path),
        false => Err(refuse(format!("a file of weights leads out of its folder: {}", path.display()))),
    }
}

/// A file of weights that was not read yet.
struct Found {
    location: String,
    path: PathBuf,
    file: File,
    length: u64,
}

fn open(name: &str, data: &ExternalData, path: &Path, limits: &FileLimits) -> Result<Found> {
    let refuse = |problem: String| Error::ExternalData { name: name.into(), problem };
    let failed = |source| Error::Io { path: path.into(), source };
    // Before it is opened: a pipe would be waited for.
    if !std::fs::metadata(path).map_err(failed)?.is_file() {
        return Err(refuse(format!("weights must be in a file: {}", path.display())));
    }
    let file = File::open(path).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    if metadata.len() < data.length {
        let (found, needed) = (metadata.len(), data.length);
        return Err(refuse(format!(
            "a file of weights is too short, {found} of {needed} bytes: {}",
            path.display()
        )));
    }
    if metadata.len() > data.used.saturating_add(limits.unused_weights) {
        let (found, used) = (metadata.len(), data.used);
        let problem =
            format!("a file of weights of {found} bytes ({}), of which it uses {used}", path.display());
        return Err(Error::Limit { name: name.into(), problem });
    }
    Ok(Found { location: data.location.clone(), path: path.into(), file, length: metadata.len() })
}

impl Found {
    /// Reads all of it, as long as there is time.
    fn hashed(self, in_time: &dyn Fn() -> Result<()>) -> Result<ExternalFile> {
        /// Bytes between two looks at the clock.
        const PIECE: u64 = 1 << 24;
        let Self { location, path, mut file, length } = self;
        let mut hasher = blake3::Hasher::new();
        loop {
            in_time()?;
            let before = hasher.count();
            let read = hasher.update_reader((&mut file).take(PIECE));
            read.map_err(|source| Error::Io { path: path.clone(), source })?;
            if hasher.count() == before {
                break;
            }
        }
        let nothing: Weak<[u8]> = Weak::<[u8; 0]>::new();
        let (file, loaded) = (Mutex::new(file), Mutex::new(nothing));
        Ok(ExternalFile { location, path, file, hash: hasher.finalize(), length, loaded })
    }
}

impl ExternalFile {
    /// A hash of its name and content.
    pub(crate) fn fingerprint(&self) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&(self.location.len() as u64).to_le_bytes()).update(self.location.as_bytes());
        *hasher.update(self.hash.as_bytes()).finalize().as_bytes()
    }

    /// Bytes of it.
    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// Its content, which is what it was when it was opened.
    pub(crate) fn bytes(&self) -> Result<Arc<[u8]>> {
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bytes) = loaded.upgrade() {
            return Ok(bytes);
        }
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        self.check_memory()?;
        // In place: weights of gigabytes are not copied.
        let mut bytes: Arc<[u8]> = std::iter::repeat_n(0, self.length as usize).collect();
        let place = Arc::get_mut(&mut bytes).unwrap_or_default();
        let read = file.rewind().and_then(|()| file.read_exact(place));
        read.map_err(|source| match source.kind() {
            std::io::ErrorKind::UnexpectedEof => Error::Changed { path: self.path.clone() },
            _ => Error::Io { path: self.path.clone(), source },
        })?;
        let mut hasher = blake3::Hasher::new();
        if hasher.update_rayon(&bytes).finalize() != self.hash {
            return Err(Error::Changed { path: self.path.clone() });
        }
        *loaded = Arc::downgrade(&bytes);
        Ok(bytes)
    }

    /// Refuses a file that does not fit into memory. What is shared cannot be asked for without ending the program
    /// if there is none, so that the same is asked for, and given back, before.
    fn check_memory(&self) -> Result<()> {
        let available = lejepa_data::available_memory();
        let is_there = Vec::<u8>::new().try_reserve_exact(self.length as usize).is_ok();
        if is_there && available.is_none_or(|available| self.length <= available) {
            return Ok(());
        }
        let problem =
            format!("weights need more memory than there is, {} bytes: {}", self.length, self.path.display());
        Err(Error::ExternalData { name: self.location.clone(), problem })
    }
}

#[cfg(test)]
mod tests;
