//! The vision transformer against timm (`tests/golden/README.md`).

#![allow(clippy::unwrap_used, clippy::panic)]

mod golden_file;

use std::collections::HashMap;

use candle_core::{DType, Device, Tensor};
use golden_file::{golden, largest, part};
use lejepa_model::layers::resample_position_embedding;
use lejepa_model::{ImageSize, Parameters, Pass, Pool, VisionTransformer, VitShape};

/// Both sides compute in f32, with another order of summation; the features are of order one.
const FEATURE_TOLERANCE: f32 = 2e-5;
/// Relative to the largest entry of the gradient.
const GRADIENT_TOLERANCE: f32 = 2e-5;

fn assert_close(left: &Tensor, right: &Tensor, tolerance: f32, what: &str) {
    let difference = largest(&(left - right).unwrap());
    assert!(difference <= tolerance, "{what}: {difference:e} above {tolerance:e}");
}

fn vit_with_golden_weights(
    shape: &VitShape,
    golden: &HashMap<String, Tensor>,
) -> (VisionTransformer, Parameters) {
    let mut parameters = Parameters::new(0, DType::F32, &Device::Cpu);
    let vit = VisionTransformer::new(shape, parameters.root()).unwrap();
    parameters.load(&part(golden, "weights.")).unwrap();
    (vit, parameters)
}

fn plain() -> VitShape {
    VitShape {
        image_size: 32.into(),
        patch_size: 8,
        dim: 48,
        depth: 3,
        heads: 3,
        mlp_hidden: 192,
        ..Default::default()
    }
}

fn with_registers_and_layer_scale() -> VitShape {
    VitShape { dim: 32, depth: 2, heads: 2, mlp_hidden: 128, registers: 2, layer_scale: Some(0.1), ..plain() }
}

fn averaged() -> VitShape {
    VitShape {
        image_size: ImageSize { height: 16, width: 24 },
        dim: 16,
        depth: 2,
        heads: 2,
        mlp_hidden: 64,
        pool: Pool::Average,
        ..plain()
    }
}

/// Features and every gradient of `sum(feature * linspace(-1, 1))`.
fn compare(shape: &VitShape, input: &Tensor, golden: &HashMap<String, Tensor>, pass: &Pass) {
    let (vit, parameters) = vit_with_golden_weights(shape, golden);
    let tokens = vit.forward_tokens(input).unwrap().tokens;
    assert_close(&tokens, &golden["features"], FEATURE_TOLERANCE, "features");
    let feature = vit.forward(input, pass).unwrap();
    assert_close(&feature, &golden["feature"], FEATURE_TOLERANCE, "feature");

    let count = feature.elem_count();
    let target: Vec<f32> = (0..count).map(|i| -1. + 2. * i as f32 / (count - 1) as f32).collect();
    let target = Tensor::from_vec(target, feature.shape(), &Device::Cpu).unwrap();
    let gradients = (feature * target).unwrap().sum_all().unwrap().backward().unwrap();
    let expected = part(golden, "grad.");
    assert_eq!(parameters.trainable().len(), expected.len());
    for (name, variable) in parameters.trainable() {
        let gradient = gradients.get(variable).unwrap_or_else(|| panic!("{name} has no gradient"));
        assert_close(gradient, &expected[name], GRADIENT_TOLERANCE * largest(&expected[name]), name);
    }
}

#[test]
fn features_attention_and_gradients_agree_with_timm() {
    for (name, shape) in [("vit", plain()), ("vit_reg", with_registers_and_layer_scale())] {
        let golden = golden(name);
        compare(&shape, &golden["input"], &golden, &Pass::eval());
        let (vit, _parameters) = vit_with_golden_weights(&shape, &golden);
        let attention = vit.forward_tokens(&golden["input"]).unwrap().last_attention;
        assert_close(&attention, &golden["last_attention"], FEATURE_TOLERANCE, "attention");
        let feature = vit.forward(&golden["input"], &Pass::train(0)).unwrap();
        assert_close(&feature, &golden["train_feature"], FEATURE_TOLERANCE, "train feature");
    }
}

#[test]
fn the_average_of_the_patches_agrees_with_timm() {
    let golden = golden("vit_average");
    let registers = VitShape { registers: 2, embed_prefix: false, ..averaged() };
    compare(&registers, &golden["input"], &part(&golden, "class."), &Pass::train(0));
    let bare = VitShape { class_token: false, ..averaged() };
    compare(&bare, &golden["input"], &part(&golden, "none."), &Pass::train(0));
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
