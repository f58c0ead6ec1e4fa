//! The statistics of whole embeddings: against PyTorch, against the integrals that define them and on
//! what they refuse.

#![allow(clippy::unwrap_used)]

use std::f64::consts::PI;

use candle_core::{DType, Device, Tensor};
use lejepa_loss::{Result, multivariate};

/// Both sides compute in f64, in a different order.
const RELATIVE: f64 = 1e-9;
/// What rounding the samples to f32 does.
const RELATIVE_F32: f64 = 1e-5;

fn assert_close(got: f64, expected: f64, tolerance: f64, what: &str) {
    assert!((got - expected).abs() <= tolerance * expected.abs(), "{what}: {got:e} against {expected:e}");
}

#[test]
fn values_agree_with_pytorch_in_both_precisions() {
    let path = format!("{}/../../tests/golden/multivariate.safetensors", env!("CARGO_MANIFEST_DIR"));
    let golden = candle_core::safetensors::load(path, &Device::Cpu).unwrap();
    for (precision, tolerance) in [(DType::F64, RELATIVE), (DType::F32, RELATIVE_F32)] {
        let samples = golden["y"].to_dtype(precision).unwrap();
        let values = [
            ("bhep_beta_0.5", multivariate::bhep(&samples, 0.5)),
            ("bhep_beta_1", multivariate::bhep(&samples, 1.)),
            ("hz", multivariate::henze_zirkler(&samples)),
            ("mardia_skewness", multivariate::mardia_skewness(&samples)),
            ("mori_skewness", multivariate::mori_skewness(&samples)),
            ("mardia_kurtosis", multivariate::mardia_kurtosis(&samples)),
        ];
        for (name, value) in values {
            let expected = golden[name].to_vec1::<f64>().unwrap()[0];
            assert_close(value.unwrap(), expected, tolerance, &format!("{name} in {precision:?}"));
        }
    }
}

/// Six samples in one or two dimensions, as rows.
fn few(dim: usize) -> Vec<Vec<f64>> {
    let coordinate = |index: usize| (index as f64 * 2.3).sin() * 1.4 + 0.2;
    (0..6).map(|sample| (0..dim).map(|axis| coordinate(sample * dim + axis)).collect()).collect()
}

fn tensor(samples: &[Vec<f64>]) -> Tensor {
    Tensor::new(samples.to_vec(), &Device::Cpu).unwrap()
}

/// `integral f(t) dt` over one or two dimensions, for an `f` that is next to nothing outside of
/// `[-10, 10]`. The trapezoid rule then errs by less than any power of its step.
fn integral(dim: usize, f: impl Fn(&[f64]) -> f64) -> f64 {
    let step = 0.1;
    let axis: Vec<f64> = (-100..=100).map(|index| f64::from(index) * step).collect();
    let sum: f64 = match dim {
        1 => axis.iter().map(|&t| f(&[t])).sum(),
        _ => axis.iter().flat_map(|&s| axis.iter().map(move |&t| [s, t])).map(|t| f(&t)).sum(),
    };
    sum * step.powi(dim as i32)
}

fn dot(left: &[f64], right: &[f64]) -> f64 {
    left.iter().zip(right).map(|(left, right)| left * right).sum()
}

fn mean(samples: &[Vec<f64>], f: impl Fn(&[f64]) -> f64) -> f64 {
    samples.iter().map(|sample| f(sample)).sum::<f64>() / samples.len() as f64
}

#[test]
fn closed_forms_are_the_integrals_that_define_them() {
    for dim in [1, 2] {
        let samples = few(dim);
        let (y, count) = (tensor(&samples), samples.len() as f64);
        let cosine = |t: &[f64]| mean(&samples, |y| dot(t, y).cos());
        let sine = |t: &[f64]| mean(&samples, |y| dot(t, y).sin());
        let generating = |t: &[f64]| mean(&samples, |y| dot(t, y).exp());

        let beta: f64 = 0.8;
        let bhep = integral(dim, |t| {
            let square = dot(t, t);
            let weight =
                (-0.5 * square / (beta * beta)).exp() / (2. * PI * beta * beta).powf(dim as f64 / 2.);
            ((cosine(t) - (-0.5 * square).exp()).powi(2) + sine(t).powi(2)) * weight
        });
        assert_close(multivariate::bhep(&y, beta).unwrap(), count * bhep, RELATIVE, "bhep");

        let beta = 2.5;
        let distance = integral(dim, |t| {
            let square = dot(t, t);
            (generating(t) - (0.5 * square).exp()).powi(2) * (-beta * square).exp()
        });
        assert_close(multivariate::generating(&y, beta).unwrap(), count * distance, RELATIVE, "generating");

        let gamma = 1.3;
        let weight = |t: &[f64]| (-gamma * dot(t, t)).exp();
        let product = |t: &[f64]| count.sqrt() * (cosine(t) * generating(t) - 1.);
        let combined = integral(dim, |t| product(t).powi(2) * weight(t));
        assert_close(multivariate::combined(&y, gamma).unwrap(), combined, RELATIVE, "combined");
        let simplified = integral(dim, |t| product(t) * weight(t));
        let got = multivariate::combined_simplified(&y, gamma).unwrap();
        assert_close(got, simplified, RELATIVE, "combined, simplified");

        let derivative = integral(dim, |t| {
            let along = |axis: usize| mean(&samples, |y| (y[axis] - t[axis]) * dot(t, y).exp());
            (0..dim).map(|axis| along(axis).powi(2)).sum::<f64>() * weight(t)
        });
        let got = multivariate::derivative(&y, gamma).unwrap();
        assert_close(got, count * derivative, RELATIVE, "derivative");
    }
}

#[test]
fn sums_over_many_blocks_of_pairs_are_those_over_all_pairs() {
    // More than two blocks, and the last one is short.
    let samples: Vec<Vec<f64>> = (0..75)
        .map(|sample| (0..3).map(|axis| (f64::from(sample * 3 + axis) * 1.9).sin() + 0.3).collect())
        .collect();
    let expected = mean(&samples, |left| mean(&samples, |right| dot(left, right).powi(3)));
    assert_close(multivariate::mardia_skewness(&tensor(&samples)).unwrap(), expected, RELATIVE, "Mardia");
    let along = |axis: usize| mean(&samples, |y| dot(y, y) * y[axis]).powi(2);
    let expected = (0..3).map(along).sum();
    assert_close(multivariate::mori_skewness(&tensor(&samples)).unwrap(), expected, RELATIVE, "Móri");
}

#[test]
fn bhep_far_from_the_origin_counts_distances_only() {
    let samples = few(2);
    let pairs = mean(&samples, |left| {
        mean(&samples, |right| {
            let between: Vec<f64> = left.iter().zip(right).map(|(left, right)| left - right).collect();
            (-0.5 * dot(&between, &between)).exp()
        })
    });
    // A power of two, so that moving the samples rounds little; what is left of them has 36 bits.
    const MOVED: f64 = 1e-9;
    let moved: Vec<Vec<f64>> =
        samples.iter().map(|sample| sample.iter().map(|y| y + 65536.).collect()).collect();
    let expected = 6. * (pairs + 1. / 3.);
    assert_close(multivariate::bhep(&tensor(&moved), 1.).unwrap(), expected, MOVED, "bhep");
}

#[test]
fn settings_and_samples_out_of_range_are_refused() {
    let y = tensor(&few(2));
    let message = |result: Result<f64>| result.unwrap_err().to_string();
    for wrong in [0., -1., f64::NAN, f64::INFINITY] {
        for result in [
            multivariate::bhep(&y, wrong),
            multivariate::generating(&y, wrong),
            multivariate::combined(&y, wrong),
            multivariate::combined_simplified(&y, wrong),
            multivariate::derivative(&y, wrong),
        ] {
            let message = message(result);
            assert!(message.contains("must be a") && message.contains("got: "), "{message}");
        }
    }
    assert_eq!(message(multivariate::generating(&y, 2.)), "`beta` must be a number above 2, got: 2");

    let many = Tensor::zeros((multivariate::COMBINED_MOST_SAMPLES + 1, 2), DType::F32, &Device::Cpu).unwrap();
    assert_eq!(message(multivariate::combined(&many, 1.)), "combined takes at most 128 samples, got: 129");
    let none = Tensor::zeros((0, 2), DType::F32, &Device::Cpu).unwrap();
    assert_eq!(message(multivariate::henze_zirkler(&none)), "henze-zirkler needs at least 1 samples, got: 0");
    let flat = Tensor::zeros((3, 0), DType::F32, &Device::Cpu).unwrap();
    assert!(multivariate::mardia_kurtosis(&flat).is_err());
    assert!(multivariate::mardia_kurtosis(&y.unsqueeze(0).unwrap()).is_err());
}

#[test]
fn what_is_not_finite_is_an_error_that_says_why() {
    let wrong = Tensor::new(&[[0f32, 1.], [f32::INFINITY, 0.]], &Device::Cpu).unwrap();
    let message = multivariate::bhep(&wrong, 1.).unwrap_err().to_string();
    assert_eq!(message, "bhep is not finite: sample 1: inf");
    let large = Tensor::new(&[[0f64, 1e3], [1e3, 0.]], &Device::Cpu).unwrap();
    let message = multivariate::generating(&large, 3.).unwrap_err().to_string();
    assert_eq!(message, "generating is not finite: the samples are out of its range");
    for result in [multivariate::combined(&large, 1.), multivariate::derivative(&large, 1.)] {
        assert!(result.is_err());
    }
}

#[test]
fn half_precision_and_any_layout_are_taken() {
    let y = tensor(&few(2)).to_dtype(DType::BF16).unwrap();
    let expected = multivariate::henze_zirkler(&y.to_dtype(DType::F64).unwrap()).unwrap();
    let transposed = y.t().unwrap().contiguous().unwrap().t().unwrap();
    assert_eq!(multivariate::henze_zirkler(&transposed).unwrap(), expected);
}
