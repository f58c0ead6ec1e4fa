//! The exponential function without branches, which compilers turn into vector instructions.
//!
//! ```text
//! e^x = 2^n 2^f     n the nearest integer to x / ln 2, |f| <= 1/2, 2^f by its Taylor polynomial
//! ```

/// Adding it rounds to an integer, which then stands in the lowest bits.
const ROUNDING: f32 = 12_582_912.;
/// `ln(2)^k / k!` for k from 7 to 0.
const TAYLOR: [f32; 8] = [
    1.525_273_4e-5,
    1.540_353e-4,
    1.333_355_8e-3,
    9.618_129e-3,
    5.550_411e-2,
    2.402_265e-1,
    std::f32::consts::LN_2,
    1.,
];
/// Below, where a power of two could no longer be written, the result stays that of -87.
const LEAST: f32 = -87.;

/// `e^x` for `x` up to 0, to three units in the last place.
#[inline(always)]
pub(crate) fn exponential(x: f32) -> f32 {
    let x = if x > LEAST { x } else { LEAST };
    let shifted = x * std::f32::consts::LOG2_E + ROUNDING;
    let integer = shifted - ROUNDING;
    // ln 2 in two parts: the first has few digits, so that its multiples are exact.
    let rest = (x - integer * 0.693_359_4 + integer * 2.121_944_4e-4) * std::f32::consts::LOG2_E;
    let power = TAYLOR.iter().skip(1).fold(TAYLOR[0], |sum, coefficient| sum * rest + coefficient);
    f32::from_bits(power.to_bits().wrapping_add(shifted.to_bits() << 23))
}

/// The same in f64.
const ROUNDING_F64: f64 = 6_755_399_441_055_744.;
/// Below, where a power of two could no longer be written, the result stays that of -708.
const LEAST_F64: f64 = -708.;
/// `1 / k!` for k from 12 to 0.
const TAYLOR_F64: [f64; 13] = [
    1. / 479_001_600.,
    1. / 39_916_800.,
    1. / 3_628_800.,
    1. / 362_880.,
    1. / 40_320.,
    1. / 5_040.,
    1. / 720.,
    1. / 120.,
    1. / 24.,
    1. / 6.,
    1. / 2.,
    1.,
    1.,
];

/// `e^x` for `x` up to 0, to three units in the last place.
#[inline(always)]
pub(crate) fn exponential_f64(x: f64) -> f64 {
    let x = if x > LEAST_F64 { x } else { LEAST_F64 };
    let shifted = x * std::f64::consts::LOG2_E + ROUNDING_F64;
    let integer = shifted - ROUNDING_F64;
    let rest = x - integer * 6.931_471_803_691_238e-1 - integer * 1.908_214_929_270_587_7e-10;
    let power = TAYLOR_F64.iter().skip(1).fold(TAYLOR_F64[0], |sum, coefficient| sum * rest + coefficient);
    f64::from_bits(power.to_bits().wrapping_add(shifted.to_bits() << 52))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three units in the last place.
    const TOLERANCE: f64 = 1.8e-7 * 2.;
    const TOLERANCE_F64: f64 = 3.3e-16 * 2.;

    #[test]
    fn it_is_the_exponential() {
        for step in 0..=870_000 {
            let x = -step as f32 / 1e4;
            let expected = f64::from(x).exp();
            let error = (f64::from(exponential(x)) / expected - 1.).abs();
            assert!(error < TOLERANCE, "{x}: {error:e}");
        }
        assert_eq!(exponential(0.), 1.);
        for step in 0..=708_000 {
            let x = -f64::from(step) / 1e3;
            let error = (exponential_f64(x) / x.exp() - 1.).abs();
            assert!(error < TOLERANCE_F64, "{x}: {error:e}");
        }
        assert_eq!(exponential_f64(0.), 1.);
        assert!(exponential_f64(-1e9) < 1e-307);
        assert!(exponential(-1e9) < 1e-37);
    }
}
