//! A pass over the image: some coefficients of some components, block by block.

use super::bits::Bits;
use super::frame::Frame;
use super::huffman::Table;
use super::{Flaw, PADDING, Walked};

/// What a scan's header says.
#[derive(Debug)]
pub(super) struct Scan {
    parts: Vec<Part>,
    /// The first and the last coefficient.
    first: usize,
    last: usize,
    /// Whether it adds a bit to what is known.
    refines: bool,
    /// Bits that are left to later scans.
    missing_bits: u8,
}

/// A component with its tables.
#[derive(Debug, Clone, Copy)]
struct Part {
    component: usize,
    dc: usize,
    ac: usize,
}

type Tables = [Option<Table>; 4];

fn find(tables: &Tables, place: usize) -> Option<&Table> {
    tables.get(place).and_then(Option::as_ref)
}

impl Scan {
    pub(super) fn parse(content: &[u8], frame: &Frame) -> Option<Self> {
        let (&count, rest) = content.split_first()?;
        let (parts, rest) = rest.split_at_checked(2 * usize::from(count))?;
        let parts = parts.as_chunks::<2>().0.iter().map(|&[id, tables]| {
            let component = frame.components.iter().position(|component| component.id == id)?;
            Some(Part { component, dc: usize::from(tables >> 4), ac: usize::from(tables & 0x0f) })
        });
        let parts: Vec<Part> = parts.collect::<Option<_>>()?;
        let &[first, last, bits] = rest.first_chunk()?;
        let scan = if frame.progressive {
            let (first, last) = (usize::from(first), usize::from(last));
            Self { parts, first, last, refines: bits >> 4 > 0, missing_bits: bits & 0x0f }
        } else {
            Self { parts, first: 0, last: 63, refines: false, missing_bits: 0 }
        };
        let band = match (frame.progressive, scan.first) {
            (false, _) => true,
            (true, 0) => scan.last == 0,
            (true, _) => scan.first <= scan.last && scan.last < 64 && scan.parts.len() == 1,
        };
        ((1..=4).contains(&scan.parts.len()) && band).then_some(scan)
    }

    /// Whether the tables that it uses have come.
    pub(super) fn has_tables(&self, dc: &Tables, ac: &Tables) -> bool {
        self.parts.iter().all(|part| {
            let needs_dc = self.first == 0 && !self.refines;
            (!needs_dc || find(dc, part.dc).is_some()) && (self.last == 0 || find(ac, part.ac).is_some())
        })
    }

    /// Walks through the data; returns what follows it.
    pub(super) fn walk<'a>(
        &self,
        data: &'a [u8],
        frame: &mut Frame,
        (dc, ac): (&Tables, &Tables),
        restart_interval: usize,
    ) -> Walked<&'a [u8]> {
        let (rows, columns) = match self.parts[..] {
            [only] => frame.blocks(only.component),
            _ => frame.units(),
        };
        let mut blocks = Vec::new();
        for part in &self.parts {
            let count = if self.parts.len() == 1 { 1 } else { frame.blocks_in_unit(part.component) };
            blocks.extend(std::iter::repeat_n((find(dc, part.dc), find(ac, part.ac)), count));
        }
        let mut walker = Walker { bits: Bits::new(data), scan: self, run: 0 };
        // What came before is known block by block; bands belong to one component.
        let banded = (frame.progressive && self.first > 0).then(|| self.parts[0].component);
        let mut occupied = banded.map_or_else(Vec::new, |component| frame.take_occupied(component));
        let mut restarts = 0;
        for unit in 0..rows * columns {
            if restart_interval > 0 && unit > 0 && unit % restart_interval == 0 {
                walker = walker.restarted(restarts)?;
                restarts = (restarts + 1) % 8;
            }
            for (dc, ac) in &blocks {
                match (frame.progressive, occupied.get_mut(unit), dc, ac) {
                    (false, _, Some(dc), Some(ac)) => walker.block(dc, ac)?,
                    (true, None, Some(dc), _) if !self.refines => walker.value(dc)?,
                    (true, None, ..) => walker.bits.skip(1)?,
                    (true, Some(occupied), _, Some(ac)) if !self.refines => walker.band(ac, occupied)?,
                    (true, Some(occupied), _, Some(ac)) => walker.refined_band(ac, occupied)?,
                    _ => return Err(Flaw::Damaged("a table of codes is missing")),
                }
            }
        }
        for part in &self.parts {
            frame.came(part.component, self.first..=self.last, self.missing_bits);
        }
        if let Some(component) = banded {
            frame.components[component].occupied = occupied;
        }
        walker.bits.finish(PADDING)
    }
}

/// On its way through the blocks of a scan.
struct Walker<'a, 'b> {
    bits: Bits<'a>,
    scan: &'b Scan,
    /// Blocks, with this one, of which nothing more comes in the band.
    run: u32,
}

/// A code for many zeros and no value.
const SIXTEEN_ZEROS: u32 = 15;
const BEYOND: Flaw = Flaw::Damaged("a block of it has more than 64 values");

impl Walker<'_, '_> {
    /// Goes on behind the restart marker that is due.
    fn restarted(self, number: u8) -> Walked<Self> {
        let mut rest = self.bits.finish(0)?;
        while let [0xff, 0xff, ..] = rest {
            rest = &rest[1..];
        }
        match rest {
            [0xff, marker, data @ ..] if *marker == 0xd0 + number => {
                Ok(Self { bits: Bits::new(data), scan: self.scan, run: 0 })
            }
            [] | [0xff] => Err(Flaw::Cut),
            _ => Err(Flaw::Damaged("its data ends before the image does")),
        }
    }

    fn symbol(&mut self, table: &Table) -> Walked<(u32, u32)> {
        let next = self.bits.peek();
        let Some((length, symbol)) = table.find(next) else {
            // Zeros that are not there may be no code.
            self.bits.skip(16)?;
            return Err(Flaw::Damaged("its data has a code that means nothing"));
        };
        self.bits.skip(length)?;
        Ok((u32::from(symbol >> 4), u32::from(symbol & 0x0f)))
    }

    /// The mean of a block, as a difference to the one before.
    fn value(&mut self, table: &Table) -> Walked<()> {
        let (zeros, length) = self.symbol(table)?;
        if zeros > 0 {
            return Err(Flaw::Damaged("its data has a code that means nothing"));
        }
        self.bits.skip(length)
    }

    /// All of a block.
    fn block(&mut self, dc: &Table, ac: &Table) -> Walked<()> {
        self.value(dc)?;
        let mut place = 1;
        while place < 64 {
            match self.symbol(ac)? {
                (SIXTEEN_ZEROS, 0) => place += 16,
                (_, 0) => break,
                (zeros, length) => {
                    place += zeros + 1;
                    if place > 64 {
                        return Err(BEYOND);
                    }
                    self.bits.skip(length)?;
                }
            }
        }
        Ok(())
    }

    /// The first bits of a band of coefficients.
    fn band(&mut self, table: &Table, occupied: &mut u64) -> Walked<()> {
        if self.run > 0 {
            self.run -= 1;
            return Ok(());
        }
        let mut place = self.scan.first as u32;
        while place <= self.scan.last as u32 {
            match self.symbol(table)? {
                (SIXTEEN_ZEROS, 0) => place += 16,
                (run, 0) => {
                    self.run = (1 << run) - 1 + self.bits.take(run)?;
                    break;
                }
                (zeros, length) => {
                    place += zeros;
                    if place > self.scan.last as u32 {
                        return Err(BEYOND);
                    }
                    *occupied |= 1 << place;
                    self.bits.skip(length)?;
                    place += 1;
                }
            }
        }
        Ok(())
    }

    /// One bit more of a band: of every coefficient that is not zero, and of those that no longer are.
    fn refined_band(&mut self, table: &Table, occupied: &mut u64) -> Walked<()> {
        let (mut place, last) = (self.scan.first, self.scan.last);
        while self.run == 0 && place <= last {
            let (mut zeros, length) = self.symbol(table)?;
            if length > 0 {
                self.bits.skip(1)?;
            } else if zeros != SIXTEEN_ZEROS {
                // This block is the first of the run.
                self.run = (1 << zeros) + self.bits.take(zeros)?;
                break;
            }
            while place <= last {
                if *occupied >> place & 1 == 1 {
                    self.bits.skip(1)?;
                } else if zeros == 0 {
                    break;
                } else {
                    zeros -= 1;
                }
                place += 1;
            }
            if length > 0 && place <= last {
                *occupied |= 1 << place;
            }
            place += 1;
        }
        if self.run > 0 {
            self.run -= 1;
            let rest = (place..=last).filter(|place| *occupied >> place & 1 == 1).count() as u32;
            self.bits.skip(rest / 2)?;
            self.bits.skip(rest - rest / 2)?;
        }
        Ok(())
    }
}
