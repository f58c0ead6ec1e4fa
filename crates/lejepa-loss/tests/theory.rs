//! What the paper proves about Epps-Pulley, on numbers.
//!
//! Its window here is `exp(-t^2/2)`, so `s^2 = 1/2` in the proofs' `exp(-s^2 t^2)`, and the statistic is
//! `N` times the distance that the proofs bound.

#![allow(clippy::unwrap_used)]

mod draws;

use draws::normal;
use lejepa_loss::{EppsPulley, Statistic, multivariate};

const T_MAX: f64 = 5.;
const KNOTS: usize = 17;

fn statistic() -> EppsPulley {
    EppsPulley::new(T_MAX, KNOTS).unwrap()
}

/// `sum w(t) f(t)` by the statistic's quadrature.
fn integral(f: impl Fn(f64) -> f64) -> f64 {
    let step = 2. * T_MAX / (KNOTS - 1) as f64;
    (0..KNOTS)
        .map(|index| {
            let t = index as f64 * step - T_MAX;
            let end = if index == 0 || index == KNOTS - 1 { 0.5 } else { 1. };
            end * step * (-0.5 * t * t).exp() * f(t)
        })
        .sum()
}

fn gradient(samples: &[f64]) -> Vec<f64> {
    let mut gradient = vec![0.; samples.len()];
    statistic().gradient(samples, &mut gradient);
    gradient
}

/// Samples meant to hurt: outliers, clusters, grids, all in one place, enormous.
fn hostile_samples() -> Vec<Vec<f64>> {
    let mut all = vec![];
    for count in [1, 2, 5, 64] {
        for scale in [1e-3, 0.5, 1., 3., 50., 1e4, 1e8] {
            all.push((normal(count, 3) * scale).unwrap().to_vec1().unwrap());
            all.push((0..count).map(|index| scale * (index % 2) as f64).collect());
            all.push(vec![scale; count]);
            all.push((0..count).map(|index| scale * index as f64 / count as f64).collect());
            let mut outlier = normal(count, 4).to_vec1().unwrap();
            outlier[0] = scale;
            all.push(outlier);
        }
    }
    all
}

/// Theorem "stability of the Epps-Pulley test": the first derivative is at most `4 / s^2 = 8`, whatever
/// the samples.
#[test]
fn the_gradient_is_bounded_for_any_samples() {
    let bound = 4. * integral(f64::abs);
    assert!((bound - 8.).abs() < 0.3, "the quadrature's own bound is near the integral's: {bound}");
    for samples in hostile_samples() {
        for slope in gradient(&samples) {
            assert!(slope.abs() <= bound, "{slope} for {samples:?}");
        }
    }
}

/// The same theorem: the second derivative is at most `C sqrt(pi) / (2 s^3)`, with `C = 4 + 2 / N` by the
/// product rule.
#[test]
fn the_curvature_is_bounded_for_any_samples() {
    const DELTA: f64 = 1e-4;
    let second_moment = integral(|t| t * t);
    let exact = std::f64::consts::PI.sqrt() / (2. * 0.5f64.powf(1.5));
    assert!((second_moment / exact - 1.).abs() < 1e-3);
    for samples in hostile_samples() {
        if samples.iter().any(|sample| sample.abs() > 1e5) {
            continue; // A difference of DELTA is lost in the rounding of such samples.
        }
        let bound = (4. + 2. / samples.len() as f64) * second_moment;
        for index in 0..samples.len() {
            let slope = |delta: f64| {
                let mut samples = samples.clone();
                samples[index] += delta;
                gradient(&samples)[index]
            };
            let curvature = (slope(DELTA) - slope(-DELTA)) / (2. * DELTA);
            assert!(curvature.abs() <= bound * 1.001, "{curvature} for {samples:?}");
        }
    }
}

/// Over the whole line the integral has a closed form: BHEP in one dimension.
#[test]
fn enough_knots_give_the_integral_over_the_whole_line() {
    for samples in hostile_samples().iter().filter(|samples| samples.iter().all(|x| x.abs() < 10.)) {
        let column = candle_core::Tensor::new(samples.as_slice(), &candle_core::Device::Cpu).unwrap();
        let exact =
            multivariate::bhep(&column.unsqueeze(1).unwrap(), 1.).unwrap() * std::f64::consts::TAU.sqrt();
        let value = EppsPulley::new(9., 129).unwrap().value(samples);
        assert!((value - exact).abs() < 1e-9 * exact.max(1.), "{value} against {exact}");
    }
}

/// Theorem "vanishing gradient bias": `E[EP / N] = D + (1/N) sum w (1 - |phi|^2)`, here for samples of
/// `N(0, sigma^2)`, whose characteristic function is `exp(-sigma^2 t^2 / 2)`; and the same for the
/// derivative by sigma. So both biases vanish like `1 / N`.
#[test]
fn the_bias_of_loss_and_gradient_is_the_predicted_one() {
    const DRAWS: usize = 4000;
    let sigma = 1.5;
    let characteristic = |t: f64| (-0.5 * (sigma * t).powi(2)).exp();
    let target = |t: f64| (-0.5 * t * t).exp();
    // Derivative of the characteristic function by sigma.
    let slope = |t: f64| -sigma * t * t * characteristic(t);
    let distance = integral(|t| (characteristic(t) - target(t)).powi(2));
    let distance_slope = integral(|t| 2. * (characteristic(t) - target(t)) * slope(t));
    for count in [4, 16, 64] {
        let bias = integral(|t| 1. - characteristic(t).powi(2)) / count as f64;
        let bias_slope = -integral(|t| 2. * characteristic(t) * slope(t)) / count as f64;
        let standard: Vec<f64> = normal(DRAWS * count, 11).to_vec1().unwrap();
        let (mut losses, mut slopes) = (vec![], vec![]);
        for standard in standard.chunks(count) {
            let samples: Vec<f64> = standard.iter().map(|value| sigma * value).collect();
            losses.push(statistic().value(&samples) / count as f64);
            let by_sigma: f64 =
                gradient(&samples).iter().zip(standard).map(|(slope, value)| slope * value).sum();
            slopes.push(by_sigma / count as f64);
        }
        assert_mean(&losses, distance + bias, "loss");
        assert_mean(&slopes, distance_slope + bias_slope, "gradient");
        assert!(mean_and_error(&losses).0 - distance > bias / 2., "the bias is there");
    }
}

fn mean_and_error(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.);
    (mean, (variance / count).sqrt())
}

fn assert_mean(values: &[f64], expected: f64, what: &str) {
    let (mean, error) = mean_and_error(values);
    assert!((mean - expected).abs() < 4. * error, "{what}: {mean} +- {error} against {expected}");
}
