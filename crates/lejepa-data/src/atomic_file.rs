//! Files that are there whole or not at all.

use std::io::{BufWriter, Write};
use std::path::Path;

use crate::{Error, Result};

/// Writes a file under a temporary name beside `path`, syncs it and renames it into place. Whatever
/// was at `path` stays until the new content is safe. Missing parent folders are made.
pub fn write_atomically(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> std::io::Result<()>,
) -> Result<()> {
    let failed = |source| Error::Io { action: "write", path: path.into(), source };
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    std::fs::create_dir_all(folder).map_err(failed)?;
    let mut file = tempfile::Builder::new()
        .prefix(".writing-")
        .permissions(default_permissions())
        .tempfile_in(folder)
        .map_err(failed)?;
    let mut buffered = BufWriter::new(file.as_file_mut());
    write(&mut buffered).and_then(|()| buffered.flush()).map_err(failed)?;
    drop(buffered);
    file.as_file().sync_all().map_err(failed)?;
    file.persist(path).map_err(|error| failed(error.error))?;
    // The rename itself must survive a power cut.
    std::fs::File::open(folder).and_then(|folder| folder.sync_all()).map_err(failed)
}

/// Temporary files are private by default; a result is for everybody the umask lets in.
fn default_permissions() -> std::fs::Permissions {
    use std::os::unix::fs::PermissionsExt;
    std::fs::Permissions::from_mode(0o666)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_write_leaves_the_old_content_and_no_rubbish() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/result.json");
        write_atomically(&path, |file| file.write_all(b"old")).unwrap();
        let failure = write_atomically(&path, |file| {
            file.write_all(b"half of the new")?;
            Err(std::io::Error::other("disk full"))
        });
        assert!(failure.unwrap_err().to_string().contains("result.json"));
        assert_eq!(std::fs::read(&path).unwrap(), b"old");
        assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }
}
