//! The one source of randomness: generators that are a pure function of the seed and of where they
//! are used, so that nothing depends on threads, order or an earlier run.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// What random numbers are for; each purpose has streams of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub enum Purpose {
    /// The order of samples in an epoch.
    Order = 1,
    /// Crops and colours of a sample's views.
    Views = 2,
    /// Which samples an evaluation draws.
    Evaluation = 3,
    /// Splits of data that comes without them.
    Split = 4,
    /// What takes the place of an image that cannot be used.
    Replacement = 5,
    /// The order of samples within one of several datasets.
    Mixture = 6,
    /// Which samples an inspection looks at.
    Inspection = 7,
    /// What a model drops while it trains.
    Dropping = 8,
    /// Which images a run is watched on.
    Watching = 9,
    /// Which training samples of a class a few-shot probe sees.
    Shots = 10,
    /// Which images a report shows.
    Pictures = 11,
}

/// The generator of the `index`-th and `part`-th use for a purpose.
pub fn generator(seed: u64, purpose: Purpose, index: u64, part: u64) -> ChaCha8Rng {
    let mut key = [0; 32];
    for (bytes, word) in key.chunks_exact_mut(8).zip([seed, purpose as u64, index, part]) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
    ChaCha8Rng::from_seed(key)
}
