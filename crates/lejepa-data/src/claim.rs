//! The right to write files that a user has named: nobody else writes them meanwhile, and what lies there is
//! replaced only if the same job made it, or if the user says so.
//!
//! A ledger in a file's folder tells what made it and what it held then: what was edited or
//! damaged since is somebody's.

use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use crate::atomic_file::folder_of;
use crate::ledger::{self, Ledger};
use crate::{AtomicFile, Error, Lock, Result, lock, write_atomically};

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

    /// Its name, which may stand in a file for people.
    pub fn mark(&self) -> &str {
        &self.mark
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

    /// The same for a job that is known better by now.
    pub fn become_job(&mut self, job: Job) {
        self.ledger = self.folder.as_ref().map(|folder| Ledger::open(folder, job.mark()));
        self.job = job;
    }

    /// What may be put into a file, so that people know what made it.
    pub fn mark(&self) -> &str {
        self.job.mark()
    }

    /// Writes one of the files. What has come meanwhile stays, unless the user has said otherwise.
    pub fn write(&self, path: &Path, content: &[u8]) -> Result<()> {
        self.refuse_links(path)?;
        let mut file = AtomicFile::create(path)?;
        file.write_all(content).map_err(|source| Error::Io { action: "write", path: path.into(), source })?;
        self.commit(file)
    }

    /// The same for content that came bit by bit.
    pub fn commit(&self, mut file: AtomicFile) -> Result<()> {
        self.refuse_links(file.path())?;
        let may_replace = self.overwrite == Overwrite::Always || self.owns(file.path());
        let path = file.path().to_path_buf();
        self.with_ledger(&path, |ledger| ledger.note(file.flushed()?, &path))?;
        if may_replace { file.commit() } else { file.commit_new() }
    }

    /// Writes what the job keeps for itself, so as not to compute it again: what is damaged there is replaced.
    pub fn keep(&self, path: &Path, content: &[u8]) -> Result<()> {
        self.refuse_links(path)?;
        if path.symlink_metadata().is_ok_and(|metadata| !metadata.is_file()) {
            return Err(Error::NotOwn { path: path.into() });
        }
        write_atomically(path, |file| file.write_all(content))
    }

    /// Whether the job has made what lies there, and nobody has changed it.
    pub fn owns(&self, path: &Path) -> bool {
        self.with_ledger(path, |ledger| ledger.has(path))
    }

    /// That of a folder of its own, or of the folder that a file lies in.
    fn with_ledger<T>(&self, path: &Path, look: impl FnOnce(&Ledger) -> T) -> T {
        match &self.ledger {
            Some(ledger) => look(ledger),
            None => look(&Ledger::open(folder_of(path), self.job.mark())),
        }
    }

    /// What is written into a folder of its own stays there: links that lead elsewhere are not followed.
    fn refuse_links(&self, path: &Path) -> Result<()> {
        let Some(folder) = &self.folder else { return Ok(()) };
        let is_below = |above: &&Path| *above != folder.as_path() && above.starts_with(folder);
        match path.ancestors().skip(1).take_while(is_below).find(|above| above.is_symlink()) {
            Some(link) => Err(Error::NotOwn { path: link.into() }),
            None => Ok(()),
        }
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
        self.refuse_links(path)?;
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
        // What the job has made, and somebody has drawn into since.
        draw(&other, "fifth", Overwrite::Always).unwrap();
        let edited = std::fs::read_to_string(&path).unwrap() + "mine";
        std::fs::write(&path, &edited).unwrap();
        assert!(draw(&other, "fifth", Overwrite::Never).is_err());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), edited);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2, "it and the ledger");
    }

    #[test]
    #[cfg(unix)]
    fn nothing_is_written_through_a_folder_that_is_a_link() {
        let root = tempfile::tempdir().unwrap();
        let [out, theirs] = ["out", "theirs"].map(|name| root.path().join(name));
        std::fs::create_dir(&theirs).unwrap();
        for overwrite in [Overwrite::Never, Overwrite::Always] {
            let claim = Claim::of_folder(&out, &[], Job::new("eval", []), overwrite).unwrap();
            let link = out.join("cells");
            let _ = std::os::unix::fs::symlink(&theirs, &link);
            let written = claim.write(&link.join("deep/1.json"), b"cell");
            assert!(matches!(written, Err(Error::NotOwn { path }) if path == link));
            claim.write(&out.join("report.json"), b"report").unwrap();
        }
        assert_eq!(std::fs::read_dir(&theirs).unwrap().count(), 0);
        // The folder itself may be one: the user has named it.
        let through = root.path().join("through");
        std::os::unix::fs::symlink(&out, &through).unwrap();
        let claim = Claim::of_folder(&through, &[], Job::new("eval", []), Overwrite::Never).unwrap();
        claim.write(&through.join("report.json"), b"another").unwrap();
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
