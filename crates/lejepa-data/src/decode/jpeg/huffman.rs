//! The codes of a scan: what each run of bits stands for.

/// Codes up to this length are looked up at once.
const QUICK: u32 = 10;

/// One table of codes.
#[derive(Debug, Clone)]
pub(super) struct Table {
    /// By the next `QUICK` bits: length and symbol; 0 for longer codes and none.
    quick: Vec<u16>,
    symbols: Vec<u8>,
    /// By length: the first code, the number of codes, and the place of the first one's symbol.
    lengths: [(u32, u32, usize); 17],
}

impl Table {
    /// Reads a table, and what is behind it: the number of codes of every length, then their symbols.
    pub(super) fn parse(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (counts, rest) = bytes.split_first_chunk::<16>()?;
        let total = counts.iter().map(|&count| usize::from(count)).sum();
        let (symbols, rest) = rest.split_at_checked(total)?;
        let mut table =
            Self { quick: vec![0; 1 << QUICK], symbols: symbols.to_vec(), lengths: [(0, 0, 0); 17] };
        let (mut code, mut place) = (0u32, 0);
        for (length, &count) in (1u32..).zip(counts) {
            let count = u32::from(count);
            if code + count > 1 << length {
                return None;
            }
            table.lengths[length as usize] = (code, count, place);
            for number in 0..count {
                if length <= QUICK {
                    let first = ((code + number) << (QUICK - length)) as usize;
                    let entry = (length as u16) << 8 | u16::from(symbols[place + number as usize]);
                    table.quick[first..first + (1 << (QUICK - length))].fill(entry);
                }
            }
            place += count as usize;
            code = (code + count) << 1;
        }
        Some((table, rest))
    }

    /// The code that the next 16 bits begin with: its length and what it stands for.
    pub(super) fn find(&self, next: u32) -> Option<(u32, u8)> {
        let entry = self.quick[(next >> (16 - QUICK)) as usize & ((1 << QUICK) - 1)];
        if entry != 0 {
            return Some((u32::from(entry >> 8), entry as u8));
        }
        (QUICK + 1..=16).find_map(|length| {
            let (first, count, place) = self.lengths[length as usize];
            let number = (next >> (16 - length)).checked_sub(first).filter(|&number| number < count)?;
            Some((length, *self.symbols.get(place + number as usize)?))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_and_long_codes_are_found() {
        // One code of one bit, one of two, and two of twelve.
        let mut bytes = [0; 16];
        (bytes[0], bytes[1], bytes[11]) = (1, 1, 2);
        let bytes = [&bytes[..], b"abcd", b"rest"].concat();
        let (table, rest) = Table::parse(&bytes).unwrap();
        assert_eq!(rest, b"rest");
        assert_eq!(table.find(0b0111_1111_1111_1111), Some((1, b'a')));
        assert_eq!(table.find(0b1011_1111_1111_1111), Some((2, b'b')));
        assert_eq!(table.find(0b1100_0000_0000_1111), Some((12, b'c')));
        assert_eq!(table.find(0b1100_0000_0001_0000), Some((12, b'd')));
        assert_eq!(table.find(0b1111_1111_1111_1111), None);
    }

    #[test]
    fn more_codes_than_there_can_be_are_refused() {
        let mut bytes = [0; 40];
        bytes[0] = 3;
        assert!(Table::parse(&bytes).is_none());
        assert!(Table::parse(&[0; 15]).is_none());
    }
}
