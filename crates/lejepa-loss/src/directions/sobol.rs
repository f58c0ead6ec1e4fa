//! Normal vectors from a scrambled Sobol sequence.

use std::sync::OnceLock;

use rand::RngCore;
use sobol::Sobol;
use sobol::params::JoeKuoD6;

use crate::{Error, Result, normal};

/// Joe and Kuo's direction numbers end here.
const MOST_DIMENSIONS: usize = 21_201;

/// What the smaller of their two tables holds; the larger one takes a while to unpack.
const COMMON_DIMENSIONS: usize = 1000;

/// The first points of the sequence, scrambled by the step's own numbers, as rows of `dim` normal values.
pub(super) fn normal_points(dim: usize, points: usize, step: u64) -> Result<Vec<f64>> {
    static COMMON: OnceLock<JoeKuoD6> = OnceLock::new();
    static ALL: OnceLock<JoeKuoD6> = OnceLock::new();
    if dim > MOST_DIMENSIONS {
        return Err(Error::Setting {
            field: "directions",
            expected: "gaussian above 21201 dimensions, where Sobol sequences end",
            got: dim.to_string(),
        });
    }
    let numbers = if dim <= COMMON_DIMENSIONS {
        COMMON.get_or_init(JoeKuoD6::standard)
    } else {
        ALL.get_or_init(JoeKuoD6::extended)
    };
    let mut generator = super::generator(step, 0);
    let seeds: Vec<u32> = (0..dim).map(|_| generator.next_u32()).collect();
    let sequence = Sobol::<u32>::new(dim, numbers).take(points);
    let scrambled = sequence.flat_map(|point| {
        point.into_iter().zip(seeds.clone()).map(|(x, seed)| scramble(x, seed)).collect::<Vec<_>>()
    });
    // The middle of a cell of 2^32.
    let probability = |x: u32| (f64::from(x) + 0.5) / 2f64.powi(32);
    Ok(scrambled.map(|x| normal::quantile(probability(x))).collect())
}

/// Owen's scrambling: every bit is flipped or not by a hash of the bits above it, so that points stay
/// evenly spread but for no two seeds in the same way (Laine and Karras' hash with Vegdahl's constants).
fn scramble(x: u32, seed: u32) -> u32 {
    let mut x = x.reverse_bits();
    x ^= x.wrapping_mul(0x3d20_adea);
    x = x.wrapping_add(seed);
    x = x.wrapping_mul((seed >> 16) | 1);
    x ^= x.wrapping_mul(0x0552_6c56);
    x ^= x.wrapping_mul(0x53a2_2864);
    x.reverse_bits()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_power_of_two_of_scrambled_points_fills_every_cell_of_every_dimension_once() {
        let (dim, points) = (12, 64);
        let values = normal_points(dim, points, 5).unwrap();
        let mut cells = vec![vec![0; points]; dim];
        for point in values.chunks(dim) {
            for (cells, value) in cells.iter_mut().zip(point) {
                let probability = normal::cdf(*value);
                cells[(probability * points as f64) as usize] += 1;
            }
        }
        assert!(cells.iter().flatten().all(|&count| count == 1), "{cells:?}");
    }

    #[test]
    fn the_sequence_goes_beyond_a_thousand_dimensions() {
        let values = normal_points(1500, 4, 0).unwrap();
        assert_eq!(values.len(), 6000);
        assert!(values.iter().all(|value| value.is_finite()));
    }
}
