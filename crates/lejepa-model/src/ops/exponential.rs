//! The exponential function without branches or calls, so that loops over it are vectorised.

/// `exp(x)` for `x <= 0`, to about two units in the last place: `2^k exp(r)` with `|r| <= ln(2) / 2`.
pub(super) fn exp_of_negative(x: f32) -> f32 {
    /// Adding and subtracting it rounds to a whole number.
    const ROUND: f32 = 12_582_912.;
    const LN_2_HIGH: f32 = 0.693_359_4;
    const LN_2_LOW: f32 = -2.121_944_4e-4;
    // Not `max`, which would hide a NaN.
    let x = if x < -87. { -87. } else { x };
    let k = (x * std::f32::consts::LOG2_E + ROUND) - ROUND;
    let r = x - k * LN_2_HIGH - k * LN_2_LOW;
    let series = 1. + r * (1. + r * (1. / 2. + r * (1. / 6. + r * (1. / 24. + r * (1. / 120. + r / 720.)))));
    f32::from_bits(((k as i32 + 127) << 23) as u32) * series
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_agrees_with_the_standard_library() {
        for step in 0..=80_000 {
            let x = -(step as f32) * 1e-3;
            let (fast, exact) = (f64::from(exp_of_negative(x)), f64::from(x).exp());
            assert!((fast - exact).abs() <= 3e-7 * exact, "exp({x}): {fast:e} against {exact:e}");
        }
        assert!(exp_of_negative(-1e30) < 1e-37);
        assert!(exp_of_negative(f32::NAN).is_nan());
    }
}
