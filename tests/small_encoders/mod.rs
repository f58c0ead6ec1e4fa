//! Small encoders of every family and kind, with their cards, for tests that export them.

#![allow(dead_code, clippy::unwrap_used)]

use candle_core::{DType, Device, Tensor};
use lejepa_data::{CARD_FORMAT, EncoderCard, Feature, InputSize, Precision, Preprocess};
use lejepa_model::{
    ConvNextShape, Encoder, EncoderShape, ImageSize, Parameters, Pool, ResNetShape, VitShape,
};

/// A plain vision transformer.
pub(crate) fn vit(image_size: ImageSize) -> VitShape {
    VitShape { image_size, patch_size: 8, dim: 48, depth: 3, heads: 3, mlp_hidden: 192, ..Default::default() }
}

/// The card of an encoder file for images of one size.
pub(crate) fn card(size: ImageSize) -> EncoderCard {
    EncoderCard {
        format: CARD_FORMAT,
        arch: "vit".into(),
        feature: Feature::Cls,
        embedding_dim: 48,
        precision: Precision::F32,
        preprocess: Preprocess::new(size.height.min(size.width), (size.height, size.width), 3),
        sizes: vec![InputSize { height: size.height, width: size.width }],
        licence: String::new(),
        step: 0,
        data_fingerprint: String::new(),
        checksum: false,
        seen: None,
        config: serde_json::Value::Null,
    }
}

/// One encoder of every family and kind of block.
pub(crate) fn families(image_size: ImageSize) -> Vec<EncoderShape> {
    let mut shapes = convolutional(image_size, [8, 16, 24, 32]);
    shapes.push(EncoderShape::Vit(vit(image_size)));
    shapes
}

/// Residual networks of every kind of block, and ConvNeXt with both kinds of perceptron.
pub(crate) fn convolutional(image_size: ImageSize, widths: [usize; 4]) -> Vec<EncoderShape> {
    let depths = [1, 2, 1, 1];
    let resnet = |name: &str| ResNetShape { image_size, depths, widths, ..ResNetShape::named(name).unwrap() };
    let grouped = ResNetShape { groups: 2, group_width: 32, ..resnet("resnet50") };
    let convnext = |conv_mlp| {
        let (channels, drop_path) = (3, 0.1);
        EncoderShape::ConvNext(ConvNextShape { image_size, channels, depths, widths, conv_mlp, drop_path })
    };
    vec![
        EncoderShape::ResNet(resnet("resnet18")),
        EncoderShape::ResNet(resnet("resnet50")),
        EncoderShape::ResNet(grouped),
        convnext(false),
        convnext(true),
    ]
}

/// Vision transformers with every option, based on a plain one.
pub(crate) fn vit_options(plain: VitShape) -> Vec<EncoderShape> {
    let registers = VitShape { registers: 3, layer_scale: Some(0.3), ..plain.clone() };
    let without_positions = VitShape { embed_prefix: false, ..registers.clone() };
    let average = VitShape { pool: Pool::Average, ..registers.clone() };
    let without_class = VitShape { class_token: false, ..average.clone() };
    let patches = VitShape { registers: 0, mlp_hidden: 50, ..without_class.clone() };
    let shallow = VitShape { depth: 1, ..plain.clone() };
    [plain, registers, without_positions, average, without_class, patches, shallow]
        .map(EncoderShape::Vit)
        .into()
}

/// An encoder whose running statistics and zero-initialised scales are those of no special case.
pub(crate) fn used_encoder(shape: &EncoderShape) -> (Encoder, Parameters) {
    let mut parameters = Parameters::new(5, DType::F32, &Device::Cpu);
    let encoder = Encoder::with_shape(shape, parameters.root()).unwrap();
    use_parameters(&parameters);
    (encoder, parameters)
}

/// Moves first values that are those of a special case.
pub(crate) fn use_parameters(parameters: &Parameters) {
    let tensors = parameters
        .tensors()
        .map(|(name, tensor)| {
            let noise = Tensor::randn(0f32, 0.1, tensor.shape(), &Device::Cpu).unwrap();
            let noise = if tensor.rank() == 1 { noise } else { noise.zeros_like().unwrap() };
            let noise = if name.ends_with("running_var") { noise.abs().unwrap() } else { noise };
            (name.to_string(), (tensor + noise).unwrap())
        })
        .collect();
    parameters.load(&tensors).unwrap();
}

/// The values of a tensor, line by line.
pub(crate) fn values(tensor: &Tensor) -> Vec<f32> {
    tensor.flatten_all().unwrap().to_vec1().unwrap()
}

pub(crate) fn largest_difference(left: &[f32], right: &[f32]) -> f32 {
    assert_eq!(left.len(), right.len());
    left.iter().zip(right).map(|(left, right)| (left - right).abs()).fold(0., f32::max)
}
