//! The ONNX file around a graph: versions, producer and the encoder's card.

use lejepa_data::{CARD_KEY, EncoderCard};
use lejepa_model::{Encoder, Parameters};
use prost::Message;

use crate::proto::{ModelProto, OperatorSetIdProto, StringStringEntryProto};
use crate::{Error, Result, convnext, resnet, vit};

/// The oldest operator set with layer normalisation: read by runtimes since 2022.
const OPSET: i64 = 17;
/// The file format of that time.
const IR_VERSION: i64 = 8;

/// The bytes of an ONNX file with the encoder in evaluation mode and its card.
pub fn encode(encoder: &Encoder, parameters: &Parameters, card: &EncoderCard) -> Result<Vec<u8>> {
    check_card(encoder, card)?;
    let graph = match encoder {
        Encoder::Vit(vit) => vit::graph(vit.shape(), parameters)?,
        Encoder::ResNet(resnet) => resnet::graph(resnet.shape(), parameters)?,
        Encoder::ConvNext(convnext) => convnext::graph(convnext.shape(), parameters)?,
    };
    let model = ModelProto {
        ir_version: Some(IR_VERSION),
        opset_import: vec![OperatorSetIdProto { domain: Some(String::new()), version: Some(OPSET) }],
        producer_name: Some("lejepa".into()),
        producer_version: Some(env!("CARGO_PKG_VERSION").into()),
        graph: Some(graph),
        metadata_props: vec![StringStringEntryProto {
            key: Some(CARD_KEY.into()),
            value: Some(serde_json::to_string(card)?),
        }],
        ..Default::default()
    };
    Ok(model.encode_to_vec())
}

/// A card that contradicts the graph would only be noticed by a reader.
fn check_card(encoder: &Encoder, card: &EncoderCard) -> Result<()> {
    let shape = encoder.shape();
    let size = shape.image_size();
    let preprocess = &card.preprocess;
    let expected = [
        ("embedding_dim", encoder.dim(), card.embedding_dim),
        ("preprocess.channels", shape.channels(), preprocess.channels),
        ("preprocess.crop_height", size.height, preprocess.crop_height),
        ("preprocess.crop_width", size.width, preprocess.crop_width),
    ];
    for (field, expected, got) in expected {
        if expected != got {
            return Err(Error::Card { field, expected: expected.to_string(), got: got.to_string() });
        }
    }
    Ok(())
}
