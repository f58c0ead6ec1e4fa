//! The image files below a folder, found by all cores. Folders are read; files are not touched.
//!
//! Entries come in the order of their names, folder by folder. Links are followed. What is left out is counted:
//! hidden files and folders such as `.ipynb_checkpoints`, links that lead nowhere, pipes and devices.

use std::ffi::OsString;
use std::fs::{DirEntry, FileType};
use std::path::{Path, PathBuf};

use rayon::prelude::*;

use crate::{Error, Result};

const ENDINGS: [&str; 8] = ["jpg", "jpeg", "png", "webp", "bmp", "tif", "tiff", "gif"];

/// Images of a folder.
#[derive(Debug, Default)]
pub(super) struct Listing {
    /// Below the folder.
    pub(super) files: Vec<PathBuf>,
    hidden: LeftOut,
    lost: LeftOut,
    special: LeftOut,
}

/// What is not in a list: how much, and the first of it.
#[derive(Debug, Default)]
struct LeftOut {
    count: usize,
    first: Option<PathBuf>,
}

/// What an entry of a folder is to a list.
enum Kind {
    Image,
    Folder { by_link: bool },
    HiddenImage,
    HiddenFolder,
    LostLink,
    Special,
    Other,
}

impl Listing {
    /// Looks into a folder and those below it.
    pub(super) fn of(folder: &Path) -> Result<Self> {
        Self::below(folder, &[])
    }

    /// `followed` are the folders that links have led to.
    fn below(folder: &Path, followed: &[PathBuf]) -> Result<Self> {
        let mut entries = entries(folder)?;
        entries.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        let look = |(name, kind): &(OsString, Kind)| match kind {
            Kind::Folder { by_link } => {
                let path = folder.join(name);
                let mut followed = followed.to_vec();
                if *by_link {
                    followed.push(target(folder, &path, &followed)?);
                }
                Self::below(&path, &followed).map(Some)
            }
            Kind::HiddenFolder => Ok(holds_images(&folder.join(name)).then(Self::default)),
            _ => Ok(None),
        };
        let folders: Vec<Option<Self>> = entries.par_iter().map(look).collect::<Result<_>>()?;
        let mut listing = Self::default();
        for ((name, kind), below) in entries.into_iter().zip(folders) {
            let name = Path::new(&name);
            match (kind, below) {
                (Kind::Image, _) => listing.files.push(name.into()),
                (Kind::Folder { .. }, Some(below)) => listing.append(name, below),
                (Kind::HiddenImage, _) | (Kind::HiddenFolder, Some(_)) => listing.hidden.add(1, name),
                (Kind::LostLink, _) => listing.lost.add(1, name),
                (Kind::Special, _) => listing.special.add(1, name),
                _ => {}
            }
        }
        Ok(listing)
    }

    fn append(&mut self, folder: &Path, below: Self) {
        self.files.extend(below.files.into_iter().map(|file| folder.join(file)));
        for (own, below) in [
            (&mut self.hidden, below.hidden),
            (&mut self.lost, below.lost),
            (&mut self.special, below.special),
        ] {
            if let Some(first) = below.first {
                own.add(below.count, &folder.join(first));
            }
        }
    }

    /// Says what is left out.
    pub(super) fn notes(&self, folder: &Path) -> Vec<String> {
        let kinds = [
            (&self.hidden, "hidden images and folders of images are left out"),
            (&self.lost, "links to images that are not there are left out"),
            (&self.special, "pipes and devices that are called like images are left out"),
        ];
        let said = kinds.into_iter().filter_map(|(left_out, what)| {
            let first = folder.join(left_out.first.as_ref()?);
            Some(format!("{} {what}, such as {}", left_out.count, first.display()))
        });
        said.collect()
    }
}

impl LeftOut {
    fn add(&mut self, count: usize, path: &Path) {
        self.count += count;
        self.first.get_or_insert_with(|| path.into());
    }
}

/// The first images below a folder, in the same order; no more folders are read than it takes.
pub(super) fn first_images(folder: &Path, count: usize) -> Vec<PathBuf> {
    let mut found = Vec::new();
    // What is still to be looked at, the next one last.
    let mut waiting = vec![(folder.to_path_buf(), Kind::Folder { by_link: false })];
    while let Some((path, kind)) = waiting.pop()
        && found.len() < count
    {
        match kind {
            Kind::Image => found.push(path),
            // Links to folders might lead in a circle.
            Kind::Folder { by_link: false } => {
                let mut below = entries(&path).unwrap_or_default();
                below.sort_unstable_by(|(one, _), (other, _)| other.cmp(one));
                waiting.extend(below.into_iter().map(|(name, kind)| (path.join(name), kind)));
            }
            _ => {}
        }
    }
    found
}

/// The folders directly below a folder that hold images, in any order.
pub(super) fn folders_of_images(folder: &Path) -> Result<Vec<String>> {
    let entries = entries(folder)?;
    let folders = entries
        .into_par_iter()
        .filter(|(name, kind)| matches!(kind, Kind::Folder { .. }) && holds_images(&folder.join(name)));
    Ok(folders.map(|(name, _)| name.to_string_lossy().into_owned()).collect())
}

/// Whether there are images directly in a folder.
pub(super) fn has_images(folder: &Path) -> Result<bool> {
    Ok(entries(folder)?.iter().any(|(_, kind)| matches!(kind, Kind::Image)))
}

/// Whether there is an image anywhere in a folder; none in one that cannot be read.
fn holds_images(folder: &Path) -> bool {
    let mut folders = vec![(folder.to_path_buf(), Vec::new())];
    while let Some((folder, followed)) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            match Kind::of(&entry) {
                Ok(Kind::Image) => return true,
                Ok(Kind::Folder { by_link }) => {
                    let path = entry.path();
                    let mut followed = followed.clone();
                    if by_link {
                        let Ok(target) = target(&folder, &path, &followed) else { continue };
                        followed.push(target);
                    }
                    folders.push((path, followed));
                }
                _ => {}
            }
        }
    }
    false
}

fn entries(folder: &Path) -> Result<Vec<(OsString, Kind)>> {
    let read = || {
        let entries = std::fs::read_dir(folder)?.map(|entry| {
            let entry = entry?;
            Ok((entry.file_name(), Kind::of(&entry)?))
        });
        entries.collect::<std::io::Result<_>>()
    };
    read().map_err(|source| Error::Io { action: "list", path: folder.into(), source })
}

impl Kind {
    fn of(entry: &DirEntry) -> std::io::Result<Self> {
        let name = entry.file_name();
        let is_image = is_image(Path::new(&name));
        let is_hidden = name.as_encoded_bytes().starts_with(b".");
        let kind = entry.file_type()?;
        if !kind.is_symlink() {
            return Ok(Self::new(kind, (is_image, is_hidden), false));
        }
        match std::fs::metadata(entry.path()) {
            Ok(metadata) => Ok(Self::new(metadata.file_type(), (is_image, is_hidden), true)),
            Err(_) if is_image => Ok(Self::LostLink),
            Err(_) => Ok(Self::Other),
        }
    }

    fn new(kind: FileType, (is_image, is_hidden): (bool, bool), by_link: bool) -> Self {
        match () {
            () if kind.is_dir() && is_hidden => Self::HiddenFolder,
            () if kind.is_dir() => Self::Folder { by_link },
            () if !is_image => Self::Other,
            () if !kind.is_file() => Self::Special,
            () if is_hidden => Self::HiddenImage,
            () => Self::Image,
        }
    }
}

/// Where a link leads to; an error if that is above it, from where there would be no end.
fn target(folder: &Path, link: &Path, followed: &[PathBuf]) -> Result<PathBuf> {
    let failed = |source| Error::Io { action: "list", path: link.into(), source };
    let target = std::fs::canonicalize(link).map_err(failed)?;
    let above = std::fs::canonicalize(folder).map_err(failed)?;
    if above.starts_with(&target) || followed.contains(&target) {
        return Err(failed(std::io::Error::other("it is a link to a folder above it")));
    }
    Ok(target)
}

/// Whether a name is that of an image file.
pub(super) fn is_image(path: &Path) -> bool {
    path.extension()
        .and_then(|ending| ending.to_str())
        .is_some_and(|ending| ENDINGS.iter().any(|known| known.eq_ignore_ascii_case(ending)))
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn folder(files: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for file in files {
            let path = folder.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        folder
    }

    fn files(folder: &Path) -> Vec<String> {
        let listing = Listing::of(folder).unwrap();
        listing.files.iter().map(|file| file.to_str().unwrap().to_string()).collect()
    }

    #[test]
    fn images_come_in_the_order_of_names_folder_by_folder() {
        let folder = folder(&["b/2.png", "b/10.JPG", "b.png", "a/deep/x.gif", "c.png", "c.txt", "b/a/1.png"]);
        let expected = ["a/deep/x.gif", "b/10.JPG", "b/2.png", "b/a/1.png", "b.png", "c.png"];
        assert_eq!(files(folder.path()), expected);
        let mut classes = folders_of_images(folder.path()).unwrap();
        classes.sort_unstable();
        assert_eq!(classes, ["a", "b"]);
        assert!(Listing::of(folder.path()).unwrap().notes(folder.path()).is_empty());
        let first = first_images(folder.path(), 3);
        assert!(
            first
                .iter()
                .map(|path| path.strip_prefix(folder.path()).unwrap())
                .eq(expected[..3].iter().map(Path::new))
        );
    }

    #[test]
    fn what_is_left_out_is_counted_and_one_of_it_named() {
        let folder = folder(&["dog/1.png", "dog/._1.png", ".ipynb_checkpoints/1.png", ".git/config"]);
        let dog = folder.path().join("dog");
        symlink("nowhere.png", dog.join("lost.png")).unwrap();
        symlink("/dev/zero", dog.join("endless.png")).unwrap();
        #[cfg(target_os = "linux")]
        crate::regular_file::make_pipe(&dog.join("pipe.png"));
        let listing = Listing::of(folder.path()).unwrap();
        assert_eq!(listing.files, [Path::new("dog/1.png")]);
        let notes = listing.notes(folder.path()).join("\n");
        assert!(notes.contains("2 hidden images and folders of images are left out, such as"), "{notes}");
        assert!(notes.contains(".ipynb_checkpoints\n"), "{notes}");
        assert!(
            notes.contains("1 links to images that are not there") && notes.contains("lost.png"),
            "{notes}"
        );
        #[cfg(target_os = "linux")]
        assert!(notes.contains("2 pipes and devices") && notes.contains("endless.png"), "{notes}");
    }

    #[test]
    fn links_are_followed_but_not_in_a_circle() {
        let (one, other) = (folder(&["cat/1.png"]), folder(&["fox/2.png", "3.png"]));
        symlink(other.path(), one.path().join("more")).unwrap();
        symlink(other.path().join("3.png"), one.path().join("z.png")).unwrap();
        assert_eq!(files(one.path()), ["cat/1.png", "more/3.png", "more/fox/2.png", "z.png"]);
        symlink(one.path(), other.path().join("back")).unwrap();
        symlink(".", other.path().join("here")).unwrap();
        for folder in [&one, &other] {
            let message = Listing::of(folder.path()).unwrap_err().to_string();
            assert!(message.contains("cannot list"), "{message}");
            assert!(folders_of_images(folder.path()).is_ok());
        }
    }
}
