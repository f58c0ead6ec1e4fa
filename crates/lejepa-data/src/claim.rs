//! The right to write files that a user has named: nobody else writes them meanwhile, and what lies there is
//! replaced only if the same job made it, or if the user says so.
//!
//! A file tells by a mark inside what made it: in a comment of an SVG file, in a text chunk of a PNG file. For a
//! folder of files a ledger in it does.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use crate::ledger::{self, Ledger};
use crate::{AtomicFile, Error, Lock, Result, lock};

/// Whether what may be somebody's is replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overwrite {
    /// It is an error.
    Never,
    /// The user says so.
    Always,
}

/// A command with what it looks at: done again, it replaces its own earlier result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    mark: String,
}

/// Marks stand at the beginning of files.
const HEAD: u64 = 4096;

impl Job {
    /// That of a command, such as `pca`, on files and folders, however they are spelt.
    pub fn new<'a>(command: &str, inputs: impl IntoIterator<Item = &'a Path>) -> Self {
        let mut hasher = blake3::Hasher::new();
        for input in inputs {
            let place = input.canonicalize().unwrap_or_else(|_| input.into());
            hasher.update(place.as_os_str().as_encoded_bytes()).update(&[0]);
        }
        let inputs = &hasher.finalize().to_hex()[..16];
        Self { mark: format!("lejepa {command}, job {inputs}") }
    }

    /// The same of inputs with a content, told by a fingerprint: with another one it is another job.
    pub fn with_content(self, fingerprint: &str) -> Self {
        let content = &blake3::hash(fingerprint.as_bytes()).to_hex()[..16];
        Self { mark: format!("{} of {content}", self.mark) }
    }

    /// What is put into a file.
    pub fn mark(&self) -> &str {
        &self.mark
    }

    /// Whether it has made a file.
    fn owns(&self, path: &Path) -> bool {
        let mut head = Vec::new();
        let is_file = path.metadata().is_ok_and(|metadata| metadata.is_file());
        let read =
            is_file && File::open(path).and_then(|file| file.take(HEAD).read_to_end(&mut head)).is_ok();
        read && head.windows(self.mark.len()).any(|window| window == self.mark.as_bytes())
    }
}

/// Held while files are written.
#[derive(Debug)]
pub struct Claim {
    job: Job,
    overwrite: Overwrite,
    /// Of a folder.
    ledger: Option<Ledger>,
    folder: Option<PathBuf>,
    _locks: Vec<Lock>,
}

impl Claim {
    /// On files, all or none of them.
    pub fn of_files(paths: &[PathBuf], job: Job, overwrite: Overwrite) -> Result<Self> {
        let claim = Self::of_begun(paths, job, overwrite)?;
        paths.iter().try_for_each(|path| claim.check(path))?;
        Ok(claim)
    }

    /// The same where a stopped job may have left some of them: what is there is looked at when it is written.
    pub fn of_begun(paths: &[PathBuf], job: Job, overwrite: Overwrite) -> Result<Self> {
        if let Some(path) = paths.iter().find(|path| path.is_dir()) {
            return Err(Error::NotAFile { path: path.clone() });
        }
        let locks = paths.iter().map(|path| Lock::of_file(path)).collect::<Result<_>>()?;
        Ok(Self { job, overwrite, ledger: None, folder: None, _locks: locks })
    }

    /// On a folder, in which files and folders of these names are to be written. What else is written there is
    /// looked at then.
    pub fn of_folder(folder: &Path, names: &[String], job: Job, overwrite: Overwrite) -> Result<Self> {
        let locks = vec![Lock::of_folder(folder)?];
        let ledger = Some(Ledger::open(folder, job.mark()));
        let claim = Self { job, overwrite, ledger, folder: Some(folder.into()), _locks: locks };
        names.iter().try_for_each(|name| claim.check(&folder.join(name)))?;
        Ok(claim)
    }

    /// What is put into a file, so that the job knows it again.
    pub fn mark(&self) -> &str {
        self.job.mark()
    }

    /// Writes one of the files. What has come meanwhile stays, unless the user has said otherwise.
    pub fn write(&self, path: &Path, content: &[u8]) -> Result<()> {
        let mut file = AtomicFile::create(path)?;
        file.write_all(content).map_err(|source| Error::Io { action: "write", path: path.into(), source })?;
        self.commit(file)
    }

    /// The same for content that came bit by bit.
    pub fn commit(&self, mut file: AtomicFile) -> Result<()> {
        let may_replace = self.overwrite == Overwrite::Always || self.owns(file.path());
        if let Some(ledger) = &self.ledger {
            let path = file.path().to_path_buf();
            ledger.note(file.flushed()?, &path)?;
        }
        if may_replace { file.commit() } else { file.commit_new() }
    }

    /// Whether the job has made what lies there.
    fn owns(&self, path: &Path) -> bool {
        self.ledger.as_ref().map_or_else(|| self.job.owns(path), |ledger| ledger.has(path))
    }

    /// Sees to it that one of the files is not there: it would be of an earlier time.
    pub fn remove(&self, path: &Path) -> Result<()> {
        self.check(path)?;
        match std::fs::remove_file(path) {
            Err(source) if source.kind() != ErrorKind::NotFound => {
                Err(Error::Io { action: "remove", path: path.into(), source })
            }
            _ => Ok(()),
        }
    }

    /// Refuses what is there and may be somebody's.
    pub fn check(&self, path: &Path) -> Result<()> {
        let is_free =
            self.overwrite == Overwrite::Always || path.symlink_metadata().is_err() || self.owns(path);
        if is_free { Ok(()) } else { Err(Error::Exists { path: path.into() }) }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        // A job that has failed before its first file has made nothing.
        let Some(folder) = &self.folder else { return };
        let mut others = std::fs::read_dir(folder).into_iter().flatten().flatten().filter(|entry| {
            let name = entry.file_name();
            name != ledger::NAME && name != lock::ENDING
        });
        let ledger = folder.join(ledger::NAME);
        // A link or a pipe of that name is not of a job.
        let is_own = ledger.symlink_metadata().is_ok_and(|metadata| metadata.is_file());
        if is_own && others.next().is_none() {
            let _ = std::fs::remove_file(ledger);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_by_the_job_that_made_it_and_by_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("plot.svg");
        let (one, other) = (folder.path().join("one.npy"), folder.path().join("other.npy"));
        let draw = |input: &Path, content: &str, overwrite| {
            let job = Job::new("gauge", [input]);
            let claim = Claim::of_files(std::slice::from_ref(&path), job, overwrite)?;
            claim.write(&path, format!("<!-- {} -->{content}", claim.mark()).as_bytes())
        };
        draw(&one, "first", Overwrite::Never).unwrap();
        draw(&one, "second", Overwrite::Never).unwrap();
        assert!(matches!(draw(&other, "third", Overwrite::Never), Err(Error::Exists { .. })));
        assert!(std::fs::read_to_string(&path).unwrap().ends_with("second"));
        draw(&other, "third", Overwrite::Always).unwrap();
        std::fs::write(&path, "mine").unwrap();
        assert!(draw(&other, "fourth", Overwrite::Never).is_err());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "mine");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_comes_while_a_job_works_stays() {
        let folder = tempfile::tempdir().unwrap();
        let paths = ["mine.npy", "mine.csv"].map(|name| folder.path().join(name));
        let claim = Claim::of_files(&paths, Job::new("embed", []), Overwrite::Never).unwrap();
        std::fs::write(&paths[1], "yours").unwrap();
        claim.write(&paths[0], b"rows").unwrap();
        assert!(matches!(claim.write(&paths[1], b"table"), Err(Error::Exists { .. })));
        assert_eq!(std::fs::read_to_string(&paths[1]).unwrap(), "yours");
        let at_a_folder = Claim::of_begun(&[folder.path().into()], Job::new("embed", []), Overwrite::Always);
        assert!(matches!(at_a_folder, Err(Error::NotAFile { .. })));
        let second = Claim::of_files(&paths[1..], Job::new("embed", []), Overwrite::Always);
        assert!(matches!(second, Err(Error::Busy { .. })), "somebody is at work on it");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn what_is_no_ledger_is_neither_written_nor_removed() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("out").join(ledger::NAME);
        let sheet = folder.path().join("out/sheet.png");
        std::fs::create_dir(folder.path().join("out")).unwrap();
        crate::regular_file::make_pipe(&place);
        let job = Job::new("pca", []);
        let claim = Claim::of_folder(&folder.path().join("out"), &[], job, Overwrite::Always).unwrap();
        assert!(matches!(claim.write(&sheet, b"drawn"), Err(Error::NotOwn { path }) if path == place));
        drop(claim);
        assert!(place.symlink_metadata().is_ok() && !sheet.exists());
    }

    #[test]
    fn a_folder_belongs_to_the_job_that_began_in_it() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("pictures");
        let names = ["sheet.png".to_string()];
        let claim = |input: &str, overwrite| {
            Claim::of_folder(&folder, &names, Job::new("pca", [Path::new(input)]), overwrite)
        };
        drop(claim("photos", Overwrite::Never).unwrap());
        assert!(!folder.exists(), "nothing was drawn");
        let sheet = folder.join("sheet.png");
        claim("photos", Overwrite::Never).unwrap().write(&sheet, b"drawn").unwrap();
        claim("photos", Overwrite::Never).unwrap().write(&sheet, b"drawn otherwise").unwrap();
        let refused = claim("others", Overwrite::Never).unwrap_err().to_string();
        assert!(refused.ends_with("sheet.png"), "{refused}");
        claim("others", Overwrite::Always).unwrap().write(&sheet, b"of others").unwrap();
        claim("others", Overwrite::Never).unwrap();
        assert!(claim("photos", Overwrite::Never).is_err());
        // What the user has put into the place of a picture, before and while there is drawn.
        std::fs::write(&sheet, "mine").unwrap();
        assert!(claim("others", Overwrite::Never).is_err());
        std::fs::remove_file(&sheet).unwrap();
        let drawing = claim("others", Overwrite::Never).unwrap();
        for theirs in [sheet.clone(), folder.join("1/mask.png")] {
            std::fs::create_dir_all(theirs.parent().unwrap()).unwrap();
            std::fs::write(&theirs, "mine").unwrap();
            assert!(matches!(drawing.write(&theirs, b"of others"), Err(Error::Exists { .. })));
            assert_eq!(std::fs::read_to_string(&theirs).unwrap(), "mine");
        }
        drop(drawing);
        // What else lies there is in nobody's way.
        let theirs = root.path().join("theirs");
        std::fs::create_dir(&theirs).unwrap();
        std::fs::write(theirs.join("holiday.png"), "mine").unwrap();
        let job = Job::new("pca", []);
        Claim::of_folder(&theirs, &names, job.clone(), Overwrite::Never).unwrap();
        assert!(
            Claim::of_folder(&theirs, &["holiday.png".into()], Job::new("x", []), Overwrite::Never).is_err()
        );
    }
}
