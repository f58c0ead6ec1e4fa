//! Mean, variance and third cumulant of the mean statistic over random slices of a perfect Gaussian.
//!
//! For `x ~ N(0, I)` in `K` dimensions the deviation `sqrt(N) (ecf - phi)` along two directions with
//! `a . b = rho` has, for large `N`, the covariance of its real and imaginary parts
//!
//! ```text
//! Cov(R_s^a, R_t^b) = phi_s phi_t (cosh(s t rho) - 1)
//! Cov(I_s^a, I_t^b) = phi_s phi_t  sinh(s t rho)
//! ```
//!
//! On the sphere of directions it falls apart into degrees `l` (spherical harmonics, `n_l` of them;
//! even degrees are the real part, odd ones the imaginary):
//!
//! ```text
//! A_l(s, t) = phi_s phi_t sum_j (s t)^(l + 2j) / (2^j j! K (K + 2) .. (K + 2 (l + j - 1)))
//! S_p = sum_l n_l (W A_l)^p,   W = diag(w_t),   without the term l = j = 0
//! ```
//!
//! With `M` independent slices, as `mean over slices of sum_t w_t (R_t^2 + I_t^2)`:
//!
//! ```text
//! variance = 2 [tr S_1^2 / M + (1 - 1/M) tr S_2]
//! third    = 8 [tr S_1^3 + 3 (M - 1) tr S_1 S_2 + (M - 1) (M - 2) tr S_3] / M^2
//! ```
//!
//! Centring removes the term `l = 1, j = 0`, dividing by the overall RMS removes `l = 0, j = 1`: the
//! covariances become `sinh(s t rho) - s t rho` and `cosh(s t rho) - 1 - (s t)^2 / 2K`.

use faer::Mat;

use super::quadrature::Quadrature;
use super::{Design, Reference};

/// What decides the null distribution, up to its shape.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cumulants {
    pub(super) mean: f64,
    pub(super) variance: f64,
    pub(super) third: f64,
}

/// Degrees fall like `1.5^-l`; what is left out is far below rounding.
const DEGREES: usize = 64;
/// Terms below this share of their sum are left out.
const NEGLIGIBLE: f64 = 1e-17;

impl Cumulants {
    pub(super) fn of(rule: &Quadrature, design: Design) -> Self {
        let Design { samples, dim, slices, reference } = design;
        let sums = PowerSums::of(rule, dim, reference);
        let (n, m) = (samples as f64, slices as f64);
        let mut variance =
            2. * sums.parts().map(|s| trace(&s[0], &s[0]) / m + (1. - 1. / m) * trace_of(&s[1])).sum::<f64>();
        let third = 8. / (m * m)
            * sums
                .parts()
                .map(|s| {
                    trace(&(&s[0] * &s[0]), &s[0])
                        + 3. * (m - 1.) * trace(&s[0], &s[1])
                        + (m - 1.) * (m - 2.) * trace_of(&s[2])
                })
                .sum::<f64>();
        let mean = match reference {
            Reference::Standard => {
                // Exact for every N: the statistic is a degenerate V-statistic, whose diagonal has a
                // variance of its own.
                variance = (1. - 1. / n) * variance + sums.diagonal_variance(rule, m) / n;
                rule.integrate(|knot| 1. - knot.target.powi(2))
            }
            Reference::Shape => {
                variance *= 1. + SHAPE_CORRECTION / n;
                shape_mean(rule, samples, dim)
            }
        };
        Self { mean, variance, third }
    }
}

/// O(1/N) of the variance of the shape reference, from simulations (`examples/calibrate.rs`): right for
/// many dimensions, rather too large for few.
const SHAPE_CORRECTION: f64 = 1.;

/// `S_1`, `S_2`, `S_3` of the real and of the imaginary part.
struct PowerSums {
    real: [Mat<f64>; 3],
    imaginary: [Mat<f64>; 3],
    /// `A_0`, for the diagonal.
    constant: Mat<f64>,
}

impl PowerSums {
    fn of(rule: &Quadrature, dim: usize, reference: Reference) -> Self {
        let size = rule.knots.len();
        let zeros = || [(); 3].map(|()| Mat::<f64>::zeros(size, size));
        let mut sums = Self { real: zeros(), imaginary: zeros(), constant: Mat::zeros(size, size) };
        for degree in 0..DEGREES {
            let count = harmonics(dim, degree);
            if count == 0. {
                break;
            }
            let first = degree_matrix(rule, dim, degree, reference);
            let second = &first * &first;
            let third = &second * &first;
            let sums_of_part = if degree % 2 == 0 { &mut sums.real } else { &mut sums.imaginary };
            for (sum, power) in sums_of_part.iter_mut().zip([&first, &second, &third]) {
                *sum += power * faer::Scale(count);
            }
            if degree == 0 {
                sums.constant = first;
            }
        }
        sums
    }

    fn parts(&self) -> impl Iterator<Item = &[Mat<f64>; 3]> {
        [&self.real, &self.imaginary].into_iter()
    }

    /// The variance of `mean over slices of sum_t w_t |exp(i t a.x) - phi_t|^2` for one sample.
    fn diagonal_variance(&self, rule: &Quadrature, slices: f64) -> f64 {
        let mut sum = 0.;
        for (i, s) in rule.knots.iter().enumerate() {
            for (j, t) in rule.knots.iter().enumerate() {
                let covariance = self.real[0][(i, j)] / slices + (1. - 1. / slices) * self.constant[(i, j)];
                sum += (s.weight * t.weight).sqrt() * s.target * t.target * covariance;
            }
        }
        4. * sum
    }
}

/// `A_l`, weighted: `sqrt(w_s w_t) A_l(s, t)`.
fn degree_matrix(rule: &Quadrature, dim: usize, degree: usize, reference: Reference) -> Mat<f64> {
    let removed = |j: usize| match (degree, j) {
        (0, 0) => true,
        (1, 0) | (0, 1) => reference == Reference::Shape,
        _ => false,
    };
    Mat::from_fn(rule.knots.len(), rule.knots.len(), |row, column| {
        let (s, t) = (&rule.knots[row], &rule.knots[column]);
        let st = s.t * t.t;
        let rising = |index: usize| dim as f64 + 2. * index as f64;
        let mut term = (0..degree).map(|index| st / rising(index)).product::<f64>();
        let mut sum = 0.;
        for j in 0.. {
            if !removed(j) {
                sum += term;
            }
            term *= st * st / (2. * (j + 1) as f64 * rising(degree + j));
            // Terms rise before they fall.
            if j > 1 && term <= sum * NEGLIGIBLE {
                break;
            }
        }
        (s.weight * t.weight).sqrt() * s.target * t.target * sum
    })
}

/// The number of spherical harmonics of a degree in `dim` dimensions.
fn harmonics(dim: usize, degree: usize) -> f64 {
    if degree == 0 {
        return 1.;
    }
    let choices: f64 = (1..degree).map(|index| (dim as f64 - 2. + index as f64) / index as f64).product();
    (2. * degree as f64 + dim as f64 - 2.) / degree as f64 * choices
}

/// The exact mean for features that were centred and divided by their RMS.
///
/// All features together are then uniform on a sphere of dimension `D = (N - 1) K`, so one projected
/// sample is `sqrt(D)` times a coordinate of a random unit vector, and the difference of two is
/// `sqrt(2 D N / (N - 1))` times one.
fn shape_mean(rule: &Quadrature, samples: usize, dim: usize) -> f64 {
    let n = samples as f64;
    let sphere = (n - 1.) * dim as f64;
    rule.integrate(|knot| {
        let square = knot.t * knot.t;
        1. + (n - 1.) * coordinate_cosine(sphere, 2. * square * n / (n - 1.))
            - 2. * n * knot.target * coordinate_cosine(sphere, square)
            + n * knot.target.powi(2)
    })
}

/// `E cos(t sqrt(D) u)` for a coordinate `u` of a random unit vector in `D` dimensions.
fn coordinate_cosine(dimension: f64, square: f64) -> f64 {
    /// A trapezoid sum of something so smooth is exact with far fewer.
    const POINTS: i32 = 256;
    /// In standard deviations; beyond it there is less than rounding.
    const REACH: f64 = 12.;
    let scale = (square * dimension).sqrt();
    let end = (REACH / dimension.sqrt()).min(std::f64::consts::FRAC_PI_2);
    let (mut mass, mut sum) = (0., 0.);
    for point in -POINTS + 1..POINTS {
        // u = sin(angle) has the density cos(angle)^(D - 2) of angles.
        let angle = end * f64::from(point) / f64::from(POINTS);
        let density = angle.cos().powf(dimension - 2.);
        mass += density;
        sum += density * (scale * angle.sin()).cos();
    }
    sum / mass
}

fn trace_of(matrix: &Mat<f64>) -> f64 {
    (0..matrix.nrows()).map(|index| matrix[(index, index)]).sum()
}

/// The trace of a product of symmetric matrices.
fn trace(left: &Mat<f64>, right: &Mat<f64>) -> f64 {
    (0..left.ncols())
        .map(|column| (0..left.nrows()).map(|row| left[(row, column)] * right[(row, column)]).sum::<f64>())
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule() -> Quadrature {
        Quadrature::new(5., 17).unwrap()
    }

    fn cumulants(samples: usize, dim: usize, slices: usize, reference: Reference) -> Cumulants {
        Cumulants::of(&rule(), Design { samples, dim, slices, reference })
    }

    /// The covariance of two slices' statistics for large samples, with `a . b = rho`.
    fn covariance(rho: f64) -> f64 {
        rule().integrate(|s| {
            rule().integrate(|t| {
                let both = s.target * t.target;
                let argument = s.t * t.t * rho;
                2. * ((both * (argument.cosh() - 1.)).powi(2) + (both * argument.sinh()).powi(2))
            })
        })
    }

    const MANY: usize = 1_000_000_000;

    #[test]
    fn one_slice_varies_as_the_closed_form_says() {
        for dim in [1, 2, 7, 500] {
            let variance = cumulants(MANY, dim, 1, Reference::Standard).variance;
            assert!((variance / covariance(1.) - 1.).abs() < 1e-8, "{dim}: {variance}");
        }
    }

    #[test]
    fn many_slices_vary_as_the_mean_covariance_of_two() {
        // In one dimension rho is 1 or -1, in three it is uniform.
        let one = cumulants(MANY, 1, MANY, Reference::Standard).variance;
        assert!((one / covariance(1.) - 1.).abs() < 1e-8, "{one}");
        let uniform = (0..2000).map(|step| covariance((f64::from(step) + 0.5) / 2000.)).sum::<f64>() / 2000.;
        let three = cumulants(MANY, 3, MANY, Reference::Standard).variance;
        // The midpoint rule is not better.
        assert!((three / uniform - 1.).abs() < 1e-5, "{three} against {uniform}");
    }

    #[test]
    fn the_mean_of_the_shape_reference_has_its_limits() {
        let limit = |dim: f64| {
            rule().integrate(|knot| {
                let (square, target) = (knot.t.powi(2), knot.target.powi(2));
                1. - target * (1. + square + square * square / (2. * dim))
            })
        };
        for dim in [1, 10, 1000] {
            let mean = cumulants(100_000, dim, 1, Reference::Shape).mean;
            assert!((mean / limit(dim as f64) - 1.).abs() < 1e-3, "{dim}: {mean}");
        }
    }

    #[test]
    fn harmonics_are_counted() {
        let counts = |dim: usize| [0, 1, 2, 3].map(|degree| harmonics(dim, degree));
        assert_eq!(counts(1), [1., 1., 0., 0.]);
        assert_eq!(counts(2), [1., 2., 2., 2.]);
        assert_eq!(counts(3), [1., 3., 5., 7.]);
        assert_eq!(counts(4), [1., 4., 9., 16.]);
    }
}
