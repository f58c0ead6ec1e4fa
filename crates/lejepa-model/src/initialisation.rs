//! How a parameter's first values are drawn.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

/// The distribution of a parameter's first values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Initialisation {
    /// All zero.
    Zeros,
    /// All one.
    Ones,
    /// All this value.
    Constant(f64),
    /// Gaussian with this standard deviation.
    Normal(f64),
    /// Gaussian with this standard deviation, cut at -2 and 2 as in timm.
    TruncatedNormal(f64),
    /// Uniform in `[-1/sqrt(fan_in), 1/sqrt(fan_in)]`: PyTorch's default for linear layers and convolutions.
    FanIn(usize),
}

impl Initialisation {
    /// Draws `count` values for the parameter `name`. The values depend on the seed and the name
    /// alone, not on the order in which layers are made.
    pub(crate) fn draw(self, count: usize, seed: u64, name: &str) -> Vec<f32> {
        let mut generator = generator_for(seed, name);
        match self {
            Self::Zeros => vec![0.; count],
            Self::Ones => vec![1.; count],
            Self::Constant(value) => vec![value as f32; count],
            Self::Normal(deviation) => (0..count)
                .map(|_| {
                    let value: f64 = StandardNormal.sample(&mut generator);
                    (deviation * value) as f32
                })
                .collect(),
            Self::TruncatedNormal(deviation) => {
                (0..count).map(|_| truncated_normal(deviation, &mut generator) as f32).collect()
            }
            Self::FanIn(fan_in) => {
                let bound = 1. / (fan_in.max(1) as f64).sqrt();
                (0..count).map(|_| generator.random_range(-bound..=bound) as f32).collect()
            }
        }
    }
}

fn truncated_normal(deviation: f64, generator: &mut ChaCha8Rng) -> f64 {
    loop {
        let standard: f64 = StandardNormal.sample(generator);
        let value = deviation * standard;
        if value.abs() <= 2. {
            return value;
        }
    }
}

/// FNV-1a of the name, so that each parameter has a stream of its own.
fn generator_for(seed: u64, name: &str) -> ChaCha8Rng {
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;
    let stream = name.bytes().fold(OFFSET, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME));
    let mut generator = ChaCha8Rng::seed_from_u64(seed);
    generator.set_stream(stream);
    generator
}
