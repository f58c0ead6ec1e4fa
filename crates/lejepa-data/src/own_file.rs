//! Files that the program makes for itself in folders of others, such as locks: written only if they are what it
//! would have made. Through a link somebody else's file would be changed, and a pipe would be waited for.

use std::fs::{File, OpenOptions};
use std::path::Path;

use crate::{Error, Result};

/// Opens one with these options, at once or not at all.
pub fn open_own_file(path: &Path, action: &'static str, options: &mut OpenOptions) -> Result<File> {
    let file = at_once(options).open(path);
    let is_own = match &file {
        Ok(file) => file.metadata().is_ok_and(|metadata| metadata.is_file() && !has_other_names(&metadata)),
        // Why it failed is told as it is, unless that is a consequence of what lies there.
        Err(_) => path.symlink_metadata().map_or(true, |metadata| metadata.is_file()),
    };
    match is_own {
        true => file.map_err(|source| Error::Io { action, path: path.into(), source }),
        false => Err(Error::NotOwn { path: path.into() }),
    }
}

#[cfg(unix)]
fn at_once(options: &mut OpenOptions) -> &mut OpenOptions {
    use rustix::fs::OFlags;
    use std::os::unix::fs::OpenOptionsExt;
    options.custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed())
}

#[cfg(not(unix))]
fn at_once(options: &mut OpenOptions) -> &mut OpenOptions {
    options
}

/// Whether what is written would appear elsewhere too.
#[cfg(unix)]
fn has_other_names(metadata: &std::fs::Metadata) -> bool {
    std::os::unix::fs::MetadataExt::nlink(metadata) > 1
}

#[cfg(not(unix))]
fn has_other_names(_metadata: &std::fs::Metadata) -> bool {
    false
}

/// Puts one after the other at `place` what must not be opened there, and looks at what became of it.
#[cfg(test)]
#[cfg(target_os = "linux")]
pub(crate) fn with_each_trap(place: &Path, mut look: impl FnMut(&str)) {
    let folder = tempfile::tempdir_in(place.parent().unwrap()).unwrap();
    let (theirs, nowhere) = (folder.path().join("theirs"), folder.path().join("nowhere"));
    let traps: [(&str, &dyn Fn()); 5] = [
        ("link", &|| std::os::unix::fs::symlink(&theirs, place).unwrap()),
        ("link to nowhere", &|| std::os::unix::fs::symlink(&nowhere, place).unwrap()),
        ("second name", &|| std::fs::hard_link(&theirs, place).unwrap()),
        ("pipe", &|| crate::regular_file::make_pipe(place)),
        ("folder", &|| std::fs::create_dir(place).unwrap()),
    ];
    for (name, lay) in traps {
        std::fs::write(&theirs, "mine").unwrap();
        lay();
        look(name);
        assert_eq!(std::fs::read_to_string(&theirs).unwrap(), "mine", "{name}");
        assert!(!nowhere.exists(), "{name}");
        let _ = std::fs::remove_file(place).or_else(|_| std::fs::remove_dir(place));
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_written_through_links_or_into_pipes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let append = || open_own_file(&path, "write", File::options().create(true).append(true));
        with_each_trap(&path, |trap| {
            let message = append().unwrap_err().to_string();
            assert!(message.contains("remove it: ") && message.ends_with("log"), "{trap}: {message}");
        });
        append().unwrap();
        append().unwrap();
    }
}
