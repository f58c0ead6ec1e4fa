//! Finds and loads ONNX Runtime's shared library, once per process.
//!
//! It is looked for, in this order:
//! 1. the path that the caller gives,
//! 2. the environment variable `ORT_DYLIB_PATH`,
//! 3. beside the executable, in `lib/` beside its folder, and in `.lejepa/onnxruntime/` of every folder
//!    above it (where `make setup` puts it),
//! 4. the system's libraries.

use std::ffi::CStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use lejepa_data::printable_name;
use ort::environment::Environment;
use ort::ep::{self, ExecutionProvider};
use ort::logging::LogLevel;

use crate::{Error, Result};

/// The environment variable that names the library.
pub const LIBRARY_VARIABLE: &str = "ORT_DYLIB_PATH";

#[cfg(target_os = "macos")]
const LIBRARY_NAME: &str = "libonnxruntime.dylib";
#[cfg(not(target_os = "macos"))]
const LIBRARY_NAME: &str = "libonnxruntime.so";

/// What is known of the loaded library.
#[derive(Debug, Clone)]
pub struct RuntimeInfo {
    /// Where it was found.
    pub library: PathBuf,
    /// Its version.
    pub version: String,
    /// Execution providers that it was built with.
    pub providers: Vec<&'static str>,
}

/// Loads the library if that has not happened yet and describes it.
pub fn load(library: Option<&Path>) -> Result<RuntimeInfo> {
    let (_environment, library) = environment(library)?;
    let providers = [
        ("CPU", ep::CPU::is_available()),
        ("CUDA", ep::CUDA::is_available()),
        ("TensorRT", ep::TensorRT::is_available()),
    ];
    let available = providers.into_iter().filter(|(_, available)| matches!(available, Ok(true)));
    Ok(RuntimeInfo {
        version: version_of(&library),
        library,
        providers: available.map(|(name, _)| name).collect(),
    })
}

pub(crate) fn version_of(library: &Path) -> String {
    version(library).unwrap_or_else(|| "unknown version".into())
}

/// The version that the library reports; `ort` checks it but does not pass it on.
#[allow(unsafe_code)]
fn version(library: &Path) -> Option<String> {
    type GetApiBase = unsafe extern "C" fn() -> *const ort::sys::OrtApiBase;
    // SAFETY: `ort` has loaded this very file as ONNX Runtime before, so opening it again runs no new
    // code and `OrtGetApiBase` has the type of ONNX Runtime's header. It returns a pointer to a static
    // structure (or null), whose `GetVersionString` returns a static, null-terminated string.
    unsafe {
        let library = libloading::Library::new(library).ok()?;
        let get_api_base: libloading::Symbol<'_, GetApiBase> = library.get(b"OrtGetApiBase").ok()?;
        let version = (get_api_base().as_ref()?.GetVersionString)();
        Some(CStr::from_ptr(version).to_str().ok()?.to_string())
    }
}

/// ONNX Runtime allows one environment per process.
static LOADED: Mutex<Option<(Environment, PathBuf)>> = Mutex::new(None);

pub(crate) fn environment(asked: Option<&Path>) -> Result<(Environment, PathBuf)> {
    let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((environment, library)) = &*loaded {
        return match asked {
            Some(asked) if asked != library => {
                Err(Error::RuntimeLoaded { loaded: library.clone(), asked: asked.into() })
            }
            _ => Ok((environment.clone(), library.clone())),
        };
    }
    let library = find_library(asked)?;
    let broken = |problem: String| Error::RuntimeBroken { problem };
    let builder = ort::init_from(&library).map_err(|error| match (library.is_absolute(), error) {
        // The last resort, a bare name, is not a file that somebody named.
        (false, ort::LoadDynamicError::Dlopen { .. }) => Error::RuntimeNotFound,
        (_, error) => broken(error.to_string()),
    })?;
    let logger = std::sync::Arc::new(tell);
    let environment = builder
        .with_telemetry(false)
        .with_logger(logger)
        .build()
        .map_err(|error| broken(error.to_string()))?;
    // With a logger it would say everything.
    environment.set_log_level(LogLevel::Error);
    *loaded = Some((environment.clone(), library.clone()));
    Ok((environment, library))
}

/// Prints what ONNX Runtime has to say: names of a stranger's nodes among it, which do not command the terminal and
/// look like no other line.
fn tell(level: LogLevel, _category: &str, _id: &str, place: &str, message: &str) {
    if let Some(line) = line(level, place, message) {
        // Nobody is left to tell if that fails.
        let _ = writeln!(std::io::stderr(), "{line}");
    }
}

/// What is told, unless it is of no interest to users.
fn line(level: LogLevel, place: &str, message: &str) -> Option<String> {
    let is_told = matches!(level, LogLevel::Error | LogLevel::Fatal);
    let (message, place) = (printable_name(message.trim_end()), printable_name(place));
    is_told.then(|| format!("ONNX Runtime: {message} ({place})"))
}

/// The library to load; the bare name stands for the system's own search.
fn find_library(asked: Option<&Path>) -> Result<PathBuf> {
    let named = match asked {
        Some(path) => Some(path.to_path_buf()),
        None => std::env::var_os(LIBRARY_VARIABLE).filter(|value| !value.is_empty()).map(PathBuf::from),
    };
    if let Some(path) = named {
        return std::path::absolute(&path).ok().filter(|path| path.is_file()).ok_or(Error::NotFound { path });
    }
    let executable = std::env::current_exe().ok();
    let found = executable.iter().flat_map(|executable| executable.ancestors().skip(1)).enumerate().find_map(
        |(level, folder)| {
            let places = match level {
                0 => vec![folder.to_path_buf()],
                1 => vec![folder.join("lib"), folder.join(".lejepa/onnxruntime")],
                _ => vec![folder.join(".lejepa/onnxruntime")],
            };
            places.iter().find_map(|place| library_in(place))
        },
    );
    Ok(found.unwrap_or_else(|| LIBRARY_NAME.into()))
}

/// `libonnxruntime.so`, or with a version behind it.
fn library_in(folder: &Path) -> Option<PathBuf> {
    let is_library = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name == LIBRARY_NAME || name.strip_prefix(LIBRARY_NAME).is_some_and(|rest| rest.starts_with('.'))
    };
    let entries = std::fs::read_dir(folder).ok()?;
    let mut libraries: Vec<PathBuf> =
        entries.flatten().map(|entry| entry.path()).filter(is_library).collect();
    libraries.sort();
    libraries.pop()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_messages_of_the_runtime_do_not_command_the_terminal() {
        let said = line(LogLevel::Error, "run.cc:1", "node \u{1b}[2J\nverdict: healthy failed\n").unwrap();
        assert_eq!(said, "ONNX Runtime: node \\u001b[2J\\u000averdict: healthy failed (run.cc:1)");
        assert_eq!(line(LogLevel::Warning, "", "a node"), None);
    }
}
