//! A hash of everything in a file but the entry that holds it.

use lejepa_data::CHECKSUM_KEY;

use super::number::model;
use super::wire::fields;
use super::{Damaged, text};

/// What a file says its hash is, beside what it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Checksum {
    pub(crate) stored: String,
    pub(crate) computed: String,
}

impl Checksum {
    /// `None` for a file that holds none.
    pub(super) fn read(whole: &[u8]) -> Result<Option<Self>, Damaged> {
        let (mut hasher, mut stored) = (blake3::Hasher::new(), None);
        for field in fields(whole) {
            let field = field?;
            match field.bytes().filter(|_| field.number == model::METADATA) {
                Some(entry) if text(entry, 1)? == Some(CHECKSUM_KEY) => {
                    stored = Some(text(entry, 2)?.unwrap_or_default().to_string());
                }
                _ => {
                    hasher.update(field.whole);
                }
            }
        }
        let computed = hasher.finalize().to_hex().to_string();
        Ok(stored.map(|stored| Self { stored, computed }))
    }

    pub(crate) fn holds(&self) -> bool {
        self.stored == self.computed
    }
}
