//! The loss against vectors computed in f64 by PyTorch (`tests/golden/README.md`).

#![allow(clippy::unwrap_used)]

use std::collections::HashMap;

use candle_core::{DType, Device, Tensor, Var};
use lejepa_loss::{EppsPulley, LossConfig, PredictionReduction, Sigreg, StatisticConfig, ViewPooling};

/// Both sides sum in f64, in a different order.
const TOLERANCE: f64 = 1e-9;

/// f32 against f64, relative to the largest entry.
const SINGLE: f64 = 1e-5;

fn golden(name: &str) -> HashMap<String, Tensor> {
    let path = format!("{}/../../tests/golden/{name}.safetensors", env!("CARGO_MANIFEST_DIR"));
    candle_core::safetensors::load(path, &Device::Cpu).unwrap()
}

fn largest_difference(left: &Tensor, right: &Tensor) -> f64 {
    assert_eq!(left.elem_count(), right.elem_count());
    let difference = (left.flatten_all().unwrap() - right.flatten_all().unwrap()).unwrap();
    difference.abs().unwrap().max(0).unwrap().to_scalar().unwrap()
}

fn assert_same(left: &Tensor, right: &Tensor, what: &str) {
    let difference = largest_difference(left, right);
    assert!(difference < TOLERANCE, "{what}: {difference:e}");
}

#[test]
fn sigreg_and_its_gradient_agree_with_pytorch() {
    let golden = golden("sigreg");
    let directions = &golden["directions"];
    // "17 points on [0, 3]" are 33 knots on [-3, 3].
    for (case, t_max, knots) in [("paper_5_17", 5., 17), ("half_3_17", 3., 33), ("half_5_41", 5., 81)] {
        let sigreg = Sigreg::new(EppsPulley::new(t_max, knots).unwrap(), 32);
        let samples = Var::from_tensor(&golden["x"]).unwrap();
        let per_slice = sigreg.per_slice_along(samples.as_tensor(), directions).unwrap();
        assert_same(&per_slice, &golden[&format!("{case}.per_slice")], case);

        let mean = sigreg.forward_along(samples.as_tensor(), directions).unwrap();
        assert_same(&mean, &golden[&format!("{case}.mean")], case);
        let gradients = mean.backward().unwrap();
        assert_same(gradients.get(&samples).unwrap(), &golden[&format!("{case}.grad")], case);
    }
}

#[test]
fn the_fused_sigreg_and_its_gradient_agree_with_pytorch_in_single_precision() {
    let golden = golden("sigreg");
    for (case, t_max, knots) in [("paper_5_17", 5., 17), ("half_3_17", 3., 33), ("half_5_41", 5., 81)] {
        let sigreg = Sigreg::new(EppsPulley::new(t_max, knots).unwrap(), 32);
        let samples = Var::from_tensor(&golden["x"].to_dtype(DType::F32).unwrap()).unwrap();
        let mean = sigreg.forward_along(samples.as_tensor(), &golden["directions"]).unwrap();
        let per_slice = sigreg.per_slice_along(samples.as_tensor(), &golden["directions"]).unwrap();
        let gradient = mean.backward().unwrap().get(&samples).unwrap().clone();
        for (part, tensor) in [("mean", mean), ("per_slice", per_slice), ("grad", gradient)] {
            let expected = &golden[&format!("{case}.{part}")];
            let largest = largest_difference(expected, &expected.zeros_like().unwrap());
            let error = largest_difference(&tensor.to_dtype(DType::F64).unwrap(), expected) / largest;
            assert!(error < SINGLE, "{case} {part}: {error:e}");
        }
    }
}

#[test]
fn the_loss_and_its_gradient_agree_with_pytorch() {
    let golden = golden("lejepa_loss");
    for lambda in [0.02, 0.05, 0.5] {
        let loss = LossConfig { lambda, ..LossConfig::default() }.build().unwrap();
        let embeddings = Var::from_tensor(&golden["embeddings"]).unwrap();
        let terms = loss.forward_along(embeddings.as_tensor(), 2, &golden["directions"]).unwrap();
        assert_same(&terms.prediction, &golden["prediction"], "prediction");
        assert_same(&terms.sigreg, &golden["sigreg"], "sigreg");
        assert_same(&terms.loss, &golden[&format!("lambda_{lambda}.loss")], "loss");
        let gradients = terms.loss.backward().unwrap();
        let gradient = gradients.get(&embeddings).unwrap();
        assert_same(gradient, &golden[&format!("lambda_{lambda}.grad")], "gradient");
    }
}

#[test]
fn the_summed_prediction_agrees_with_the_papers_equation() {
    let golden = golden("lejepa_loss");
    let config = LossConfig { prediction: PredictionReduction::Sum, ..LossConfig::default() };
    let terms =
        config.build().unwrap().forward_along(&golden["embeddings"], 2, &golden["directions"]).unwrap();
    assert_same(&terms.prediction, &golden["prediction_sum_over_dims"], "prediction");
}

#[test]
fn a_gaussian_sample_scores_about_the_floor() {
    use rand::SeedableRng;
    use rand_distr::{Distribution, StandardNormal};

    let mut generator = rand_chacha::ChaCha8Rng::seed_from_u64(0);
    let (samples, dim) = (512, 16);
    let values: Vec<f64> = (0..samples * dim).map(|_| StandardNormal.sample(&mut generator)).collect();
    let embeddings = Tensor::from_vec(values, (1, samples, dim), &Device::Cpu).unwrap();
    let loss = LossConfig::default().build().unwrap();
    let sigreg: f64 = loss.forward(&embeddings, 1, 0).unwrap().sigreg.to_scalar().unwrap();
    // 1024 slices of 16 dimensions: the mean over slices is within a few tenths of its expectation.
    assert!((sigreg / loss.sigreg_floor(1, samples).unwrap() - 1.).abs() < 0.3, "{sigreg}");
}

#[test]
fn pooled_views_are_one_sample_with_the_floor_of_all_rows() {
    use rand::SeedableRng;
    use rand_distr::{Distribution, StandardNormal};

    let mut generator = rand_chacha::ChaCha8Rng::seed_from_u64(0);
    let (views, samples, dim) = (8, 64, 16);
    let values: Vec<f64> =
        (0..views * samples * dim).map(|_| StandardNormal.sample(&mut generator)).collect();
    let embeddings = Tensor::from_vec(values, (views, samples, dim), &Device::Cpu).unwrap();
    // Statistics whose floor falls with the number of samples.
    for statistic in [StatisticConfig::VicregLimit {}, StatisticConfig::default()] {
        for pooling in [ViewPooling::Each, ViewPooling::Pooled] {
            let loss = LossConfig { statistic: statistic.clone(), views: pooling, ..LossConfig::default() };
            let loss = loss.build().unwrap();
            let sigreg: f64 = loss.forward(&embeddings, 2, 0).unwrap().sigreg.to_scalar().unwrap();
            let ratio = sigreg / loss.sigreg_floor(views, samples).unwrap();
            assert!((ratio - 1.).abs() < 0.4, "{statistic:?}, {pooling:?}: {ratio}");
        }
    }
}

#[test]
fn more_global_views_than_views_is_an_error() {
    let golden = golden("lejepa_loss");
    let loss = LossConfig::default().build().unwrap();
    let message = loss.forward(&golden["embeddings"], 7, 0).unwrap_err().to_string();
    assert!(message.contains("at least 7 views"), "{message}");
    assert!(loss.forward(&golden["embeddings"], 0, 0).is_err());
}
