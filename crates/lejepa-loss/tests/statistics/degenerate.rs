//! Slices without a shape, with equal samples or with what is no number.

use lejepa_loss::{CramerVonMises, ExtendedJarqueBera, JarqueBera, Statistic};

use super::{gradient, statistics};

/// Sums in another order.
const ROUNDING: f64 = 1e-12;

#[test]
fn where_a_sample_is_not_finite_neither_is_the_value() {
    for (name, statistic) in statistics() {
        for bad in [f64::NAN, -f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            for samples in [vec![bad, 0.3, -0.2], vec![0.3, -0.2, bad], vec![bad; 3]] {
                assert!(!statistic.value(&samples).is_finite(), "{name} of {samples:?}");
                gradient(&*statistic, &samples);
            }
        }
        // What an f64 does not hold in squares is at least no panic.
        statistic.value(&[1e200, -1e200, 3.]);
        gradient(&*statistic, &[1e200, -1e200, 3.]);
    }
}

#[test]
fn equal_samples_have_finite_values_but_for_the_one_that_divides_by_their_variance() {
    for (name, statistic) in statistics() {
        // 0.1 is no binary fraction: a careless mean of it leaves a variance.
        for value in [0., 0.1, -1e4] {
            let samples = [value; 7];
            let finite = name != "extended-jarque-bera";
            assert_eq!(statistic.value(&samples).is_finite(), finite, "{name} of {value}");
            let gradient = gradient(&*statistic, &samples);
            assert_eq!(gradient.iter().all(|number| number.is_finite()), finite, "{name} of {value}");
        }
    }
    assert_eq!(JarqueBera.value(&[0.1; 8]), 3.);
    assert_eq!(gradient(&JarqueBera, &[0.1; 8]), [0.; 8]);
    assert_eq!(ExtendedJarqueBera.value(&[0.; 8]), f64::INFINITY);
}

#[test]
fn of_equal_samples_the_first_has_the_lower_rank() {
    // At 0 the distribution function is 1/2, and the middles of two steps are 1/4 and 3/4.
    let pull = 2. * 0.25 / (2. * std::f64::consts::PI).sqrt();
    let got = gradient(&CramerVonMises, &[0., 0.]);
    assert!((got[0] - pull).abs() < ROUNDING && (got[1] + pull).abs() < ROUNDING, "{got:?}");
}

#[test]
fn the_order_of_the_samples_does_not_matter() {
    let samples = [0.3, -1.2, 2.5, 0.9, -0.4];
    let backwards: Vec<f64> = samples.iter().rev().copied().collect();
    for (name, statistic) in statistics() {
        let value = statistic.value(&samples);
        assert!((value - statistic.value(&backwards)).abs() <= ROUNDING * value.abs().max(1.), "{name}");
        let turned = gradient(&*statistic, &backwards).into_iter().rev();
        for (left, right) in gradient(&*statistic, &samples).into_iter().zip(turned) {
            assert!((left - right).abs() <= ROUNDING * left.abs().max(1.), "{name}: {left} against {right}");
        }
    }
}
