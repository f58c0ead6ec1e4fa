//! Gradients against central differences in f64.

#![allow(dead_code, clippy::unwrap_used)]

use candle_core::{DType, Device, Tensor, Var};
use lejepa_model::{Initialisation, Parameters};

const STEP: f64 = 1e-6;
/// Central differences err by about `STEP^2`, cancellation by `1e-16 / STEP`.
const TOLERANCE: f64 = 1e-6;
/// Entries of a parameter that are moved.
const ENTRIES: usize = 8;

/// Gaussian numbers that carry no gradient.
pub(crate) fn random(shape: &[usize], seed: u64) -> Tensor {
    let mut parameters = Parameters::new(seed, DType::F64, &Device::Cpu);
    parameters.root().parameter("x", shape, Initialisation::Normal(1.)).unwrap().detach()
}

/// Compares the analytic gradient of `loss` with central differences for some entries of each parameter.
pub(crate) fn check_gradients(parameters: &Parameters, loss: impl Fn() -> Tensor) {
    let gradients = loss().backward().unwrap();
    let value = || loss().to_scalar::<f64>().unwrap();
    for (name, variable) in parameters.trainable() {
        let gradient: Vec<f64> = gradients.get(variable).unwrap().flatten_all().unwrap().to_vec1().unwrap();
        let original: Vec<f64> = variable.flatten_all().unwrap().to_vec1().unwrap();
        for entry in (0..original.len()).step_by(original.len().div_ceil(ENTRIES)) {
            let [above, below] =
                [STEP, -STEP].map(|shift| value_at(variable, &original, (entry, shift), &value));
            let numeric = (above - below) / (2. * STEP);
            let difference = (gradient[entry] - numeric).abs();
            let limit = TOLERANCE * (1. + numeric.abs());
            assert!(difference < limit, "{name}[{entry}]: {} against {numeric}", gradient[entry]);
        }
    }
}

fn value_at(variable: &Var, original: &[f64], (entry, shift): (usize, f64), value: &impl Fn() -> f64) -> f64 {
    let set = |values: Vec<f64>| {
        variable.set(&Tensor::from_vec(values, variable.shape(), &Device::Cpu).unwrap()).unwrap();
    };
    let mut shifted = original.to_vec();
    shifted[entry] += shift;
    set(shifted);
    let result = value();
    set(original.to_vec());
    result
}
