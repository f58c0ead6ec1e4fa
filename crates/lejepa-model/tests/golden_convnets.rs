//! The convolutional encoders against timm (`tests/golden/README.md`).

#![allow(clippy::unwrap_used, clippy::panic)]

mod golden_file;

use std::collections::HashMap;

use candle_core::{DType, Device, Tensor};
use golden_file::{golden, largest, part};
use lejepa_model::{
    ConvNext, ConvNextShape, Encoder, EncoderShape, Parameters, Pass, ResNetBlock, ResNetShape,
};

/// Both sides compute in f32, with another order of summation; relative to the largest entry.
const TOLERANCE: f32 = 2e-5;
/// A batch norm's statistics over eight places of two images make small differences larger.
const GRADIENT_TOLERANCE: f32 = 1e-4;

fn assert_close(left: &Tensor, right: &Tensor, tolerance: f32, what: &str) {
    assert_eq!(left.dims(), right.dims(), "{what}");
    let difference = largest(&(left - right).unwrap()) / largest(right);
    assert!(difference <= tolerance, "{what}: {difference:e} above {tolerance:e}");
}

fn golden_model(golden: &HashMap<String, Tensor>, shape: &EncoderShape) -> (Encoder, Parameters) {
    let mut parameters = Parameters::new(0, DType::F32, &Device::Cpu);
    let encoder = Encoder::with_shape(shape, parameters.root()).unwrap();
    parameters.load(&part(golden, "weights.")).unwrap();
    (encoder, parameters)
}

fn agrees_with_timm(name: &str, shape: &EncoderShape) {
    let golden = golden(name);
    let (encoder, parameters) = golden_model(&golden, shape);
    let map = encoder.patch_tokens(&golden["input"]).unwrap().permute((0, 3, 1, 2)).unwrap();
    assert_close(&map, &golden["features"], TOLERANCE, "features");
    let feature = encoder.forward(&golden["input"], &Pass::eval()).unwrap();
    assert_close(&feature, &golden["feature"], TOLERANCE, "feature");

    let feature = encoder.forward(&golden["input"], &Pass::train(0)).unwrap();
    assert_close(&feature, &golden["train_feature"], TOLERANCE, "train feature");
    let count = feature.elem_count();
    let target: Vec<f32> = (0..count).map(|i| -1. + 2. * i as f32 / (count - 1) as f32).collect();
    let target = Tensor::from_vec(target, feature.shape(), &Device::Cpu).unwrap();
    let gradients = (feature * target).unwrap().sum_all().unwrap().backward().unwrap();
    let expected = golden.keys().filter(|name| name.starts_with("grad.")).count();
    assert_eq!(parameters.trainable().len(), expected);
    for (name, variable) in parameters.trainable() {
        let gradient = gradients.get(variable).unwrap_or_else(|| panic!("{name} has no gradient"));
        assert_close(gradient, &golden[&format!("grad.{name}")], GRADIENT_TOLERANCE, name);
    }

    let after: HashMap<&str, &Tensor> = parameters.tensors().collect();
    for (name, expected) in &golden {
        if let Some(name) = name.strip_prefix("after.") {
            assert_close(after[name], expected, TOLERANCE, name);
        }
    }
}

#[test]
fn a_residual_network_agrees_with_timm() {
    let shape = ResNetShape {
        image_size: 64.into(),
        depths: [1; 4],
        widths: [8, 16, 24, 32],
        ..ResNetShape::named("resnet18").unwrap()
    };
    agrees_with_timm("resnet_basic", &EncoderShape::ResNet(shape));
}

#[test]
fn a_convnext_agrees_with_timm() {
    let shape = ConvNextShape {
        image_size: 64.into(),
        depths: [1, 1, 2, 1],
        widths: [8, 16, 24, 32],
        conv_mlp: false,
        ..ConvNextShape::named("convnextv2_atto").unwrap()
    };
    agrees_with_timm("convnextv2", &EncoderShape::ConvNext(shape));
}

/// Parameters of timm 1.0.30 without the classifier.
#[test]
fn a_name_has_timms_parameter_count() {
    let mut parameters = Parameters::new(0, DType::F32, &Device::Cpu);
    ConvNext::new(&ConvNextShape::named("convnextv2_atto").unwrap(), parameters.root()).unwrap();
    assert_eq!(parameters.trainable_count(), 3_387_400);
}

#[test]
fn every_parameter_of_a_fresh_encoder_has_a_gradient() {
    let resnet = ResNetShape {
        image_size: 64.into(),
        depths: [1, 2, 1, 1],
        widths: [16, 16, 32, 32],
        ..ResNetShape::named("resnext50_32x4d").unwrap()
    };
    let convnext = ConvNextShape {
        image_size: 64.into(),
        depths: [1; 4],
        widths: [8, 16, 24, 32],
        conv_mlp: false,
        ..ConvNextShape::named("convnextv2_atto").unwrap()
    };
    let basic = ResNetShape { block: ResNetBlock::Basic, groups: 1, group_width: 64, ..resnet.clone() };
    for shape in [EncoderShape::ResNet(resnet), EncoderShape::ResNet(basic), EncoderShape::ConvNext(convnext)]
    {
        let mut parameters = Parameters::new(1, DType::F32, &Device::Cpu);
        let encoder = Encoder::with_shape(&shape, parameters.root()).unwrap();
        let pixels = Tensor::randn(0f32, 1., (4, 3, 64, 40), &Device::Cpu).unwrap();
        let feature = encoder.forward(&pixels, &Pass::train(0)).unwrap();
        let gradients = feature.sin().unwrap().sqr().unwrap().sum_all().unwrap().backward().unwrap();
        for (name, variable) in parameters.trainable() {
            let gradient = gradients.get(variable).unwrap_or_else(|| panic!("{name} has no gradient"));
            assert!(largest(gradient) > 0., "{name}");
        }
    }
}
