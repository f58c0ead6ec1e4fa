//! The folder of a clip that says of what its masks are, so that they are not made again.

use std::path::{Path, PathBuf};

use lejepa_data::{Claim, regular_file};

use crate::Result;
use crate::clip_run::MASKS;
use crate::film::FILMS;

/// A folder with masks and films of one clip.
#[derive(Debug, Clone)]
pub struct ClipFolder {
    path: PathBuf,
}

/// In the folder: the name of what its masks are of, and what every file holds.
const MARK: &str = "cell.txt";

impl ClipFolder {
    /// A folder that need not be there yet.
    pub fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether anything is in its place.
    pub fn is_there(&self) -> bool {
        self.path.symlink_metadata().is_ok()
    }

    /// Whether [`Self::begin`] made it, and nobody else.
    pub fn is_marked(&self) -> bool {
        self.mark().is_file()
    }

    /// Whether all is there that was written under a name, and as it was written.
    pub fn holds(&self, name: &str) -> bool {
        let found = regular_file::read_to_string(&self.mark()).unwrap_or_default();
        found.lines().next() == Some(name) && self.listing(name).is_ok_and(|listing| listing == found)
    }

    /// Marks it as one of these.
    pub fn begin(&self, claim: &Claim) -> Result<()> {
        Ok(claim.write(&self.mark(), b"begun\n")?)
    }

    /// Notes that all is there, under a name.
    pub fn finish(&self, claim: &Claim, name: &str) -> Result<()> {
        Ok(claim.write(&self.mark(), self.listing(name)?.as_bytes())?)
    }

    /// Removes what was written into it, all or nothing. The folder stays if somebody has put something else there.
    pub fn remove(&self, claim: &Claim) -> Result<()> {
        let mut own = self.results()?;
        own.push(self.mark());
        own.iter().try_for_each(|path| claim.check(path))?;
        own.iter().try_for_each(|path| claim.remove(path))?;
        let _ = std::fs::remove_dir(self.path.join(MASKS)).and_then(|()| std::fs::remove_dir(&self.path));
        Ok(())
    }

    fn mark(&self) -> PathBuf {
        self.path.join(MARK)
    }

    /// What stands in the mark once all is there. Masks that were lost or damaged since make another one.
    fn listing(&self, name: &str) -> Result<String> {
        let mut lines = Vec::new();
        for path in self.results()? {
            let failed = |source| lejepa_data::Error::Io { action: "read", path: path.clone(), source };
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let content = regular_file::read(&path).map_err(failed)?;
            lines.push(format!("{} {name}\n", &blake3::hash(&content).to_hex()[..32]));
        }
        lines.sort_unstable();
        Ok(format!("{name}\n{}", lines.concat()))
    }

    /// Masks and films that are there. Others' files beside them are in nobody's way.
    fn results(&self) -> Result<Vec<PathBuf>> {
        let mut results = Vec::new();
        for folder in [self.path.clone(), self.path.join(MASKS)] {
            let failed = |source| lejepa_data::Error::Io { action: "read", path: folder.clone(), source };
            let entries = match std::fs::read_dir(&folder) {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                entries => entries.map_err(failed)?,
            };
            for entry in entries {
                let entry = entry.map_err(failed)?;
                let name = entry.file_name().to_string_lossy().into_owned();
                let is_own = FILMS.contains(&&*name) || folder.ends_with(MASKS) && name.ends_with(".png");
                if is_own && !entry.file_type().map_err(failed)?.is_dir() {
                    results.push(entry.path());
                }
            }
        }
        Ok(results)
    }
}

#[cfg(test)]
mod tests {
    use lejepa_data::{Job, Overwrite};

    use super::*;

    #[test]
    fn a_folder_holds_what_was_finished_until_a_file_changes() {
        let place = tempfile::tempdir().unwrap();
        let folder = ClipFolder::new(place.path().join("clip"));
        let claim = Claim::of_folder(place.path(), &[], Job::new("test", []), Overwrite::Never).unwrap();
        assert!(!folder.is_there() && !folder.is_marked() && !folder.holds("one"));
        folder.begin(&claim).unwrap();
        let mask = folder.path().join(MASKS).join("00000.png");
        claim.write(&mask, b"a mask").unwrap();
        assert!(folder.is_marked() && !folder.holds("one"));
        folder.finish(&claim, "one").unwrap();
        assert!(folder.holds("one") && !folder.holds("other"));
        std::fs::write(folder.path().join("notes.txt"), "somebody's").unwrap();
        assert!(folder.holds("one"));
        std::fs::write(&mask, "another").unwrap();
        assert!(!folder.holds("one"));
        assert!(folder.remove(&claim).is_err() && mask.exists(), "somebody's mask");
        std::fs::write(&mask, "a mask").unwrap();
        folder.remove(&claim).unwrap();
        assert!(!mask.exists() && folder.path().join("notes.txt").exists());
    }
}
