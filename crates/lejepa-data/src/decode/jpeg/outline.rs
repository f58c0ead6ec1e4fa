//! What decoding a JPEG file costs, told by its markers alone: its size, and how many scans it has. A scan is a
//! pass over all of the image and may be a dozen bytes long.

use super::{END, SCAN, START, TABLES, Walk, bits};
use crate::{Error, Result};

/// What a file asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in crate::decode) struct Outline {
    /// The largest sides that it names; none where none was found.
    pub(in crate::decode) sides: Option<(usize, usize)>,
    pub(in crate::decode) scans: usize,
}

impl Outline {
    /// Of the image at the beginning of a file. Where the file is damaged, decoders look for its next part on
    /// their own, so that all behind it counts that looks like a scan.
    pub(in crate::decode) fn of(bytes: &[u8]) -> Self {
        let mut outline = Self::default();
        let mut walk = Walk { rest: bytes, ..Walk::default() };
        if !outline.follow(&mut walk) {
            outline.scans += walk.rest.windows(2).filter(|pair| *pair == [0xff, SCAN]).count();
        }
        outline
    }

    /// Whether the image was followed to its end.
    fn follow(&mut self, walk: &mut Walk<'_>) -> bool {
        let mut begun = false;
        loop {
            match walk.next_marker() {
                Ok(END) => return true,
                Ok(START) if !std::mem::replace(&mut begun, true) => {}
                Ok(0x01 | 0xd0..=0xd7) => {}
                Ok(START) | Err(_) => return false,
                Ok(marker) => {
                    let Ok(content) = walk.segment() else { return false };
                    match marker {
                        0xc0..=0xcf if !matches!(marker, TABLES | 0xc8 | 0xcc) => self.frame(content),
                        SCAN => {
                            self.scans += 1;
                            let Some(rest) = bits::behind_data(walk.rest) else { return false };
                            walk.rest = rest;
                        }
                        _ => {}
                    }
                }
            }
        }
    }

    fn frame(&mut self, content: &[u8]) {
        if let Some(&[_precision, h0, h1, w0, w1]) = content.first_chunk() {
            let side = |bytes| usize::from(u16::from_be_bytes(bytes));
            let (height, width) = self.sides.unwrap_or_default();
            self.sides = Some((height.max(side([h0, h1])), width.max(side([w0, w1]))));
        }
    }

    /// Refuses more scans than that.
    pub(in crate::decode) fn check_scans(self, limit: usize) -> Result<()> {
        if self.scans <= limit { Ok(()) } else { Err(Error::Scans { scans: self.scans, limit }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The parts that matter here; nothing that could be decoded.
    fn file(scans: usize) -> Vec<u8> {
        let frame = b"\xff\xc2\x00\x0b\x08\x00\x10\x00\x20\x01\x01\x11\x00";
        let scan = b"\xff\xda\x00\x08\x01\x01\x00\x01\x3f\x00\x7f\xff\x00\x3f";
        [&b"\xff\xd8"[..], frame, &scan.repeat(scans), b"\xff\xd9"].concat()
    }

    #[test]
    fn scans_are_counted_up_to_the_end_of_the_image() {
        let more = [file(3), file(7)].concat();
        assert_eq!(Outline::of(&more), Outline { sides: Some((16, 32)), scans: 3 });
        let thumbnail = [&b"\xff\xd8\xff\xe1\x00\x0c"[..], &file(0)[..10], &file(2)[2..]].concat();
        assert_eq!(Outline::of(&thumbnail).scans, 2);
    }

    #[test]
    fn what_looks_like_a_scan_behind_damage_counts() {
        let whole = file(5);
        let damaged = [&whole[..15], b"something else", &whole[15..]].concat();
        assert_eq!(Outline::of(&damaged).scans, 5);
        assert_eq!(Outline::of(&whole[..whole.len() - 2]).scans, 5, "cut off");
        assert!(Outline::of(&whole).check_scans(4).is_err());
        assert!(Outline::of(b"").check_scans(0).is_ok());
    }
}
