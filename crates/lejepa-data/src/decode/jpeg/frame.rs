//! The size of an image, and how much of every component has come.

use super::{Flaw, Walked};

/// What a frame's header says.
#[derive(Debug)]
pub(super) struct Frame {
    height: usize,
    width: usize,
    pub(super) progressive: bool,
    pub(super) components: Vec<Component>,
}

/// One of the planes of an image.
#[derive(Debug)]
pub(super) struct Component {
    pub(super) id: u8,
    /// Blocks of 8x8 in a unit of several components.
    across: usize,
    down: usize,
    /// Of every coefficient, how many of its last bits are still to come.
    missing_bits: [u8; 64],
    /// Of every block, which coefficients are not zero as far as it is known. For progressive images.
    pub(super) occupied: Vec<u64>,
}

/// A coefficient of which nothing has come.
const NOTHING: u8 = u8::MAX;

impl Frame {
    pub(super) fn parse(content: &[u8], progressive: bool) -> Option<Self> {
        let (&[_precision, h0, h1, w0, w1, count], rest) = content.split_first_chunk()?;
        let side = |bytes| usize::from(u16::from_be_bytes(bytes));
        let components =
            rest.as_chunks::<3>().0.iter().take(count.into()).map(|&[id, sampling, _table]| Component {
                id,
                across: usize::from(sampling >> 4),
                down: usize::from(sampling & 0x0f),
                missing_bits: [NOTHING; 64],
                occupied: Vec::new(),
            });
        let components: Vec<Component> = components.collect();
        let frame = Self { height: side([h0, h1]), width: side([w0, w1]), progressive, components };
        let is_possible =
            |component: &Component| (1..=4).contains(&component.across) && (1..=4).contains(&component.down);
        let is_whole = (1..=4).contains(&count) && frame.components.len() == usize::from(count);
        (is_whole && frame.pixels() > 0 && frame.components.iter().all(is_possible)).then_some(frame)
    }

    pub(super) fn pixels(&self) -> usize {
        self.height * self.width
    }

    fn most(&self) -> (usize, usize) {
        let most = |of: fn(&Component) -> usize| self.components.iter().map(of).max().unwrap_or(1);
        (most(|component| component.down), most(|component| component.across))
    }

    /// Rows and columns of units in a scan of several components, of which each has several blocks.
    pub(super) fn units(&self) -> (usize, usize) {
        let (down, across) = self.most();
        (self.height.div_ceil(8 * down), self.width.div_ceil(8 * across))
    }

    /// Blocks of a component in such a unit.
    pub(super) fn blocks_in_unit(&self, component: usize) -> usize {
        self.components[component].down * self.components[component].across
    }

    /// Rows and columns of blocks in a scan of one component.
    pub(super) fn blocks(&self, component: usize) -> (usize, usize) {
        let (down, across) = self.most();
        let Component { down: own_down, across: own_across, .. } = self.components[component];
        ((self.height * own_down).div_ceil(8 * down), (self.width * own_across).div_ceil(8 * across))
    }

    /// Which coefficients of a component's blocks came before.
    pub(super) fn take_occupied(&mut self, component: usize) -> Vec<u64> {
        let (rows, columns) = self.blocks(component);
        let mut occupied = std::mem::take(&mut self.components[component].occupied);
        occupied.resize(rows * columns, 0);
        occupied
    }

    /// Remembers that coefficients of a component have come, up to some of their last bits.
    pub(super) fn came(&mut self, component: usize, band: std::ops::RangeInclusive<usize>, missing: u8) {
        self.components[component].missing_bits[band].fill(missing);
    }

    /// An error if there is a component of which something has not come.
    pub(super) fn check_complete(&self) -> Walked<()> {
        let all = self.components.iter().flat_map(|component| component.missing_bits);
        if all.into_iter().all(|missing| missing == 0) {
            Ok(())
        } else {
            Err(Flaw::Damaged("it ends before all of its scans have come"))
        }
    }
}
