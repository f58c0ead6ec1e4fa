//! The folder of a clip that says of what its masks are, so that they are not made again.

use std::path::{Path, PathBuf};

use lejepa_data::write_atomically;

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
        let found = std::fs::read_to_string(self.mark()).unwrap_or_default();
        found.lines().next() == Some(name) && self.listing(name).is_ok_and(|listing| listing == found)
    }

    /// Marks it as one of these.
    pub fn begin(&self) -> Result<()> {
        Ok(write_atomically(&self.mark(), |file| writeln!(file, "begun"))?)
    }

    /// Notes that all is there, under a name.
    pub fn finish(&self, name: &str) -> Result<()> {
        let listing = self.listing(name)?;
        Ok(write_atomically(&self.mark(), |file| write!(file, "{listing}"))?)
    }

    /// Removes it with all that is in it.
    pub fn remove(&self) -> Result<()> {
        let failed = |source| lejepa_data::Error::Io { action: "remove", path: self.path.clone(), source };
        Ok(std::fs::remove_dir_all(&self.path).map_err(failed)?)
    }

    fn mark(&self) -> PathBuf {
        self.path.join(MARK)
    }

    /// What stands in the mark once all is there. Masks that were lost or damaged since make another one.
    fn listing(&self, name: &str) -> Result<String> {
        let mut lines = Vec::new();
        for folder in [self.path.clone(), self.path.join(MASKS)] {
            let failed = |source| lejepa_data::Error::Io { action: "read", path: folder.clone(), source };
            for entry in std::fs::read_dir(&folder).map_err(failed)? {
                let entry = entry.map_err(failed)?;
                let name = entry.file_name().to_string_lossy().into_owned();
                // Others' files beside them are in nobody's way.
                let is_own = FILMS.contains(&&*name) || folder.ends_with(MASKS) && name.ends_with(".png");
                if is_own && entry.file_type().map_err(failed)?.is_file() {
                    let content = std::fs::read(entry.path()).map_err(failed)?;
                    lines.push(format!("{} {name}\n", &blake3::hash(&content).to_hex()[..32]));
                }
            }
        }
        lines.sort_unstable();
        Ok(format!("{name}\n{}", lines.concat()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_holds_what_was_finished_until_a_file_changes() {
        let place = tempfile::tempdir().unwrap();
        let folder = ClipFolder::new(place.path().join("clip"));
        assert!(!folder.is_there() && !folder.is_marked() && !folder.holds("one"));
        folder.begin().unwrap();
        let mask = folder.path().join(MASKS).join("00000.png");
        write_atomically(&mask, |file| write!(file, "a mask")).unwrap();
        assert!(folder.is_marked() && !folder.holds("one"));
        folder.finish("one").unwrap();
        assert!(folder.holds("one") && !folder.holds("other"));
        std::fs::write(folder.path().join("notes.txt"), "somebody's").unwrap();
        assert!(folder.holds("one"));
        std::fs::write(&mask, "another").unwrap();
        assert!(!folder.holds("one"));
        folder.remove().unwrap();
        assert!(!folder.is_there());
    }
}
