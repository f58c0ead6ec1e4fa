//! What the tests of fused operations share: f32 on the CPU takes the fused form, f64 the composed one.

use candle_core::{DType, Device, Tensor, Var};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

/// f32 against f64, relative to the largest entry.
const TOLERANCE: f64 = 1e-5;

/// Gaussian numbers that carry no gradient.
pub(crate) fn random(shape: &[usize], seed: u64) -> Tensor {
    let mut generator = ChaCha8Rng::seed_from_u64(seed);
    let values: Vec<f64> =
        (0..shape.iter().product()).map(|_| StandardNormal.sample(&mut generator)).collect();
    Tensor::from_vec(values, shape, &Device::Cpu).unwrap()
}

/// Compares result and gradients of every input of the given shapes.
pub(crate) fn assert_fused_agrees(shapes: &[&[usize]], operation: impl Fn(&[Tensor]) -> Tensor) {
    let run = |dtype: DType| -> Vec<Tensor> {
        let inputs: Vec<Var> = (0..)
            .zip(shapes)
            .map(|(seed, shape)| Var::from_tensor(&random(shape, seed).to_dtype(dtype).unwrap()).unwrap())
            .collect();
        let tensors: Vec<Tensor> = inputs.iter().map(|input| input.as_tensor().clone()).collect();
        let result = operation(&tensors);
        let target = random(result.dims(), 99).to_dtype(dtype).unwrap();
        let gradients = (&result * target).unwrap().sum_all().unwrap().backward().unwrap();
        let of_inputs = inputs.iter().map(|input| gradients.get(input).unwrap().clone());
        std::iter::once(result.clone()).chain(of_inputs).collect()
    };
    let largest = |tensor: &Tensor| -> f64 {
        tensor.abs().unwrap().flatten_all().unwrap().max(0).unwrap().to_scalar().unwrap()
    };
    for (index, (fused, composed)) in run(DType::F32).iter().zip(run(DType::F64)).enumerate() {
        assert_eq!(fused.dims(), composed.dims());
        let error = largest(&(fused.to_dtype(DType::F64).unwrap() - &composed).unwrap());
        let limit = TOLERANCE * (1. + largest(&composed));
        assert!(error < limit, "{shapes:?}, tensor {index}: {error:e} above {limit:e}");
    }
}
