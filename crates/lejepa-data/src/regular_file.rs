//! Files that can be read to an end: pipes and devices would be waited for, or never end.

use std::fs::File;
use std::io::{Error, ErrorKind, Read, Result};
use std::path::Path;

/// Opens a file; an error if it is anything else, such as a pipe that nobody writes to.
pub fn open(path: &Path) -> Result<File> {
    let file = without_waiting().open(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(Error::new(ErrorKind::InvalidInput, "it is not a regular file"))
    }
}

/// All of a file.
pub fn read(path: &Path) -> Result<Vec<u8>> {
    read_all(open(path)?, u64::MAX)
}

/// All of an open file, or so much of it; an error where there is not the memory for it.
pub(crate) fn read_all(file: File, most: u64) -> Result<Vec<u8>> {
    let length = file.metadata().map_or(0, |metadata| metadata.len().min(most));
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(usize::try_from(length).unwrap_or(usize::MAX))?;
    file.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// All of a text file.
pub fn read_to_string(path: &Path) -> Result<String> {
    String::from_utf8(read(path)?).map_err(|_| Error::new(ErrorKind::InvalidData, "it is not UTF-8"))
}

#[cfg(unix)]
fn without_waiting() -> std::fs::OpenOptions {
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = File::options();
    let flags = rustix::fs::OFlags::NONBLOCK.bits();
    options.read(true).custom_flags(flags.cast_signed());
    options
}

#[cfg(not(unix))]
fn without_waiting() -> std::fs::OpenOptions {
    let mut options = File::options();
    options.read(true);
    options
}

/// A pipe that nobody writes to.
#[cfg(test)]
#[cfg(target_os = "linux")]
pub(crate) fn make_pipe(path: &Path) {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;

    #[test]
    fn pipes_devices_and_folders_are_errors_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe.png");
        make_pipe(&pipe);
        for path in [&pipe, Path::new("/dev/zero"), folder.path()] {
            assert!(read(path).unwrap_err().to_string().contains("not a regular file"), "{}", path.display());
        }
        let holes = folder.path().join("holes");
        File::create(&holes).unwrap().set_len(1 << 43).unwrap();
        assert_eq!(read(&holes).unwrap_err().kind(), ErrorKind::OutOfMemory);
        let file = folder.path().join("file");
        std::fs::write(&file, b"bytes").unwrap();
        assert_eq!(read(&file).unwrap(), b"bytes");
    }
}
