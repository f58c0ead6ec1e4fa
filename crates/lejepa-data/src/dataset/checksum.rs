//! CRC-32, with which zip archives and Parquet files notice damage.

use flate2::Crc;
use rayon::prelude::*;

/// Large enough that nobody notices the threads.
const BLOCK: usize = 4 << 20;

/// An error if bytes are not those that a checksum was made of.
pub(super) fn check(bytes: &[u8], expected: u32) -> Result<(), String> {
    let got = of(bytes);
    if got == expected {
        Ok(())
    } else {
        Err(format!("it is damaged: its checksum is {got:08x}, expected {expected:08x}"))
    }
}

/// By all cores.
fn of(bytes: &[u8]) -> u32 {
    let blocks = bytes.par_chunks(BLOCK).map(|block| {
        let mut crc = Crc::new();
        crc.update(block);
        crc
    });
    let joined = blocks.reduce(Crc::new, |mut before, after| {
        before.combine(&after);
        before
    });
    joined.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_joined_in_their_order() {
        // The value that every description of CRC-32 gives.
        assert_eq!(of(b"123456789"), 0xcbf4_3926);
        assert_eq!(of(b""), 0);
        let long: Vec<u8> = (0..3 * BLOCK + 7).map(|place| ((place * 31) >> 3) as u8).collect();
        let mut whole = Crc::new();
        whole.update(&long);
        assert_eq!(of(&long), whole.sum());
        assert!(check(&long, whole.sum()).is_ok());
        assert!(check(&long[1..], whole.sum()).unwrap_err().contains("checksum"));
    }
}
