//! Statistics as operations of Candle's graph.

use candle_core::{DType, Device, Tensor, Var};

use super::{gradient, statistics};

/// The statistic computes in f64 either way; an f32 result is rounded once or twice.
const RELATIVE_F32: f64 = 1e-6;
const RELATIVE_F64: f64 = 1e-15;

#[test]
fn the_graph_s_gradient_is_that_of_each_slice_in_both_precisions() {
    let (views, slices, samples) = (2, 3, 9);
    let numbers: Vec<f64> =
        (0..views * slices * samples).map(|i| (i as f64 * 1.7).sin() * 2. + 0.1).collect();
    let numbers = Tensor::from_vec(numbers, (views, slices, samples), &Device::Cpu).unwrap();
    let upstream = Tensor::arange(1f64, 7., &Device::Cpu).unwrap().reshape((views, slices)).unwrap();
    for (precision, tolerance) in [(DType::F64, RELATIVE_F64), (DType::F32, RELATIVE_F32)] {
        let projected = Var::from_tensor(&numbers.to_dtype(precision).unwrap()).unwrap();
        let exactly: Vec<f64> = flat(&projected);
        for (name, statistic) in statistics() {
            let values = statistic.clone().per_slice(projected.as_tensor()).unwrap();
            assert_eq!((values.dims(), values.dtype()), (&[views, slices][..], precision));
            let sum = (values * upstream.to_dtype(precision).unwrap()).unwrap().sum_all().unwrap();
            let gradients = sum.backward().unwrap();
            let got = flat(gradients.get(&projected).unwrap());
            let expected = (1..).zip(exactly.chunks(samples)).flat_map(|(upstream, slice)| {
                gradient(&*statistic, slice).into_iter().map(move |gradient| gradient * f64::from(upstream))
            });
            for (got, expected) in got.iter().zip(expected) {
                let difference = (got - expected).abs();
                assert!(difference <= tolerance * expected.abs(), "{name}: {got:e} against {expected:e}");
            }
        }
    }
}

#[test]
fn too_few_samples_for_a_variance_are_refused() {
    let one = Tensor::zeros((4, 1), DType::F32, &Device::Cpu).unwrap();
    for (name, statistic) in statistics() {
        let needs_two = statistic.least_samples() == 2;
        let result = statistic.per_slice(&one);
        assert_eq!(result.is_err(), needs_two, "{name}");
    }
}

fn flat(tensor: &Tensor) -> Vec<f64> {
    tensor.flatten_all().unwrap().to_dtype(DType::F64).unwrap().to_vec1().unwrap()
}
