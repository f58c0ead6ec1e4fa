//! Whether a JPEG file holds all of its image. Decoders fill with grey what is missing, go on after garbage,
//! and say nothing, so its data is walked through here without being decoded.
//!
//! ```text
//! ff d8                        start
//! ff marker length content     segments, which may hold a whole JPEG of their own, such as a thumbnail
//! ff da length content data    a scan; in its data ff is followed by 00 or by a restart marker d0 to d7
//! ff d9                        end, after which there may be anything, such as the other pictures of an MPO
//! ```
//!
//! Kinds that decoders refuse (arithmetic, lossless, hierarchical) are left to them, with a look at the end.

mod bits;
mod frame;
mod huffman;
mod outline;
mod scan;

use frame::Frame;
use huffman::Table;
pub(super) use outline::Outline;
use scan::Scan;

use crate::{Error, Image, Result};

const START: u8 = 0xd8;
const END: u8 = 0xd9;
const SCAN: u8 = 0xda;
const TABLES: u8 = 0xc4;
const RESTART_INTERVAL: u8 = 0xdd;
/// Baseline, extended and progressive, with Huffman codes.
const WALKED_FRAMES: std::ops::RangeInclusive<u8> = 0xc0..=0xc2;
const PROGRESSIVE: u8 = 0xc2;
/// Some writers leave so many bytes between two parts; more are no accident of theirs.
const PADDING: usize = 2;

/// Refuses a file that lacks a part of its image.
pub(super) fn check(bytes: &[u8]) -> Result<()> {
    match (Walk { rest: bytes, ..Walk::default() }).walk() {
        Ok(()) => Ok(()),
        Err(Flaw::Cut) => Err(Error::Truncated { bytes: bytes.len() }),
        Err(Flaw::Damaged(problem)) => Err(Error::Damaged { problem }),
        Err(Flaw::Endless(scans)) => Err(Error::Scans { scans, limit: Image::SCAN_LIMIT }),
    }
}

/// Whether there are more pictures behind the first, by the extension that MPO files and phones use.
#[cfg(feature = "datasets")]
pub(super) fn has_more_pictures(bytes: &[u8]) -> bool {
    let mut walk = Walk { rest: bytes, ..Walk::default() };
    loop {
        match walk.next_marker() {
            Ok(START) => {}
            Ok(SCAN | END) | Err(_) => return false,
            Ok(marker) => match walk.segment() {
                Ok(content) if marker == 0xe2 && content.starts_with(b"MPF\0") => return true,
                Ok(_) => {}
                Err(_) => return false,
            },
        }
    }
}

/// What is wrong with a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flaw {
    /// It ends before the image does.
    Cut,
    /// It goes on, but not with its image.
    Damaged(&'static str),
    /// It has so many scans, more than anybody writes: each is a pass over all of the image.
    Endless(usize),
}

type Walked<T> = std::result::Result<T, Flaw>;

/// What is known between two segments.
#[derive(Default)]
struct Walk<'a> {
    rest: &'a [u8],
    /// Absent before it came, and of a kind that is not walked through.
    frame: Option<Frame>,
    dc: [Option<Table>; 4],
    ac: [Option<Table>; 4],
    /// Units between two restart markers; none with 0.
    restart_interval: usize,
    /// Scans that have begun.
    scans: usize,
}

impl<'a> Walk<'a> {
    fn walk(mut self) -> Walked<()> {
        if self.next_marker()? != START {
            return Err(Flaw::Damaged("it does not start as one"));
        }
        let mut begun = false;
        loop {
            let marker = self.next_marker()?;
            match marker {
                END => return self.frame.map_or(Ok(()), |frame| frame.check_complete()),
                START => return Err(Flaw::Damaged("another image starts before its end")),
                // Markers without content: a temporary one, and restarts where there is nothing to restart.
                0x01 | 0xd0..=0xd7 => continue,
                _ => {}
            }
            let content = self.segment()?;
            match marker {
                // `c4`, `c8` and `cc` are no frames.
                0xc0..=0xcf if !matches!(marker, TABLES | 0xc8 | 0xcc) => {
                    if std::mem::replace(&mut begun, true) {
                        return Err(Flaw::Damaged("it says twice what its size is"));
                    }
                    self.frame = if WALKED_FRAMES.contains(&marker) {
                        // What is too large is refused by its size.
                        Frame::parse(content, marker == PROGRESSIVE)
                            .filter(|frame| frame.pixels() <= Image::PIXEL_LIMIT)
                    } else {
                        None
                    };
                }
                TABLES => self.read_tables(content)?,
                RESTART_INTERVAL => {
                    let interval = content.first_chunk().ok_or(Flaw::Damaged("a segment is too short"))?;
                    self.restart_interval = u16::from_be_bytes(*interval).into();
                }
                SCAN => self.walk_scan(content)?,
                _ => {}
            }
        }
    }

    /// Goes on to the next marker and over it. Any number of `ff` may stand before it.
    fn next_marker(&mut self) -> Walked<u8> {
        let start = self.rest.iter().position(|&byte| byte == 0xff).ok_or(Flaw::Cut)?;
        if start > PADDING {
            return Err(Flaw::Damaged("there is something else between two of its parts"));
        }
        let after = self.rest[start..].iter().position(|&byte| byte != 0xff).ok_or(Flaw::Cut)? + start;
        let marker = self.rest[after];
        self.rest = &self.rest[after + 1..];
        if marker == 0 {
            Err(Flaw::Damaged("there is something else between two of its parts"))
        } else {
            Ok(marker)
        }
    }

    /// The content of the segment behind a marker.
    fn segment(&mut self) -> Walked<&'a [u8]> {
        let length = self.rest.first_chunk().map(|length| usize::from(u16::from_be_bytes(*length)));
        let (segment, rest) = self.rest.split_at_checked(length.ok_or(Flaw::Cut)?).ok_or(Flaw::Cut)?;
        self.rest = rest;
        segment.get(2..).ok_or(Flaw::Damaged("a segment is too short"))
    }

    fn read_tables(&mut self, mut content: &[u8]) -> Walked<()> {
        while let Some((&place, rest)) = content.split_first() {
            let (table, rest) = Table::parse(rest).ok_or(Flaw::Damaged("a table of codes is damaged"))?;
            let tables = if place >> 4 == 0 { &mut self.dc } else { &mut self.ac };
            if let Some(place) = tables.get_mut(usize::from(place & 0x0f)) {
                *place = Some(table);
            }
            content = rest;
        }
        Ok(())
    }

    /// Walks through the data of a scan; what cannot be is passed over.
    fn walk_scan(&mut self, header: &[u8]) -> Walked<()> {
        self.scans += 1;
        if self.scans > Image::SCAN_LIMIT {
            return Err(Flaw::Endless(self.scans));
        }
        let scan = self.frame.as_ref().and_then(|frame| Scan::parse(header, frame));
        if let (Some(frame), Some(scan)) = (&mut self.frame, scan)
            && scan.has_tables(&self.dc, &self.ac)
        {
            self.rest = scan.walk(self.rest, frame, (&self.dc, &self.ac), self.restart_interval)?;
            return Ok(());
        }
        self.frame = None;
        self.rest = bits::behind_data(self.rest).ok_or(Flaw::Cut)?;
        Ok(())
    }
}
