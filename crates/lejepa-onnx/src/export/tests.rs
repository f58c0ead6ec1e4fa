//! What stands in a file, for every combination of outputs.

use std::collections::BTreeSet;

use candle_core::{DType, Device};
use lejepa_data::{CARD_FORMAT, Feature, Precision, Preprocess};
use lejepa_model::{ConvNextShape, Pool, Projector, ProjectorConfig, ResNetShape, VitShape};

use super::*;
use crate::proto::GraphProto;

const DEPTH: usize = 3;

fn shapes() -> Vec<EncoderShape> {
    let vit = VitShape {
        image_size: 32.into(),
        patch_size: 8,
        dim: 24,
        depth: DEPTH,
        heads: 2,
        mlp_hidden: 96,
        layer_scale: Some(0.1),
        ..Default::default()
    };
    let average = VitShape { pool: Pool::Average, registers: 2, ..vit.clone() };
    let (depths, widths, image_size) = ([1; 4], [4, 8, 12, 16], 32.into());
    let resnet = ResNetShape { depths, widths, image_size, ..ResNetShape::named("resnet18").unwrap() };
    let convnext =
        ConvNextShape { depths, widths, image_size, ..ConvNextShape::named("convnextv2_atto").unwrap() };
    vec![
        EncoderShape::Vit(vit),
        EncoderShape::Vit(average),
        EncoderShape::ResNet(resnet),
        EncoderShape::ConvNext(convnext),
    ]
}

struct Written {
    sides: Vec<usize>,
    precision: Precision,
}

/// The graph that is written for these outputs.
fn graph(shape: &EncoderShape, outputs: &[Output], written: &Written) -> GraphProto {
    let mut parameters = Parameters::new(0, DType::F32, &Device::Cpu);
    let encoder = Encoder::with_shape(shape, parameters.root()).unwrap();
    let mut projector = Parameters::new(0, DType::F32, &Device::Cpu);
    let config = ProjectorConfig { hidden: vec![20], dim: 5 };
    Projector::new(shape.dim(), &config, projector.root()).unwrap();
    let card = EncoderCard {
        format: CARD_FORMAT,
        arch: String::new(),
        feature: Feature::Cls,
        embedding_dim: shape.dim(),
        precision: written.precision,
        preprocess: Preprocess::new(32, (32, 32), 3),
        sizes: written.sides.iter().map(|&side| InputSize { height: side, width: side }).collect(),
        licence: String::new(),
        step: 0,
        data_fingerprint: String::new(),
        checksum: false,
        seen: None,
        config: serde_json::Value::Null,
    };
    let export = Export {
        encoder: &encoder,
        parameters: &parameters,
        projector: Some(&projector),
        outputs,
        card: &card,
    };
    ModelProto::decode(&*export.encode().unwrap()).unwrap().graph.unwrap()
}

/// All combinations of some outputs, but for none at all.
fn combinations(outputs: &[Output]) -> Vec<Vec<Output>> {
    let of_set = |set: usize| {
        let of_set = outputs.iter().enumerate().filter(|(index, _)| set >> index & 1 == 1);
        of_set.map(|(_, &output)| output).collect()
    };
    (1..1 << outputs.len()).map(of_set).collect()
}

fn operators(graph: &GraphProto) -> Vec<&str> {
    graph.node.iter().map(|node| node.op_type()).collect()
}

#[test]
fn a_file_holds_what_its_outputs_need_and_nothing_else() {
    for shape in shapes() {
        let outputs = [available_outputs(&shape), vec![Output::Projection]].concat();
        for outputs in combinations(&outputs) {
            for (sides, precision) in
                [(vec![32], Precision::F32), (vec![32, 64], Precision::F16), (vec![32, 64], Precision::Int8)]
            {
                let graph = graph(&shape, &outputs, &Written { sides, precision });
                let mut made: BTreeSet<&str> = graph.initializer.iter().map(|value| value.name()).collect();
                assert_eq!(made.len(), graph.initializer.len(), "names are given once");
                made.insert(PIXELS_INPUT);
                let mut used: BTreeSet<&str> = graph.output.iter().map(|value| value.name()).collect();
                assert_eq!(graph.output.len(), outputs.len());
                for node in &graph.node {
                    for input in &node.input {
                        assert!(made.contains(&**input), "{input} is used before it is made");
                        used.insert(input);
                    }
                    for output in &node.output {
                        assert!(made.insert(output), "{output} is made twice");
                    }
                }
                assert_eq!(made, used, "{outputs:?} of {shape:?}");
            }
        }
    }
}

#[test]
fn an_embedding_by_class_token_leaves_the_other_tokens_out_of_the_last_block() {
    let (shape, written) = (&shapes()[0], Written { sides: vec![32], precision: Precision::F32 });
    let one = graph(shape, &[Output::Embedding], &written);
    let all_tokens = format!("blocks.{}.attn.q/out", DEPTH - 1);
    let has = |graph: &GraphProto, name: &str| graph.node.iter().any(|node| node.name() == name);
    assert!(!has(&one, &all_tokens));
    let both = graph(shape, &[Output::Embedding, Output::PatchTokens], &written);
    assert!(has(&both, &all_tokens));
    // Keys and values are those of the other, and so are all weights.
    let keys = |graph: &GraphProto| {
        let is_key = |name: &str| name.starts_with(&format!("blocks.{}.attn.k/", DEPTH - 1));
        graph.node.iter().filter(|node| is_key(node.name())).count()
    };
    assert_eq!(keys(&one), keys(&both));
    let weights = |graph: &GraphProto| {
        graph.initializer.iter().filter(|value| value.name().contains("blocks.")).count()
    };
    assert_eq!(weights(&one), weights(&both));
}

#[test]
fn the_class_token_before_the_last_block_costs_a_norm() {
    let (shape, written) = (&shapes()[0], Written { sides: vec![32], precision: Precision::F32 });
    let one = graph(shape, &[Output::Embedding], &written);
    let two = graph(shape, &[Output::ClsLast2], &written);
    let added = |operator: &str| {
        let count = |graph: &GraphProto| operators(graph).iter().filter(|&&name| name == operator).count();
        count(&two) - count(&one)
    };
    assert_eq!((added("LayerNormalization"), added("Concat")), (1, 1));
    assert_eq!(two.node.len(), one.node.len() + 2);
}

#[test]
fn integers_are_made_once_for_queries_keys_and_values() {
    let written = Written { sides: vec![32], precision: Precision::Int8 };
    let graph = graph(&shapes()[0], &[Output::PatchTokens], &written);
    let quantised = operators(&graph).iter().filter(|&&name| name == "DynamicQuantizeLinear").count();
    // Before the three, the projection and both layers of the perceptron.
    assert_eq!(quantised, 4 * DEPTH);
}

#[test]
fn a_self_test_is_added_to_the_metadata() {
    let test = SelfTest {
        height: 1,
        width: 1,
        channels: 1,
        pixels: "00".into(),
        embedding: vec![1.],
        tolerance: 0.1,
    };
    let first = ModelProto { metadata_props: vec![entry(CARD_KEY, "{}".into())], ..Default::default() };
    let bytes = with_self_test(first.encode_to_vec(), &test).unwrap();
    let entries = ModelProto::decode(&*bytes).unwrap().metadata_props;
    let [card, found, checksum] = &*entries else { panic!("three entries") };
    assert_eq!((card.key(), found.key(), checksum.key()), (CARD_KEY, SELF_TEST_KEY, CHECKSUM_KEY));
    assert_eq!(serde_json::from_str::<SelfTest>(found.value()).unwrap(), test);
}

#[test]
fn weights_beside_the_file_are_those_inside_of_it() {
    let mut parameters = Parameters::new(0, DType::F32, &Device::Cpu);
    let shape = &shapes()[0];
    let encoder = Encoder::with_shape(shape, parameters.root()).unwrap();
    let card = EncoderCard {
        format: CARD_FORMAT,
        arch: String::new(),
        feature: Feature::Cls,
        embedding_dim: shape.dim(),
        precision: Precision::F32,
        preprocess: Preprocess::new(32, (32, 32), 3),
        sizes: vec![InputSize { height: 32, width: 32 }],
        licence: String::new(),
        step: 0,
        data_fingerprint: String::new(),
        checksum: false,
        seen: None,
        config: serde_json::Value::Null,
    };
    let outputs = &[Output::Embedding];
    let export = Export { encoder: &encoder, parameters: &parameters, projector: None, outputs, card: &card };
    let whole = ModelProto::decode(&*export.encode().unwrap()).unwrap();
    let mut weights = Vec::new();
    let split = export.encode_beside(&mut weights, |hash| format!("{hash}.weights")).unwrap();
    let split = ModelProto::decode(&*split).unwrap();
    let hash = blake3::hash(&weights).to_hex();
    let stored = split.metadata_props.iter().find(|entry| entry.key() == WEIGHTS_KEY).unwrap();
    assert_eq!(stored.value(), hash.as_str());
    let (whole, split) = (whole.graph.unwrap(), split.graph.unwrap());
    assert_eq!(whole.node, split.node);
    let mut outside = 0;
    for (whole, split) in whole.initializer.iter().zip(&split.initializer) {
        let Some([location, offset, length]) = split.external_data.first_chunk::<3>() else {
            assert_eq!(whole, split);
            continue;
        };
        outside += 1;
        assert_eq!((location.key(), location.value()), ("location", &*format!("{hash}.weights")));
        let number = |entry: &StringStringEntryProto| entry.value().parse::<usize>().unwrap();
        assert_eq!(number(offset) % 64, 0);
        assert_eq!(&weights[number(offset)..][..number(length)], whole.raw_data());
    }
    assert!(outside > 10 && outside < whole.initializer.len());
    let estimate = export.weights_length() as f64
        / whole.initializer.iter().map(|it| it.raw_data().len()).sum::<usize>() as f64;
    assert!((0.9..1.2).contains(&estimate), "{estimate}");
}
