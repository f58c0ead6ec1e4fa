//! An exported encoder through ONNX Runtime: the same numbers as timm's, and clear errors for files
//! that are something else.

#![allow(clippy::unwrap_used)]

mod fixture;
mod small_encoders;

use std::collections::HashMap;

use candle_core::{DType, Device, Tensor};
use lejepa_data::{EncoderCard, Image, Output};
use lejepa_embed::Encoder as Exported;
use lejepa_model::{Encoder, EncoderShape, ImageSize, Parameters, Pass, VitShape};
use lejepa_onnx::Export;
use small_encoders::{card, families, largest_difference, used_encoder, values, vit, vit_options};

/// ONNX Runtime and PyTorch sum in another order; features are of order one.
const TOLERANCE: f32 = 1e-4;

fn encode(size: ImageSize, card: &EncoderCard) -> (Encoder, Vec<u8>) {
    let mut parameters = Parameters::new(5, DType::F32, &Device::Cpu);
    let encoder = Encoder::with_shape(&EncoderShape::Vit(vit(size)), parameters.root()).unwrap();
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

#[test]
fn timms_weights_give_timms_feature_through_onnx_runtime() {
    let path = fixture::repository().join("tests/golden/vit.safetensors");
    let golden = candle_core::safetensors::load(path, &Device::Cpu).unwrap();
    let mut parameters = Parameters::new(0, DType::F32, &Device::Cpu);
    let encoder = Encoder::with_shape(&EncoderShape::Vit(vit(32.into())), parameters.root()).unwrap();
    let weights: HashMap<String, Tensor> = golden
        .iter()
        .filter_map(|(name, tensor)| Some((name.strip_prefix("weights.")?.to_string(), tensor.clone())))
        .collect();
    parameters.load(&weights).unwrap();

    let bytes = export(&encoder, &parameters, &card(32.into())).unwrap();
    let embedding = open(&bytes).unwrap().embed_pixels(2, &values(&golden["input"])).unwrap();
    let difference = largest_difference(embedding.as_slice().unwrap(), &values(&golden["feature"]));
    assert!(difference < TOLERANCE, "{difference:e}");
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
        let embedding = exported.embed_pixels(batch, &values(&pixels)).unwrap();
        let difference = largest_difference(embedding.as_slice().unwrap(), &values(&expected));
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
    for shape in vit_options(VitShape { depth: 2, ..vit(32.into()) }) {
        compare(&shape, &[3]);
    }
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
fn a_card_that_contradicts_the_encoder_is_not_written() {
    let mut parameters = Parameters::new(5, DType::F32, &Device::Cpu);
    let encoder = Encoder::with_shape(&EncoderShape::Vit(vit(32.into())), parameters.root()).unwrap();
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
