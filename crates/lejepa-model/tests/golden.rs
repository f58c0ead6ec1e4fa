//! The vision transformer against timm (`tests/golden/README.md`).

#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::HashMap;

use candle_core::{DType, Device, Tensor};
use lejepa_model::layers::resample_position_embedding;
use lejepa_model::{ImageSize, Parameters, Pass, VisionTransformer, VitShape};

/// Both sides compute in f32, with another order of summation; the features are of order one.
const FEATURE_TOLERANCE: f32 = 2e-5;
/// Relative to the largest entry of the gradient.
const GRADIENT_TOLERANCE: f32 = 2e-5;

fn golden(name: &str) -> HashMap<String, Tensor> {
    let path = format!("{}/../../tests/golden/{name}.safetensors", env!("CARGO_MANIFEST_DIR"));
    candle_core::safetensors::load(path, &Device::Cpu).unwrap()
}

fn largest(tensor: &Tensor) -> f32 {
    tensor.abs().unwrap().flatten_all().unwrap().max(0).unwrap().to_scalar().unwrap()
}

fn assert_close(left: &Tensor, right: &Tensor, tolerance: f32, what: &str) {
    let difference = largest(&(left - right).unwrap());
    assert!(difference <= tolerance, "{what}: {difference:e} above {tolerance:e}");
}

fn vit_with_golden_weights(golden: &HashMap<String, Tensor>) -> (VisionTransformer, Parameters) {
    let shape = VitShape { image_size: 32.into(), patch_size: 8, channels: 3, dim: 48, depth: 3, heads: 3 };
    let mut parameters = Parameters::new(0, DType::F32, &Device::Cpu);
    let vit = VisionTransformer::new(&shape, parameters.root()).unwrap();
    let weights = golden
        .iter()
        .filter_map(|(name, tensor)| Some((name.strip_prefix("weights.")?.to_string(), tensor.clone())))
        .collect();
    parameters.load(&weights).unwrap();
    (vit, parameters)
}

#[test]
fn features_and_attention_agree_with_timm() {
    let golden = golden("vit");
    let (vit, _parameters) = vit_with_golden_weights(&golden);
    let output = vit.forward_tokens(&golden["input"]).unwrap();
    assert_close(&output.tokens, &golden["features"], FEATURE_TOLERANCE, "features");
    assert_close(&output.last_attention, &golden["last_attention"], FEATURE_TOLERANCE, "attention");
    let feature = vit.forward(&golden["input"], &Pass::eval()).unwrap();
    assert_close(&feature, &golden["feature"], FEATURE_TOLERANCE, "feature");
    assert_close(&feature, &golden["train_feature"], FEATURE_TOLERANCE, "train feature");
}

#[test]
fn every_gradient_agrees_with_timm() {
    let golden = golden("vit");
    let (vit, parameters) = vit_with_golden_weights(&golden);
    let feature = vit.forward(&golden["input"], &Pass::eval()).unwrap();
    let count = feature.elem_count();
    let target: Vec<f32> = (0..count).map(|i| -1. + 2. * i as f32 / (count - 1) as f32).collect();
    let target = Tensor::from_vec(target, feature.shape(), &Device::Cpu).unwrap();
    let gradients = (feature * target).unwrap().sum_all().unwrap().backward().unwrap();

    let expected = golden.keys().filter(|name| name.starts_with("grad.")).count();
    assert_eq!(parameters.trainable().len(), expected);
    for (name, variable) in parameters.trainable() {
        let gradient = gradients.get(variable).unwrap_or_else(|| panic!("{name} has no gradient"));
        let reference = &golden[&format!("grad.{name}")];
        assert_close(gradient, reference, GRADIENT_TOLERANCE * largest(reference), name);
    }
}

#[test]
fn resampled_position_embeddings_agree_with_timm() {
    let golden = golden("pos_embed");
    let embedding = &golden["pos_embed_4x4"];
    for (height, width) in [(3, 3), (7, 7), (5, 8)] {
        let resampled =
            resample_position_embedding(embedding, ImageSize::from(4), ImageSize { height, width }).unwrap();
        let name = format!("resampled_{height}x{width}");
        assert_close(&resampled, &golden[&name], 1e-5, &name);
    }
}
