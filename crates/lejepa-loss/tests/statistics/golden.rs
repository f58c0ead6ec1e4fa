//! Against vectors computed in f64 by PyTorch (`tests/golden/README.md`).

use std::collections::HashMap;
use std::sync::Arc;

use candle_core::{DType, Device, Tensor};
use lejepa_loss::{
    AndersonDarling, CramerVonMises, ExtendedJarqueBera, JarqueBera, ShapiroWilk, Statistic, VicregLimit,
    Watson,
};

use super::{gradient, largest, statistics};

/// Both sides compute in f64, in a different order.
const RELATIVE: f64 = 1e-9;
/// Where the exact result is 0 (a shape of two samples), this much rounding is left.
const ABSOLUTE: f64 = 1e-13;
/// What rounding the samples to f32 does to statistics of 200 samples.
const RELATIVE_F32: f64 = 1e-5;

fn golden(name: &str) -> HashMap<String, Tensor> {
    let path = format!("{}/../../tests/golden/{name}.safetensors", env!("CARGO_MANIFEST_DIR"));
    candle_core::safetensors::load(path, &Device::Cpu).unwrap()
}

fn assert_close(got: &[f64], expected: &Tensor, what: &str) {
    let expected: Vec<f64> = expected.to_vec1().unwrap();
    assert_eq!(got.len(), expected.len());
    let differences: Vec<f64> = got.iter().zip(&expected).map(|(got, expected)| got - expected).collect();
    let (difference, scale) = (largest(&differences), largest(&expected));
    assert!(difference <= RELATIVE * scale + ABSOLUTE, "{what}: {difference:e} of {scale:e}");
}

#[test]
fn values_and_gradients_agree_with_autograd() {
    let golden = golden("statistics");
    for case in ["two", "three", "normal", "shifted", "wide", "bimodal", "far", "heavy", "one-sided"] {
        let samples: Vec<f64> = golden[&format!("{case}.samples")].to_vec1().unwrap();
        for (name, statistic) in statistics() {
            let what = format!("{name} of {case}");
            assert_close(&[statistic.value(&samples)], &golden[&format!("{case}.{name}.value")], &what);
            let gradient = gradient(&*statistic, &samples);
            assert_close(&gradient, &golden[&format!("{case}.{name}.gradient")], &what);
        }
    }
}

#[test]
fn values_agree_with_the_paper_s_formulas_in_both_precisions() {
    let golden = golden("univariate");
    let in_order: [Arc<dyn Statistic>; 7] = [
        Arc::new(CramerVonMises),
        Arc::new(Watson),
        Arc::new(AndersonDarling),
        Arc::new(JarqueBera),
        Arc::new(ExtendedJarqueBera),
        Arc::new(VicregLimit),
        Arc::new(ShapiroWilk::default()),
    ];
    for case in ["normal", "shifted", "wide", "uniform", "bimodal"] {
        let samples = &golden[&format!("{case}.samples")];
        let expected: Vec<f64> = golden[&format!("{case}.stats")].to_vec1().unwrap();
        for (statistic, expected) in in_order.iter().zip(expected) {
            let is_w = statistic.name() == "shapiro-wilk";
            let expected = if is_w { 1. - expected } else { expected };
            for (precision, tolerance) in [(DType::F64, RELATIVE), (DType::F32, RELATIVE_F32)] {
                let slice = samples.to_dtype(precision).unwrap().unsqueeze(0).unwrap();
                let value = statistic.clone().per_slice(&slice).unwrap().to_dtype(DType::F64).unwrap();
                let difference = (value.to_vec1::<f64>().unwrap()[0] - expected).abs();
                let what = format!("{} of {case} in {precision:?}", statistic.name());
                assert!(difference <= tolerance * expected.abs(), "{what}: {difference:e} of {expected:e}");
            }
        }
    }
}
