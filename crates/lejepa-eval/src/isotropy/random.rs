//! Where the experiment's randomness comes from: one generator per purpose and number.

use lejepa_data::{Purpose, generator};
use ndarray::Array2;
use rand::{Rng, RngCore};
use rand_distr::StandardNormal;

/// Added to all streams, so that none is one of those that draw shots.
const OFFSET: u64 = 0x1507_0000;

/// What is drawn.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Stream {
    Samples = 1,
    TestPoints = 2,
    Rotation = 3,
    LinearDraw = 4,
    SmoothDraw = 5,
    Queries = 6,
    Waves = 7,
}

/// The generator of the `index`-th use.
pub(crate) fn stream(seed: u64, stream: Stream, index: usize) -> impl RngCore {
    generator(seed, Purpose::Evaluation, index as u64, OFFSET + stream as u64)
}

/// Independent standard normal numbers.
pub(crate) fn normal(shape: (usize, usize), generator: &mut impl RngCore) -> Array2<f64> {
    Array2::from_shape_simple_fn(shape, || generator.sample(StandardNormal))
}
