//! Bytes of an image file, of which there are never more than an image needs: a file of nothing but holes takes no
//! place on a disk, and all memory.

use std::path::Path;

use crate::{Error, Image, Result, regular_file};

/// All of a file.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>> {
    let failed = |source| Error::Io { action: "read", path: path.into(), source };
    let file = regular_file::open(path).map_err(failed)?;
    check_length(file.metadata().map_err(failed)?.len())?;
    regular_file::read_all(file, Image::FILE_LIMIT).map_err(failed)
}

/// Refuses a file of more bytes than any image needs.
pub(crate) fn check_length(bytes: u64) -> Result<()> {
    if bytes <= Image::FILE_LIMIT { Ok(()) } else { Err(Error::FileSize { bytes, limit: Image::FILE_LIMIT }) }
}

/// A copy of a part of something larger.
#[cfg(feature = "datasets")]
pub(crate) fn copied(part: &[u8]) -> Result<Vec<u8>> {
    check_length(part.len() as u64)?;
    Ok(part.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_holes_is_refused_by_its_length() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("holes.png");
        std::fs::File::create(&path).unwrap().set_len(1 << 42).unwrap();
        let message = read(&path).unwrap_err().to_string();
        assert_eq!(message, "an image file must have at most 1073741824 bytes, got: 4398046511104");
        let shown = Image::open(&path).unwrap_err();
        assert!(shown.to_string().contains("holes.png"), "{shown}");
        std::fs::write(&path, "bytes").unwrap();
        assert_eq!(read(&path).unwrap(), b"bytes");
    }
}
