//! Smooth random functions whose derivatives are known.
//!
//! ```text
//! f(x) = sqrt(2 / M) sum_m cos(w_m . x + b_m)     w ~ N(0, I / length^2), b uniform
//! ```
//!
//! Their mean square is 1, and their gradients are isotropic with mean square `1 / length^2` per direction, as
//! theorem 1 asks for.

use ndarray::{Array2, Axis};
use rand::Rng;

use super::moments::mean;
use super::random::{Stream, normal, stream};
use super::spectrum::Spectrum;

/// Several functions.
pub(crate) struct Waves {
    /// `(tasks * waves, dim)`
    frequencies: Array2<f64>,
    phases: Vec<f64>,
    waves: usize,
}

/// How many functions of how many dimensions, and how smooth.
#[derive(Clone, Copy)]
pub(crate) struct WaveSettings {
    pub(crate) dim: usize,
    pub(crate) tasks: usize,
    pub(crate) waves: usize,
    pub(crate) length: f64,
    pub(crate) seed: u64,
}

impl Waves {
    pub(crate) fn draw(settings: WaveSettings) -> Self {
        let WaveSettings { dim, tasks, waves, length, seed } = settings;
        let mut generator = stream(seed, Stream::Waves, 0);
        let frequencies = normal((tasks * waves, dim), &mut generator) / length;
        let phases = (0..tasks * waves).map(|_| generator.random_range(0. ..std::f64::consts::TAU)).collect();
        Self { frequencies, phases, waves }
    }

    /// `(points, tasks)`
    pub(crate) fn values(&self, points: &Array2<f64>) -> Array2<f64> {
        self.sums(points, |_, angle, _| angle.cos())
    }

    /// `(grad f . grad log p + laplace f / 2)^2` for a Gaussian `p`, averaged over points and tasks: what
    /// the lemmas on pointwise bias multiply with `(r^2 / (d + 2))^2` and `h^4`.
    pub(crate) fn leading_term(&self, points: &Array2<f64>, spectrum: &Spectrum) -> f64 {
        let term = |wave: usize, angle: f64, point: usize| {
            let frequency = self.frequencies.row(wave);
            let entries = frequency.iter().zip(points.row(point)).zip(&spectrum.0);
            let score: f64 = entries.map(|((w, x), variance)| w * x / variance).sum();
            angle.sin() * score - frequency.dot(&frequency) / 2. * angle.cos()
        };
        mean(&mean_squares(&self.sums(points, term)))
    }

    /// The squared bias of the kernel probe at every point with endless samples of a Gaussian: given a query the
    /// weighted samples are Gaussian again, with mean `q s / (s + h^2)` and variance `s h^2 / (s + h^2)`.
    pub(crate) fn kernel_limit(&self, points: &Array2<f64>, spectrum: &Spectrum, bandwidth: f64) -> Vec<f64> {
        let square = bandwidth * bandwidth;
        let mut means = points.clone();
        for (mut column, variance) in means.axis_iter_mut(Axis(1)).zip(&spectrum.0) {
            column *= variance / (variance + square);
        }
        let damping: Vec<f64> = self
            .frequencies
            .outer_iter()
            .map(|frequency| {
                let spread = |(w, s): (&f64, &f64)| w * w * s * square / (s + square);
                (-frequency.iter().zip(&spectrum.0).map(spread).sum::<f64>() / 2.).exp()
            })
            .collect();
        let expected = self.sums(&means, |wave, angle, _| damping[wave] * angle.cos());
        mean_squares(&(expected - self.values(points)))
    }

    /// Sums over waves of `term(wave, angle, point)`, scaled.
    fn sums(&self, points: &Array2<f64>, term: impl Fn(usize, f64, usize) -> f64) -> Array2<f64> {
        let angles = points.dot(&self.frequencies.t()); // (points, tasks * waves)
        let scale = (2. / self.waves as f64).sqrt();
        Array2::from_shape_fn((points.nrows(), self.phases.len() / self.waves), |(point, task)| {
            let waves = task * self.waves..(task + 1) * self.waves;
            scale
                * waves.map(|wave| term(wave, angles[(point, wave)] + self.phases[wave], point)).sum::<f64>()
        })
    }
}

/// Over tasks, for every point.
fn mean_squares(values: &Array2<f64>) -> Vec<f64> {
    values.outer_iter().map(|row| row.dot(&row) / row.len().max(1) as f64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The remainder of an expansion at a bandwidth of 0.05.
    const REMAINDER: f64 = 0.05;

    #[test]
    fn the_limit_of_the_kernel_probe_begins_with_the_leading_term() {
        let spectrum = Spectrum::geometric(3, 4.);
        let waves = Waves::draw(WaveSettings { dim: 3, tasks: 4, waves: 16, length: 2., seed: 9 });
        let mut points = normal((200, 3), &mut stream(9, Stream::Queries, 0));
        for (mut column, variance) in points.axis_iter_mut(Axis(1)).zip(&spectrum.0) {
            column *= variance.sqrt();
        }
        let bandwidth: f64 = 0.05;
        let ratio = mean(&waves.kernel_limit(&points, &spectrum, bandwidth))
            / (bandwidth.powi(4) * waves.leading_term(&points, &spectrum));
        assert!((ratio - 1.).abs() < REMAINDER, "{ratio}");
    }
}
