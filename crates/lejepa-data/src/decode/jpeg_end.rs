//! Whether a JPEG file is there to its end. Decoders fill with grey what is missing, and say nothing.
//!
//! ```text
//! ff d8                        start
//! ff marker length content     segments, which may hold a whole JPEG of their own, such as a thumbnail
//! ff da length content data    a scan; in its data ff is followed by 00 or by a restart marker d0 to d7
//! ff d9                        end, after which there may be anything
//! ```

use crate::{Error, Result};

/// Refuses a file without its end.
pub(super) fn check(bytes: &[u8]) -> Result<()> {
    if reaches_end(bytes).is_some() { Ok(()) } else { Err(Error::Truncated { bytes: bytes.len() }) }
}

const END: u8 = 0xd9;
const SCAN: u8 = 0xda;

/// Walks from marker to marker; nothing if the bytes end before the image does.
fn reaches_end(bytes: &[u8]) -> Option<()> {
    let mut rest = bytes;
    loop {
        let marker = next_marker(&mut rest)?;
        match marker {
            END => return Some(()),
            // Markers without content: a temporary one, restarts, and the start itself.
            0x01 | 0xd0..=0xd8 => continue,
            _ => {}
        }
        let (length, _) = rest.split_first_chunk::<2>()?;
        rest = rest.get(usize::from(u16::from_be_bytes(*length))..)?;
        if marker == SCAN {
            skip_scan(&mut rest)?;
        }
    }
}

/// Skips to the next marker and over it; bytes that are none are passed over, as decoders do.
fn next_marker(rest: &mut &[u8]) -> Option<u8> {
    loop {
        let start = rest.iter().position(|&byte| byte == 0xff)?;
        let after = start + rest[start..].iter().position(|&byte| byte != 0xff)?;
        let marker = rest[after];
        *rest = &rest[after + 1..];
        if marker != 0 {
            return Some(marker);
        }
    }
}

/// Skips the data of a scan up to the marker that ends it.
fn skip_scan(rest: &mut &[u8]) -> Option<()> {
    loop {
        let start = rest.iter().position(|&byte| byte == 0xff)?;
        match rest.get(start + 1)? {
            0 | 0xd0..=0xd7 => *rest = &rest[start + 2..],
            0xff => *rest = &rest[start + 1..],
            _ => {
                *rest = &rest[start..];
                return Some(());
            }
        }
    }
}
