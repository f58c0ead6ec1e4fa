//! The fused Epps-Pulley against the straightforward one: cosines and sines of every sample at every
//! knot in f64, differentiated by Candle.

#![allow(clippy::unwrap_used)]

mod draws;

use std::sync::Arc;

use candle_core::{D, DType, Device, Tensor, Var};
use draws::normal;
use lejepa_loss::{Directions, EppsPulley, Sigreg, Statistic};

/// f32 against f64, relative to the largest entry. Each sine is right to 2e-7; sums are kept in f64.
const SINGLE: f64 = 1e-5;

/// f64 against f64 with other roundings; angles up to 5e4 have an absolute error of 1e-11.
const DOUBLE: f64 = 1e-9;

/// The definition, without a thought for speed: `(.., samples, slices)` to `(.., slices)`.
fn straightforward(t_max: f64, knots: usize, projected: &Tensor) -> Tensor {
    let samples = projected.dim(D::Minus2).unwrap() as f64;
    let step = 2. * t_max / (knots - 1) as f64;
    let mut sum = projected.get_on_dim(projected.rank() - 2, 0).unwrap().zeros_like().unwrap();
    for index in 0..knots {
        let t = index as f64 * step - t_max;
        let target = (-0.5 * t * t).exp();
        let weight = target * if index == 0 || index == knots - 1 { step / 2. } else { step };
        let angle = (projected * t).unwrap();
        let real = (angle.cos().unwrap().mean(D::Minus2).unwrap() - target).unwrap();
        let imaginary = angle.sin().unwrap().mean(D::Minus2).unwrap();
        let square = (real.sqr().unwrap() + imaginary.sqr().unwrap()).unwrap();
        sum = (sum + (square * (weight * samples)).unwrap()).unwrap();
    }
    sum
}

struct Case {
    views: usize,
    samples: usize,
    dim: usize,
    slices: usize,
    scale: f64,
    t_max: f64,
    knots: usize,
}

const USUAL: Case = Case { views: 1, samples: 64, dim: 8, slices: 16, scale: 1., t_max: 5., knots: 17 };

fn relative_difference(left: &Tensor, right: &Tensor) -> f64 {
    let (left, right) = (left.to_dtype(DType::F64).unwrap(), right.to_dtype(DType::F64).unwrap());
    let largest = |tensor: &Tensor| -> f64 {
        tensor.abs().unwrap().flatten_all().unwrap().max(0).unwrap().to_scalar().unwrap()
    };
    largest(&(left - &right).unwrap()) / largest(&right).max(1e-30)
}

/// Value and gradient of a weighted sum over slices, in `dtype` and by the definition.
fn check(case: &Case, dtype: DType, tolerance: f64) {
    let Case { views, samples, dim, slices, scale, t_max, knots } = *case;
    let name =
        format!("{views} x {samples} x {dim}, {slices} slices, scale {scale}, {knots} knots, {dtype:?}");
    let embeddings = (normal((views, samples, dim), 7) * scale).unwrap().to_dtype(dtype).unwrap();
    let directions = Directions::Gaussian.draw(dim, slices, 3, &Device::Cpu).unwrap();
    let upstream = normal((views, slices), 8);
    let exact_directions = directions.to_dtype(DType::F64).unwrap();

    let embeddings = Var::from_tensor(&embeddings).unwrap();
    let statistic = Arc::new(EppsPulley::new(t_max, knots).unwrap());
    let value = statistic.along(embeddings.as_tensor(), &directions).unwrap();
    let scored = (value.to_dtype(DType::F64).unwrap() * &upstream).unwrap().sum_all().unwrap();
    let gradient = scored.backward().unwrap().get(&embeddings).unwrap().clone();

    let exact = Var::from_tensor(&embeddings.to_dtype(DType::F64).unwrap()).unwrap();
    let projected = exact.broadcast_matmul(&exact_directions).unwrap();
    let expected = straightforward(t_max, knots, &projected);
    let scored = (&expected * &upstream).unwrap().sum_all().unwrap();
    let expected_gradient = scored.backward().unwrap().get(&exact).unwrap().clone();

    let error = relative_difference(&value, &expected);
    assert!(error < tolerance, "{name}: value off by {error:e}");
    let error = relative_difference(&gradient, &expected_gradient);
    assert!(error < tolerance, "{name}: gradient off by {error:e}");
}

#[test]
fn any_number_of_samples_slices_dimensions_and_views_agrees_with_the_definition() {
    for samples in [1, 2, 3, 15, 16, 17, 129, 513, 1100] {
        check(&Case { samples, ..USUAL }, DType::F32, SINGLE);
        check(&Case { samples, ..USUAL }, DType::F64, DOUBLE);
    }
    for (views, dim, slices) in [(1, 1, 1), (3, 1, 33), (2, 70, 31), (4, 5, 65)] {
        check(&Case { views, dim, slices, ..USUAL }, DType::F32, SINGLE);
        check(&Case { views, dim, slices, ..USUAL }, DType::F64, DOUBLE);
    }
}

#[test]
fn many_knots_and_other_ranges_agree_with_the_definition() {
    for (t_max, knots) in [(5., 3), (3., 33), (5., 35), (5., 81), (8., 513), (0.5, 9)] {
        check(&Case { t_max, knots, ..USUAL }, DType::F32, SINGLE);
        check(&Case { t_max, knots, ..USUAL }, DType::F64, DOUBLE);
    }
}

/// A projection of samples around 1e4 is an f32 that is right to 5e-4, whoever computes it: so samples
/// of one dimension, which are their own projections.
#[test]
fn large_and_small_samples_agree_with_the_definition() {
    for scale in [1e-3, 30., 1e3, 1e4] {
        for samples in [1, 2, 65] {
            let case = Case { samples, scale, dim: 1, slices: 1, ..USUAL };
            check(&case, DType::F32, SINGLE);
            check(&case, DType::F64, DOUBLE);
            check(&Case { dim: 8, slices: 9, ..case }, DType::F64, DOUBLE);
        }
    }
}

#[test]
fn half_precision_is_computed_in_single() {
    check(&USUAL, DType::BF16, 8e-3); // The gradient is rounded to 8 bits on its way back.
    let embeddings = normal((1, 64, 8), 7).to_dtype(DType::BF16).unwrap();
    let sigreg = Sigreg::new(EppsPulley::new(5., 17).unwrap(), 32);
    let half: f32 = sigreg.forward(&embeddings, 0).unwrap().to_scalar().unwrap();
    let single: f32 =
        sigreg.forward(&embeddings.to_dtype(DType::F32).unwrap(), 0).unwrap().to_scalar().unwrap();
    assert_eq!(half, single);
}

#[test]
fn the_gradient_agrees_with_central_differences() {
    let statistic = EppsPulley::new(5., 17).unwrap();
    for (samples, scale) in [(1, 1.), (2, 1.), (7, 1.), (7, 1e4), (100, 3.)] {
        let values: Vec<f64> = (normal(samples, 5) * scale).unwrap().to_vec1().unwrap();
        let mut gradient = vec![0.; samples];
        statistic.gradient(&values, &mut gradient);
        for index in 0..samples {
            let at = |delta: f64| {
                let mut values = values.clone();
                values[index] += delta;
                statistic.value(&values)
            };
            const DELTA: f64 = 1e-5;
            let difference = (at(DELTA) - at(-DELTA)) / (2. * DELTA);
            // Truncation is of the order DELTA^2; rounding of samples near 1e4 is 1e-12 / DELTA.
            let error = (difference - gradient[index]).abs();
            assert!(error < 1e-6, "{samples} samples of scale {scale}: {error:e}");
        }
    }
}

#[test]
fn threads_do_not_change_a_bit() {
    let embeddings = normal((2, 700, 24), 1).to_dtype(DType::F32).unwrap();
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let embeddings = Var::from_tensor(&embeddings).unwrap();
            let sigreg = Sigreg::new(EppsPulley::new(5., 17).unwrap(), 100);
            let loss = sigreg.forward(embeddings.as_tensor(), 0).unwrap();
            let gradients = loss.backward().unwrap();
            let gradient: Vec<f32> =
                gradients.get(&embeddings).unwrap().flatten_all().unwrap().to_vec1().unwrap();
            (loss.to_scalar::<f32>().unwrap(), gradient)
        })
    };
    assert_eq!(run(1), run(3));
}
