//! The bytes of a page, of which images are read one at a time.

use std::io::Read;
use std::ops::Range;
use std::sync::Arc;

use ::parquet::basic::Compression;
use bytes::Bytes;

use super::page::Problem;
use super::page_cache::PageCache;
use super::snappy::Blocks;

/// A page as it lies in the mapped file.
#[derive(Debug)]
pub(super) enum Content {
    Mapped(Bytes),
    Snappy(Blocks),
    /// Can only be unpacked as a whole, hence a cache.
    Zstd {
        packed: Bytes,
        length: usize,
        cache: Arc<PageCache>,
    },
}

impl Content {
    /// `length` is what the page's header says of the unpacked page.
    pub(super) fn new(
        packed: Bytes,
        codec: Compression,
        length: usize,
        cache: &Arc<PageCache>,
    ) -> Result<Self, Problem> {
        let content = match codec {
            // An empty page has nothing to unpack.
            _ if packed.is_empty() => Self::Mapped(packed),
            Compression::UNCOMPRESSED => Self::Mapped(packed),
            Compression::SNAPPY => Self::Snappy(Blocks::find(packed)?),
            Compression::ZSTD(_) => Self::Zstd { packed, length, cache: cache.clone() },
            codec => return Err(format!("compressed with {codec}")),
        };
        if content.len() != length {
            return Err(format!("a page of {} bytes, expected {length}", content.len()));
        }
        Ok(content)
    }

    /// Bytes of the unpacked page.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Mapped(bytes) => bytes.len(),
            Self::Snappy(blocks) => blocks.len(),
            Self::Zstd { length, .. } => *length,
        }
    }

    /// A part of the unpacked page.
    pub(super) fn read(&self, range: Range<usize>) -> Result<Bytes, Problem> {
        let (start, bytes) = self.around(&range)?;
        let (from, to) = (range.start.checked_sub(start), range.end.checked_sub(start));
        match (from, to) {
            (Some(from), Some(to)) if from <= to && to <= bytes.len() => Ok(bytes.slice(from..to)),
            _ => Err("a page ends too early".into()),
        }
    }

    /// At least a part of the unpacked page, and where that begins: what can be had for the same cost.
    pub(super) fn around(&self, range: &Range<usize>) -> Result<(usize, Bytes), Problem> {
        match self {
            Self::Mapped(bytes) => Ok((0, bytes.clone())),
            Self::Snappy(blocks) => blocks.unpack(range),
            Self::Zstd { packed, length, cache } => {
                // Where a page lies in memory tells it from all others.
                let key = packed.as_ptr().addr();
                match cache.get(key) {
                    Some(bytes) => Ok((0, bytes)),
                    None => Ok((0, cache.insert(key, unpack_zstd(packed, *length)?))),
                }
            }
        }
    }
}

/// Memory grows with what comes out, whatever the header promises.
fn unpack_zstd(packed: &[u8], length: usize) -> Result<Bytes, Problem> {
    let mut bytes = Vec::new();
    let limit = u64::try_from(length).map_or(u64::MAX, |length| length.saturating_add(1));
    let decoder = zstd::stream::read::Decoder::with_buffer(packed);
    let unpacked = decoder.and_then(|decoder| decoder.take(limit).read_to_end(&mut bytes));
    match unpacked {
        Ok(got) if got == length => Ok(bytes.into()),
        Ok(_) => Err(format!("a page does not unpack to {length} bytes")),
        Err(error) => Err(error.to_string()),
    }
}
