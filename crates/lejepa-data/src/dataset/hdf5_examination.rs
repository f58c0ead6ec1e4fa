//! A look at an HDF5 file by another process, before this one opens it.
//!
//! The library that parses HDF5 files can crash, hang or take all memory on damaged ones, and it lives inside the
//! process. With an examiner installed, a process of its own reads a file first, as this one would: every image of
//! chunked data (one of each chunk that is too large to be kept), the first and the last of data that is not. If it does not come back, that is an error of the file.
//! A file that was found sound is not looked at again while the file system says that nobody touched it.
//!
//! Without an examiner, as in programs that use this library and install none, files are opened at once, and a
//! damaged one may end the process.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use super::ReadOptions;
use super::fingerprint::{FileFacts, settled_facts};
use super::hdf5::invalid;
use super::hdf5_file::read_all;
use crate::{Error, Result, write_atomically};

/// Starts the process that looks at HDF5 files: it calls [`examine_hdf5`] with the path that it is given.
#[derive(Debug, Clone)]
pub struct Hdf5Examiner {
    /// The program, most often this one.
    pub program: PathBuf,
    /// What makes it an examiner; the path, and names and limit as `--images`, `--labels` and `--unpack-limit`
    /// follow.
    pub arguments: Vec<OsString>,
    /// A folder to remember sound files in, beyond this process.
    pub memo: Option<PathBuf>,
    /// The longest time without a sign of life.
    pub patience: Duration,
}

/// The exit code of a process that has found an error and lives.
const REFUSED: u8 = 3;
/// What it may take besides data: the program itself.
const OVERHEAD: u64 = 2 << 30;
/// Bytes of a message that are read.
const MESSAGE: u64 = 1 << 16;

static EXAMINER: OnceLock<Hdf5Examiner> = OnceLock::new();
/// What was found sound by this process, and the state it was in.
static SOUND: Mutex<BTreeMap<Question, FileFacts>> = Mutex::new(BTreeMap::new());

impl Hdf5Examiner {
    /// From now on, HDF5 files are looked at first. The first one that is installed stays.
    pub fn install(self) {
        let _ = EXAMINER.set(self);
    }
}

/// What the other process does: reads a file as it would be read, with signs of life on standard output. Returns
/// its exit code, with the reason on standard error.
pub fn examine_hdf5(path: &Path, options: &ReadOptions) -> u8 {
    limit_resources(options.unpack_limit().bytes().saturating_add(OVERHEAD));
    let mut sign = || {
        let mut output = std::io::stdout();
        // Whoever asked may be gone.
        output.write_all(b".").and_then(|()| output.flush()).map_err(|_| Error::Stopped)
    };
    let problem = match read_all(path, options, &mut sign) {
        Ok(()) => return 0,
        Err(Error::Invalid { problem, .. }) => problem,
        Err(error) => error.to_string(),
    };
    let _ = std::io::stderr().write_all(problem.as_bytes());
    REFUSED
}

#[cfg(unix)]
fn limit_resources(bytes: u64) {
    use rustix::process::{Resource, getrlimit, setrlimit};
    // Where the system allows less already, that stays.
    for (resource, most) in [(Resource::As, bytes), (Resource::Core, 0)] {
        let mut limit = getrlimit(resource);
        limit.current = Some(limit.current.unwrap_or(u64::MAX).min(most));
        let _ = setrlimit(resource, limit);
    }
}

#[cfg(not(unix))]
fn limit_resources(_bytes: u64) {}

/// A file, and what is to be read of it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Question {
    path: PathBuf,
    images: Option<String>,
    labels: Option<String>,
}

/// Has a file looked at, unless it is known to be sound.
pub(super) fn examine(path: &Path, options: &ReadOptions) -> Result<()> {
    let Some(examiner) = EXAMINER.get() else { return Ok(()) };
    let path = std::path::absolute(path).unwrap_or_else(|_| path.into());
    let question = Question { path, images: options.images.clone(), labels: options.labels.clone() };
    let facts = FileFacts::of(std::slice::from_ref(&question.path));
    if question.is_known(facts, examiner) {
        return Ok(());
    }
    question.ask(examiner, options)?;
    for question in [Some(&question), question.unnamed().as_ref()].into_iter().flatten() {
        question.remember(facts, examiner);
    }
    Ok(())
}

impl Question {
    /// The same file without names, if these are the first ones that would be looked for.
    fn unnamed(&self) -> Option<Self> {
        let [images, labels] = [&self.images, &self.labels].map(Option::as_deref);
        (images == Some("images") && labels == Some("ans")).then(|| Self {
            path: self.path.clone(),
            images: None,
            labels: None,
        })
    }

    fn is_known(&self, facts: FileFacts, examiner: &Hdf5Examiner) -> bool {
        let sound = SOUND.lock().unwrap_or_else(PoisonError::into_inner);
        sound.get(self) == Some(&facts) || {
            let remembered = self.memo(examiner).and_then(|memo| crate::regular_file::read(&memo).ok());
            remembered.is_some_and(|remembered| settled_facts(&self.path) == Some(remembered))
        }
    }

    /// A memo that cannot be written costs time and no more.
    fn remember(&self, facts: FileFacts, examiner: &Hdf5Examiner) {
        SOUND.lock().unwrap_or_else(PoisonError::into_inner).insert(self.clone(), facts);
        let now = FileFacts::of(std::slice::from_ref(&self.path));
        if let (Some(memo), Some(settled)) = (self.memo(examiner), settled_facts(&self.path))
            && now == facts
        {
            let _ = write_atomically(&memo, |file| file.write_all(&settled));
        }
    }

    /// Where a sound file is remembered, for this version of the library alone.
    fn memo(&self, examiner: &Hdf5Examiner) -> Option<PathBuf> {
        let mut hasher = blake3::Hasher::new();
        let path = self.path.as_os_str().as_encoded_bytes();
        let names = [&self.images, &self.labels].map(|name| format!("{name:?}"));
        let version = format!("{:?} {}", crate::hdf5_version(), env!("CARGO_PKG_VERSION"));
        for text in [path, names[0].as_bytes(), names[1].as_bytes(), version.as_bytes()] {
            hasher.update(&(text.len() as u64).to_le_bytes()).update(text);
        }
        let name = format!("{}.sound", &hasher.finalize().to_hex()[..16]);
        Some(examiner.memo.as_ref()?.join(name))
    }

    /// An error if the other process found one, or did not come back.
    fn ask(&self, examiner: &Hdf5Examiner, options: &ReadOptions) -> Result<()> {
        let mut command = Command::new(&examiner.program);
        command.args(&examiner.arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let limit = options.unpack_limit.map(|limit| limit.to_string());
        let given = [("--images", &self.images), ("--labels", &self.labels), ("--unpack-limit", &limit)];
        for (name, value) in given {
            command.args(value.as_ref().map(|value| format!("{name}={value}")));
        }
        command.arg("--").arg(&self.path);
        let failed = |source| Error::Io { action: "start", path: examiner.program.clone(), source };
        let mut child = command.spawn().map_err(failed)?;
        let (ended, message) = wait(&mut child, examiner.patience);
        let status = match ended {
            Some(status) => status.map_err(failed)?,
            None => {
                let seconds = examiner.patience.as_secs();
                let problem = format!("it is damaged: the HDF5 library was stuck in it for {seconds} s");
                return Err(invalid(&self.path, problem));
            }
        };
        match status.code() {
            Some(0) => Ok(()),
            Some(code) if code == i32::from(REFUSED) => Err(invalid(&self.path, message)),
            Some(code) => {
                let problem = format!("the process that looked at it failed with status {code}: {message}");
                Err(invalid(&self.path, problem))
            }
            None => Err(self.ended_by_signal(status)),
        }
    }

    #[cfg(unix)]
    fn ended_by_signal(&self, status: ExitStatus) -> Error {
        use rustix::process::Signal;
        use std::os::unix::process::ExitStatusExt;
        let signal = status.signal().unwrap_or_default();
        let is = |signals: &[Signal]| signals.iter().any(|other| other.as_raw() == signal);
        if is(&[Signal::INT, Signal::TERM, Signal::HUP]) {
            return Error::Stopped;
        }
        let problem = if is(&[Signal::KILL]) {
            "the process that looked at it was killed, perhaps because memory was short".into()
        } else {
            format!("it is damaged: the HDF5 library crashed on it, by signal {signal}")
        };
        invalid(&self.path, problem)
    }

    #[cfg(not(unix))]
    fn ended_by_signal(&self, status: ExitStatus) -> Error {
        invalid(&self.path, format!("it is damaged: the HDF5 library crashed on it, {status}"))
    }
}

/// Waits as long as there are signs of life; without them the process is ended, and there is no status.
fn wait(child: &mut Child, patience: Duration) -> (Option<std::io::Result<ExitStatus>>, String) {
    let (output, errors) = (child.stdout.take(), child.stderr.take());
    let (sender, signs) = channel();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut bytes = [0; 256];
            let mut output = output;
            while output.as_mut().is_some_and(|output| output.read(&mut bytes).is_ok_and(|read| read > 0)) {
                let _ = sender.send(());
            }
        });
        let message = scope.spawn(move || {
            let mut message = Vec::new();
            let _ = errors.map(|errors| errors.take(MESSAGE).read_to_end(&mut message));
            String::from_utf8_lossy(&message).trim().to_string()
        });
        let is_stuck = loop {
            match signs.recv_timeout(patience) {
                Ok(()) => {}
                Err(RecvTimeoutError::Timeout) => break true,
                Err(RecvTimeoutError::Disconnected) => break !ends(child, patience),
            }
        };
        if is_stuck {
            let _ = child.kill();
        }
        let status = child.wait();
        ((!is_stuck).then_some(status), message.join().unwrap_or_default())
    })
}

/// Whether a process that says nothing more ends in time.
fn ends(child: &mut Child, patience: Duration) -> bool {
    let start = Instant::now();
    loop {
        match child.try_wait() {
            Ok(None) if start.elapsed() < patience => std::thread::sleep(Duration::from_millis(5)),
            Ok(None) => return false,
            _ => return true,
        }
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    /// What comes of a process that does this instead of reading.
    fn answer(script: &str, memo: Option<PathBuf>) -> Result<()> {
        let (program, arguments) = ("sh".into(), vec!["-c".into(), script.into()]);
        let patience = Duration::from_millis(500);
        let question = Question { path: "/data/galaxies.h5".into(), images: None, labels: None };
        question.ask(&Hdf5Examiner { program, arguments, memo, patience }, &ReadOptions::default())
    }

    fn problem(script: &str) -> String {
        answer(script, None).unwrap_err().to_string()
    }

    #[test]
    fn a_process_that_does_not_come_back_is_an_error_of_the_file() {
        assert!(answer("exit 0", None).is_ok());
        assert!(
            problem("kill -SEGV $$").contains("it is damaged: the HDF5 library crashed on it, by signal 11")
        );
        assert!(problem("kill -KILL $$").contains("was killed, perhaps because memory was short"));
        assert!(problem("exec sleep 60").contains("it is damaged: the HDF5 library was stuck in it"));
        assert!(problem("exec >&-; exec sleep 60").contains("the HDF5 library was stuck in it"));
        assert!(problem("exit 7").contains("failed with status 7"));
        let refused = problem("echo no dataset images >&2; exit 3");
        assert_eq!(refused, "not a valid HDF5 file (no dataset images): /data/galaxies.h5");
        // Ctrl-C reaches both.
        assert!(matches!(answer("kill -INT $$", None), Err(Error::Stopped)));
    }

    #[test]
    fn a_process_with_signs_of_life_may_take_its_time() {
        assert!(answer("for i in 1 2 3 4 5 6 7 8; do printf .; sleep 0.1; done", None).is_ok());
    }

    #[test]
    fn a_sound_file_is_remembered_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file.h5");
        std::fs::write(&path, "one").unwrap();
        let memo = Some(folder.path().join("memo"));
        let examiner =
            Hdf5Examiner { program: "sh".into(), arguments: Vec::new(), memo, patience: Duration::ZERO };
        let named =
            |name: Option<&str>| Question { path: path.clone(), images: name.map(Into::into), labels: None };
        let facts = || FileFacts::of(std::slice::from_ref(&path));
        let before = facts();
        named(None).remember(before, &examiner);
        assert!(named(None).is_known(before, &examiner));
        assert!(!named(Some("x")).is_known(before, &examiner), "other images were not looked at");
        std::fs::write(&path, "another").unwrap();
        assert!(!named(None).is_known(facts(), &examiner));
    }
}
