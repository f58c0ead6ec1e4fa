//! What computes: results of another build of the program are not taken for its own.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::sync::LazyLock;

/// Bytes that are read at once.
const BUFFER: usize = 1 << 20;

/// A hash of the running program, or its version where the file cannot be read. A version alone would have to
/// be raised by hand with every change of a probe, and be forgotten once.
pub(crate) fn program() -> &'static str {
    static PROGRAM: LazyLock<String> =
        LazyLock::new(|| hash().unwrap_or_else(|| format!("lejepa {}", env!("CARGO_PKG_VERSION"))));
    &PROGRAM
}

fn hash() -> Option<String> {
    // The running file, also after another was put in its place.
    let linux = std::path::Path::new("/proc/self/exe");
    let file = File::open(linux).or_else(|_| File::open(std::env::current_exe()?)).ok()?;
    let (mut reader, mut hasher) = (BufReader::with_capacity(BUFFER, file), blake3::Hasher::new());
    loop {
        let read = reader.fill_buf().ok()?;
        if read.is_empty() {
            break;
        }
        hasher.update(read);
        let length = read.len();
        reader.consume(length);
    }
    Some(hasher.finalize().to_hex()[..24].to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_running_program_has_a_hash_that_stays() {
        assert_eq!(program().len(), 24);
        assert_eq!(Some(program().to_owned()), hash());
    }
}
