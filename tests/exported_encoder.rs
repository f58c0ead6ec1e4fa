//! An exported encoder through ONNX Runtime: the same numbers as timm's, and clear errors for files
//! that are something else.

#![allow(clippy::unwrap_used)]

mod fixture;

use std::collections::HashMap;

use candle_core::{DType, Device, Tensor};
use lejepa_data::{CARD_FORMAT, EncoderCard, Feature, Image, InputSize, Output, Precision, Preprocess};
use lejepa_embed::Encoder as Exported;
use lejepa_model::{
    ConvNextShape, Encoder, EncoderConfig, EncoderShape, ImageSize, Parameters, Pass, Pool, ResNetShape,
};
use lejepa_onnx::Export;

/// ONNX Runtime and PyTorch sum in another order; features are of order one.
const TOLERANCE: f32 = 1e-4;

fn config(image_size: ImageSize) -> EncoderConfig {
    EncoderConfig {
        arch: "vit".into(),
        image_size: Some(image_size),
        channels: 3,
        patch_size: Some(8),
        dim: Some(48),
        depth: Some(3),
        heads: Some(3),
        ..Default::default()
    }
}

fn card(size: ImageSize) -> EncoderCard {
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
        config: serde_json::Value::Null,
    }
}

fn encode(size: ImageSize, card: &EncoderCard) -> (Encoder, Vec<u8>) {
    let mut parameters = Parameters::new(5, DType::F32, &Device::Cpu);
    let encoder = Encoder::new(&config(size), parameters.root()).unwrap();
    let bytes = export(&encoder, &parameters, card).unwrap();
    (encoder, bytes)
}

fn export(encoder: &Encoder, parameters: &Parameters, card: &EncoderCard) -> lejepa_onnx::Result<Vec<u8>> {
    let outputs = &[Output::Embedding];
    Export { encoder, parameters, projector: None, outputs, card }.encode()
}

fn open(bytes: &[u8]) -> lejepa_embed::Result<Exported> {
    Exported::builder().open_bytes("test.onnx", bytes)
}

fn largest_difference(left: &[f32], right: &[f32]) -> f32 {
    assert_eq!(left.len(), right.len());
    left.iter().zip(right).map(|(left, right)| (left - right).abs()).fold(0., f32::max)
}

#[test]
fn timms_weights_give_timms_feature_through_onnx_runtime() {
    let path = fixture::repository().join("tests/golden/vit.safetensors");
    let golden = candle_core::safetensors::load(path, &Device::Cpu).unwrap();
    let mut parameters = Parameters::new(0, DType::F32, &Device::Cpu);
    let encoder = Encoder::new(&config(32.into()), parameters.root()).unwrap();
    let weights: HashMap<String, Tensor> = golden
        .iter()
        .filter_map(|(name, tensor)| Some((name.strip_prefix("weights.")?.to_string(), tensor.clone())))
        .collect();
    parameters.load(&weights).unwrap();

    let bytes = export(&encoder, &parameters, &card(32.into())).unwrap();
    let values = |name: &str| -> Vec<f32> { golden[name].flatten_all().unwrap().to_vec1().unwrap() };
    let embedding = open(&bytes).unwrap().embed_pixels(2, &values("input")).unwrap();
    let difference = largest_difference(embedding.as_slice().unwrap(), &values("feature"));
    assert!(difference < TOLERANCE, "{difference:e}");
}

/// Small encoders of every family and kind of block.
fn families(image_size: ImageSize) -> Vec<EncoderShape> {
    let (depths, widths) = ([1, 2, 1, 1], [8, 16, 24, 32]);
    let resnet = |name: &str| ResNetShape { image_size, depths, widths, ..ResNetShape::named(name).unwrap() };
    let grouped = ResNetShape { groups: 2, group_width: 32, ..resnet("resnet50") };
    let convnext = |conv_mlp| {
        EncoderShape::ConvNext(ConvNextShape {
            image_size,
            channels: 3,
            depths,
            widths,
            conv_mlp,
            drop_path: 0.1,
        })
    };
    vec![
        config(image_size).resolve().unwrap(),
        EncoderShape::ResNet(resnet("resnet18")),
        EncoderShape::ResNet(resnet("resnet50")),
        EncoderShape::ResNet(grouped),
        convnext(false),
        convnext(true),
    ]
}

/// An encoder whose running statistics and zero-initialised scales are those of no special case.
fn used_encoder(shape: &EncoderShape) -> (Encoder, Parameters) {
    let mut parameters = Parameters::new(5, DType::F32, &Device::Cpu);
    let encoder = Encoder::with_shape(shape, parameters.root()).unwrap();
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
    (encoder, parameters)
}

/// Compares Candle with ONNX Runtime for batches of several sizes.
fn compare(shape: &EncoderShape, batches: &[usize]) {
    let (encoder, parameters) = used_encoder(shape);
    let size = shape.image_size();
    let card = EncoderCard { embedding_dim: encoder.dim(), ..card(size) };
    let exported = open(&export(&encoder, &parameters, &card).unwrap()).unwrap();
    for &batch in batches {
        let dims = (batch, 3, size.height, size.width);
        let pixels = Tensor::randn(0f32, 1., dims, &Device::Cpu).unwrap();
        let expected = encoder.forward(&pixels, &Pass::eval()).unwrap();
        let expected: Vec<f32> = expected.flatten_all().unwrap().to_vec1().unwrap();
        let pixels: Vec<f32> = pixels.flatten_all().unwrap().to_vec1().unwrap();
        let embedding = exported.embed_pixels(batch, &pixels).unwrap();
        let difference = largest_difference(embedding.as_slice().unwrap(), &expected);
        assert!(difference < TOLERANCE, "{shape:?}, batch {batch}: {difference:e}");
    }
}

#[test]
fn candle_and_onnx_runtime_agree_for_any_family_batch_and_shape() {
    for size in [ImageSize::from(32), ImageSize { height: 40, width: 72 }] {
        for shape in families(size) {
            compare(&shape, &[1, 2, 17]);
        }
    }
}

#[test]
fn candle_and_onnx_runtime_agree_for_every_option_of_a_vision_transformer() {
    let plain = EncoderConfig { depth: Some(2), ..config(32.into()) };
    let registers = EncoderConfig { registers: Some(3), layer_scale: Some(0.3), ..plain.clone() };
    let compare = |config: &EncoderConfig| compare(&config.resolve().unwrap(), &[3]);
    compare(&registers);
    let without_positions = EncoderConfig { embed_prefix: Some(false), ..registers.clone() };
    compare(&without_positions);
    let average = EncoderConfig { pool: Some(Pool::Average), ..registers };
    compare(&average);
    compare(&EncoderConfig { class_token: Some(false), ..average });
    let patches = EncoderConfig { pool: Some(Pool::Average), class_token: Some(false), ..plain };
    compare(&EncoderConfig { mlp_hidden: Some(50), ..patches });
}

#[test]
fn images_of_any_size_and_colour_are_embedded_with_the_files_own_preprocessing() {
    let (_encoder, bytes) = encode(32.into(), &card(32.into()));
    let exported = open(&bytes).unwrap();
    let grey = Image::from_pixels(5, 300, 1, vec![90; 1500]).unwrap();
    let colour = grey.clone().with_channels(3);
    let embeddings = exported.embed(&[grey, colour]).unwrap();
    assert_eq!(embeddings.dim(), (2, 48));
    assert_eq!(embeddings.row(0), embeddings.row(1));
    assert_eq!(exported.embed(&[]).unwrap().dim(), (0, 48));
}

#[test]
fn an_encoder_is_shared_between_threads() {
    let (_encoder, bytes) = encode(32.into(), &card(32.into()));
    let exported = open(&bytes).unwrap();
    let image = Image::from_pixels(32, 32, 3, (0..3072).map(|value| value as u8).collect()).unwrap();
    let expected = exported.embed(std::slice::from_ref(&image)).unwrap();
    std::thread::scope(|scope| {
        for _thread in 0..4 {
            scope.spawn(|| assert_eq!(exported.embed(std::slice::from_ref(&image)).unwrap(), expected));
        }
    });
}

#[test]
fn files_that_are_no_encoders_give_clear_errors() {
    let (_encoder, bytes) = encode(32.into(), &card(32.into()));
    for broken in [&bytes[..bytes.len() / 2], b"not an ONNX file", b""] {
        let message = open(broken).unwrap_err().to_string();
        assert!(message.contains("not a readable ONNX file: test.onnx"), "{message}");
    }
    let mut future = card(32.into());
    future.format = 99;
    let message = open(&encode(32.into(), &future).1).unwrap_err().to_string();
    assert!(message.contains("card format 99 is not known"), "{message}");

    let mut unusable = card(32.into());
    unusable.preprocess.std = vec![0.; 3];
    let message = open(&encode(32.into(), &unusable).1).unwrap_err().to_string();
    assert!(message.contains("`std` must be one positive number per channel"), "{message}");

    let message = Exported::open("nowhere.onnx").unwrap_err().to_string();
    assert_eq!(message, "no such file: nowhere.onnx");
}

#[test]
fn a_card_that_contradicts_the_encoder_is_not_written() {
    let mut parameters = Parameters::new(5, DType::F32, &Device::Cpu);
    let encoder = Encoder::new(&config(32.into()), parameters.root()).unwrap();
    let wrong = EncoderCard { sizes: card(32.into()).sizes, ..card(64.into()) };
    let message = export(&encoder, &parameters, &wrong).unwrap_err().to_string();
    assert_eq!(message, "the card's preprocess.crop_height must be 32, got: 64");
}

#[test]
fn a_wrong_number_of_pixels_is_an_error() {
    let (_encoder, bytes) = encode(32.into(), &card(32.into()));
    let message = open(&bytes).unwrap().embed_pixels(2, &[0.; 3072]).unwrap_err().to_string();
    assert_eq!(message, "pixels must hold 6144 values for 2 images, got: 3072");
}
