//! `exp(i t x)` for several f32 samples at once: what the fused operation is made of.
//!
//! Everything is plain arithmetic on arrays of [`LANES`] numbers, without branches and inlined into
//! its caller, so that it becomes vector instructions where [`pulp`] has switched them on.

/// Samples that are computed side by side.
pub(super) const LANES: usize = 16;

/// As many numbers as are computed side by side.
pub(super) type Lanes = [f32; LANES];

/// A complex number for each sample.
#[derive(Clone, Copy)]
pub(super) struct Complex {
    pub(super) real: Lanes,
    pub(super) imaginary: Lanes,
}

/// A frequency `t` in half turns, `t / pi`, to twice the precision of an f32.
#[derive(Debug, Clone, Copy)]
pub(super) struct Frequency {
    high: f32,
    low: f32,
}

impl Frequency {
    pub(super) fn new(t: f64) -> Self {
        let half_turns = t / std::f64::consts::PI;
        let high = half_turns as f32;
        Self { high, low: (half_turns - f64::from(high)) as f32 }
    }

    /// `exp(i t x)`, right to two units in the last place.
    ///
    /// Whole half turns are taken off `t x` before it is rounded: the fused multiplication keeps all its
    /// digits, so large samples lose none. Sine and cosine of the rest, at most a quarter turn, are short
    /// polynomials; an odd number of half turns changes their sign.
    #[inline(always)]
    pub(super) fn unit(self, x: &Lanes) -> Complex {
        let mut unit = Complex::ZERO;
        for lane in 0..LANES {
            let x = x[lane];
            let whole = (x * self.high).round_ties_even();
            let rest = x.mul_add(self.low, x.mul_add(self.high, -whole));
            // Does nothing unless `x` is so large (2^24 half turns) that its angle is beyond an f32; it
            // then keeps the result bounded.
            let rest = (rest * 0.5).round_ties_even().mul_add(-2., rest);
            let odd = whole * 0.5 - (whole * 0.5).round_ties_even();
            let sign = odd.abs().mul_add(-4., 1.);
            let square = rest * rest;
            let sine = rest.mul_add(std::f32::consts::PI, rest * polynomial(square, &SINE));
            let cosine = polynomial(square, &COSINE);
            unit.real[lane] = sign * cosine;
            unit.imaginary[lane] = sign * sine;
        }
        unit
    }
}

/// `sin(pi r) / r` less the f32 nearest to pi, in powers of `r^2` for `|r| <= 1/2`: Chebyshev
/// interpolation, error 1.4e-8.
const SINE: [f32; 5] = [-1.008_818_7e-7, -5.167_71, 2.550_077_4, -0.598_291_3, 0.077_657_66];

/// `cos(pi r)` in powers of `r^2` for `|r| <= 1/2`: Chebyshev interpolation, error 2.3e-10.
const COSINE: [f32; 6] = [1., -4.934_802, 4.058_709, -1.335_212, 0.234_937_31, -0.024_396_325];

#[inline(always)]
fn polynomial<const N: usize>(x: f32, coefficients: &[f32; N]) -> f32 {
    let mut value = coefficients[N - 1];
    for index in (0..N - 1).rev() {
        value = value.mul_add(x, coefficients[index]);
    }
    value
}

impl Complex {
    pub(super) const ZERO: Self = Self { real: [0.; LANES], imaginary: [0.; LANES] };

    /// `self * factor + (real, imaginary)`
    #[inline(always)]
    pub(super) fn multiply_add(&self, factor: &Complex, real: f32, imaginary: f32) -> Complex {
        let mut result = *self;
        for lane in 0..LANES {
            let (a, b) = (self.real[lane], self.imaginary[lane]);
            let (c, d) = (factor.real[lane], factor.imaginary[lane]);
            result.real[lane] = b.mul_add(-d, a.mul_add(c, real));
            result.imaginary[lane] = b.mul_add(c, a.mul_add(d, imaginary));
        }
        result
    }

    /// `self * factor`
    #[inline(always)]
    pub(super) fn multiply(&self, factor: &Complex) -> Complex {
        self.multiply_add(factor, 0., 0.)
    }

    #[inline(always)]
    pub(super) fn add(&mut self, other: &Complex) {
        for lane in 0..LANES {
            self.real[lane] += other.real[lane];
            self.imaginary[lane] += other.imaginary[lane];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three units in the last place of numbers just below 1.
    const TOLERANCE: f64 = 2e-7;

    #[test]
    fn the_unit_circle_is_right_for_small_and_for_enormous_samples() {
        for t in [0.625, 5., 1e-3, 40.] {
            let frequency = Frequency::new(t);
            let samples =
                (-2000..2000).map(|i| i as f32 * 0.01).chain((0..600).map(|i| 1.07f32.powi(i) * 1e-9));
            for x in samples.filter(|x| x.abs() < 2e4) {
                let unit = frequency.unit(&[x; LANES]);
                let (sine, cosine) = (t * f64::from(x)).sin_cos();
                assert!((f64::from(unit.real[0]) - cosine).abs() < TOLERANCE, "cos({t} {x})");
                assert!((f64::from(unit.imaginary[0]) - sine).abs() < TOLERANCE, "sin({t} {x})");
            }
        }
    }

    #[test]
    fn numbers_stay_bounded_up_to_the_largest_and_nan_stays_nan() {
        let frequency = Frequency::new(5.);
        for x in [1e7, -3e12, 1e30, 1e38] {
            let unit = frequency.unit(&[x; LANES]);
            assert!(unit.real[0].abs() <= 1.0001 && unit.imaginary[0].abs() <= 1.0001, "{x}");
        }
        for x in [f32::NAN, f32::INFINITY] {
            assert!(frequency.unit(&[x; LANES]).real[0].is_nan(), "{x}");
        }
    }
}
