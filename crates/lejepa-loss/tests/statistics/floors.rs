//! Floors against the mean of simulated normal slices.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

use super::statistics;

/// Slices of each size.
const TRIALS: usize = 4000;
/// How many standard errors the mean of the trials may be away; some fifty means are tried.
const STANDARD_ERRORS: f64 = 4.;
/// Where all trials are equal, only rounding is left.
const ROUNDING: f64 = 1e-12;

#[test]
fn the_floor_is_what_normal_samples_score_in_the_mean() {
    let mut generator = ChaCha8Rng::seed_from_u64(7);
    for count in [1, 2, 3, 10, 40] {
        let slices: Vec<Vec<f64>> = (0..TRIALS)
            .map(|_| (0..count).map(|_| StandardNormal.sample(&mut generator)).collect())
            .collect();
        for (name, statistic) in statistics() {
            let Some(floor) = statistic.floor(count) else { continue };
            let scores: Vec<f64> = slices.iter().map(|slice| statistic.value(slice)).collect();
            let mean = scores.iter().sum::<f64>() / TRIALS as f64;
            let variance =
                scores.iter().map(|score| (score - mean).powi(2)).sum::<f64>() / (TRIALS - 1) as f64;
            let standard_error = (variance / TRIALS as f64).sqrt();
            let difference = (mean - floor).abs();
            assert!(
                difference <= STANDARD_ERRORS * standard_error + ROUNDING,
                "{name} of {count} samples: {mean} +- {standard_error} against {floor}"
            );
        }
    }
}

#[test]
fn floors_are_known_where_the_statistic_has_an_expectation() {
    for (name, statistic) in statistics() {
        let known = |count| statistic.floor(count).is_some();
        let expected = match name {
            _ if name.starts_with("shapiro-wilk") => [false, false, false, false],
            "extended-jarque-bera" => [false, false, false, true],
            "jarque-bera" | "vicreg-limit" => [false, true, true, true],
            _ => [true; 4],
        };
        assert_eq!([1, 2, 3, 4].map(known), expected, "{name}");
        assert!(statistic.floor(0).is_none_or(f64::is_finite), "{name}");
    }
}
