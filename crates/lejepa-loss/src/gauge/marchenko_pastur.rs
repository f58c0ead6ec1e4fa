//! The eigenvalues that the covariance of an isotropic Gaussian sample has (Marchenko-Pastur).
//!
//! For `n` independent samples of unit variance in `K` dimensions, `g = K/n <= 1`, eigenvalues have
//! the density `sqrt((b - x) (x - a)) / (2 pi g x)` between `a, b = (1 -+ sqrt g)^2`. With
//! `x = 1 + g - 2 sqrt(g) cos(angle)` that is `2 sin(angle)^2 / (pi x)` over angles from 0 to pi,
//! without edges. For `g > 1` all but `n` eigenvalues are 0, and those are the eigenvalues of `n`
//! dimensions with `K` samples times `g`.

/// Expected variances along the `min(dim, degrees)` principal directions, the largest first.
///
/// `degrees` is the number of samples less one where their mean was subtracted.
pub(super) fn expected_variances(dim: usize, degrees: usize) -> Vec<f64> {
    let rank = dim.min(degrees);
    let aspect = rank as f64 / dim.max(degrees) as f64;
    let scale = (dim as f64 / degrees as f64).max(1.);
    let mut quantiles = quantiles(aspect, rank);
    quantiles.iter_mut().for_each(|quantile| *quantile *= scale);
    quantiles.reverse();
    quantiles
}

/// The quantiles at `(rank - 1/2) / count`, the smallest first.
fn quantiles(aspect: f64, count: usize) -> Vec<f64> {
    /// Steps over the angles; the sum over them is exact to far more digits than are of use.
    const STEPS: usize = 4096;
    let width = std::f64::consts::PI / STEPS as f64;
    let value = |angle: f64| 1. + aspect - 2. * aspect.sqrt() * angle.cos();
    let masses: Vec<f64> = (0..STEPS)
        .map(|step| {
            let angle = (step as f64 + 0.5) * width;
            2. * angle.sin().powi(2) * width / (std::f64::consts::PI * value(angle))
        })
        .collect();
    let total: f64 = masses.iter().sum();
    let (mut below, mut step) = (0., 0);
    (0..count)
        .map(|rank| {
            let wanted = (rank as f64 + 0.5) / count as f64 * total;
            while step + 1 < STEPS && below + masses[step] < wanted {
                below += masses[step];
                step += 1;
            }
            value((step as f64 + (wanted - below) / masses[step]) * width)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;
    use rand_distr::{Distribution, StandardNormal};

    use super::*;

    /// Quantiles of the limit against the mean eigenvalues of small samples.
    const TOLERANCE: f64 = 0.12;

    #[test]
    fn simulated_spectra_look_like_it() {
        const DRAWS: usize = 40;
        let mut generator = ChaCha8Rng::seed_from_u64(0);
        for (dim, samples) in [(1, 50), (10, 60), (40, 50), (50, 20)] {
            let expected = expected_variances(dim, samples);
            let mut means = vec![0.; expected.len()];
            for _draw in 0..DRAWS {
                let rows =
                    faer::Mat::<f64>::from_fn(samples, dim, |_, _| StandardNormal.sample(&mut generator));
                let singular: Vec<f64> = rows.singular_values().unwrap();
                for (mean, value) in means.iter_mut().zip(&singular) {
                    *mean += value * value / (samples * DRAWS) as f64;
                }
            }
            for (rank, (mean, expected)) in means.iter().zip(&expected).enumerate() {
                assert!(
                    (mean / expected - 1.).abs() < TOLERANCE,
                    "{dim} {samples} {rank}: {mean} {expected}"
                );
            }
        }
    }

    #[test]
    fn variances_add_up_to_the_dimensions_and_fall() {
        for (dim, degrees) in [(1, 15), (15, 15), (512, 15), (15, 512), (3000, 3000)] {
            let expected = expected_variances(dim, degrees);
            assert_eq!(expected.len(), dim.min(degrees));
            assert!(expected.windows(2).all(|pair| pair[0] > pair[1] && pair[1] > 0.), "{dim} {degrees}");
            // Quantiles in the middle of their ranks are a midpoint rule.
            let total: f64 = expected.iter().sum();
            assert!((total / dim as f64 - 1.).abs() < 0.03, "{dim} {degrees}: {total}");
        }
    }
}
