//! How much memory packed data may ask for: a few bytes can promise any number of zeros.
//!
//! It bounds every array of an npz archive, IDX files, pages of Parquet files and chunks of HDF5 files. What is
//! not configurable stands where it is used: pixels of an image ([`Image::PIXEL_LIMIT`](crate::Image::PIXEL_LIMIT)),
//! bytes of its file and scans of a JPEG ([`Image::FILE_LIMIT`](crate::Image::FILE_LIMIT), `SCAN_LIMIT`), label files of MATLAB, objects of pickles, rows of Parquet files.

/// The setting's name.
pub(super) const FIELD: &str = "data.options.unpack_limit";

/// The most bytes that one piece of data may become.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct UnpackLimit {
    megabytes: u64,
}

impl UnpackLimit {
    /// Enough for all published sets of small images, and less than most machines have.
    const USUAL_MEGABYTES: u64 = 8192;

    /// As a user has set it, in megabytes.
    pub(super) fn new(megabytes: Option<u64>) -> Self {
        Self { megabytes: megabytes.unwrap_or(Self::USUAL_MEGABYTES) }
    }

    /// Refuses data that becomes larger.
    pub(super) fn check(self, what: &str, bytes: u64) -> Result<(), String> {
        if bytes <= self.bytes() {
            return Ok(());
        }
        Err(format!(
            "{what} asks for {} MB of memory, more than the limit of {} MB: set `{FIELD}` or --unpack-limit if \
             you trust it",
            bytes >> 20,
            self.megabytes
        ))
    }

    pub(super) fn bytes(self) -> u64 {
        self.megabytes.saturating_mul(1 << 20)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_named_with_how_to_raise_it() {
        assert!(UnpackLimit::new(None).check("x", 8 << 30).is_ok());
        let message = UnpackLimit::new(Some(1)).check("an array", 5 << 20).unwrap_err();
        assert!(
            message.starts_with("an array asks for 5 MB of memory, more than the limit of 1 MB: "),
            "{message}"
        );
        assert!(message.contains(FIELD) && message.contains("--unpack-limit"), "{message}");
        assert!(UnpackLimit::new(Some(u64::MAX)).check("x", u64::MAX).is_ok());
    }
}
