//! The ONNX file around a graph: versions, producer and the encoder's card.

use std::collections::BTreeMap;
use std::io::Write;

use lejepa_data::{
    CARD_KEY, CHECKSUM_KEY, EncoderCard, InputSize, Output, PIXELS_INPUT, SELF_TEST_KEY, SelfTest,
    WEIGHTS_KEY,
};
use lejepa_model::{Encoder, EncoderShape, ImageSize, Parameters};
use prost::Message;

use crate::family::writer;
use crate::graph::{
    BATCH, Dimension,
    Dimension::{Fixed, Named},
    Graph,
};
use crate::proto::{GraphProto, ModelProto, OperatorSetIdProto, StringStringEntryProto};
use crate::{Error, Result, beside, projector};

/// The oldest operator set with layer normalisation: read by runtimes since 2022.
const OPSET: i64 = 17;
/// The file format of that time.
const IR_VERSION: i64 = 8;

/// Bytes of weights that are kept inside of an ONNX file: one has at most 2 GiB, names and nodes included.
pub const LARGEST_INSIDE: u64 = 2_000_000_000;

/// An encoder and what is to be written of it.
#[derive(Debug, Clone, Copy)]
pub struct Export<'a> {
    /// The encoder, in evaluation mode.
    pub encoder: &'a Encoder,
    /// Its parameters.
    pub parameters: &'a Parameters,
    /// Parameters of the projector behind it, for [`Output::Projection`].
    pub projector: Option<&'a Parameters>,
    /// What the file computes, in this order.
    pub outputs: &'a [Output],
    /// What the file says about itself; its sizes and its precision are those of the file.
    pub card: &'a EncoderCard,
}

impl Export<'_> {
    /// The bytes of an ONNX file, weights included.
    pub fn encode(&self) -> Result<Vec<u8>> {
        let bytes = self.weights_length();
        if bytes > LARGEST_INSIDE {
            return Err(Error::TooLarge { bytes, most: LARGEST_INSIDE });
        }
        self.finish(self.graph()?, None)
    }

    /// The bytes of an ONNX file whose weights are in another one beside it: they go to `weights` one after
    /// the other, and are in memory once besides those of the encoder. `location` makes a name of that file's
    /// BLAKE3 hash, which is in the metadata too.
    pub fn encode_beside(
        &self,
        weights: &mut dyn Write,
        location: impl FnOnce(&str) -> String,
    ) -> Result<Vec<u8>> {
        let mut graph = self.graph()?;
        let hash = beside::write(&mut graph, weights)?;
        beside::set_location(&mut graph, &location(&hash));
        self.finish(graph, Some(hash))
    }

    /// About how many bytes the weights of the file are.
    pub fn weights_length(&self) -> u64 {
        let parameters = self.parameters.tensors();
        let projector = self.projector.into_iter().flat_map(|projector| projector.tensors());
        let values = parameters.chain(projector).map(|(_, tensor)| tensor.elem_count() as u64).sum::<u64>();
        values * self.card.precision.bytes()
    }

    fn graph(&self) -> Result<GraphProto> {
        self.check_outputs()?;
        self.check_card()?;
        let (shape, sizes) = (self.encoder.shape(), self.card.sizes.as_slice());
        let mut weights: BTreeMap<_, _> =
            self.parameters.tensors().map(|(name, tensor)| (name.to_string(), tensor)).collect();
        for (name, tensor) in self.projector.iter().flat_map(|projector| projector.tensors()) {
            weights.insert(format!("{}.{name}", projector::PREFIX), tensor);
        }
        let mut graph = Graph::new("encoder", self.card.precision, weights);
        declare(&mut graph, &shape, sizes);
        writer(&shape).write(&mut graph, sizes)?;
        if self.projector.is_some() {
            projector::write(&mut graph)?;
        }
        Ok(graph.finish(self.outputs))
    }

    fn finish(&self, graph: GraphProto, weights_hash: Option<String>) -> Result<Vec<u8>> {
        let card = EncoderCard { checksum: true, ..self.card.clone() };
        let mut metadata_props = vec![entry(CARD_KEY, serde_json::to_string(&card)?)];
        metadata_props.extend(weights_hash.map(|hash| entry(WEIGHTS_KEY, hash)));
        let model = ModelProto {
            ir_version: Some(IR_VERSION),
            opset_import: vec![OperatorSetIdProto { domain: Some(String::new()), version: Some(OPSET) }],
            producer_name: Some("lejepa".into()),
            producer_version: Some(env!("CARGO_PKG_VERSION").into()),
            graph: Some(graph),
            metadata_props,
            ..Default::default()
        };
        Ok(with_checksum(model.encode_to_vec()))
    }

    fn check_outputs(&self) -> Result<()> {
        let mut available = available_outputs(&self.encoder.shape());
        if self.projector.is_some() {
            available.push(Output::Projection);
        }
        if self.outputs.is_empty() {
            return Err(Error::NoOutput);
        }
        for (index, &output) in self.outputs.iter().enumerate() {
            if self.outputs[..index].contains(&output) {
                return Err(Error::RepeatedOutput { output });
            }
            if !available.contains(&output) {
                return Err(Error::Output { output, available });
            }
        }
        Ok(())
    }

    /// A card that contradicts the graph would only be noticed by a reader.
    fn check_card(&self) -> Result<()> {
        let (shape, preprocess) = (self.encoder.shape(), &self.card.preprocess);
        let refuse = |field, expected, got| Err(Error::Card { field, expected, got });
        let Some(first) = self.card.sizes.first() else {
            return refuse("sizes", "at least one size".into(), "none".into());
        };
        let expected = [
            ("embedding_dim", shape.dim(), self.card.embedding_dim),
            ("preprocess.channels", shape.channels(), preprocess.channels),
            ("preprocess.crop_height", first.height, preprocess.crop_height),
            ("preprocess.crop_width", first.width, preprocess.crop_width),
        ];
        for (field, expected, got) in expected {
            if expected != got {
                return refuse(field, expected.to_string(), got.to_string());
            }
        }
        for (index, &InputSize { height, width }) in self.card.sizes.iter().enumerate() {
            let size = ImageSize { height, width };
            if self.card.sizes[..index].contains(&InputSize { height, width }) {
                return refuse("sizes", "different sizes".into(), format!("{size} twice"));
            }
            shape.check_image_size("card.sizes", size)?;
        }
        Ok(())
    }
}

/// Outputs that every encoder has.
const OF_ALL: [Output; 2] = [Output::Embedding, Output::PatchTokens];
/// Rows and columns in a file that takes several sizes.
const NAMED_GRID: [Dimension; 2] = [Named("rows"), Named("columns")];

/// What an encoder of these sizes can compute without a projector.
pub fn available_outputs(shape: &EncoderShape) -> Vec<Output> {
    let further = writer(shape).further_outputs(NAMED_GRID).into_iter().map(|(output, _)| output);
    let mut outputs: Vec<Output> = OF_ALL.into_iter().chain(further).collect();
    outputs.sort_unstable();
    outputs
}

/// The same file with a self-test in its metadata.
pub fn with_self_test(mut bytes: Vec<u8>, test: &SelfTest) -> Result<Vec<u8>> {
    let addition = ModelProto {
        metadata_props: vec![entry(SELF_TEST_KEY, serde_json::to_string(test)?)],
        ..Default::default()
    };
    // Messages one behind the other are read as one that has the fields of both.
    bytes.truncate(unchecked_length(&bytes));
    bytes.extend(addition.encode_to_vec());
    Ok(with_checksum(bytes))
}

/// The same file with a checksum as its last field, in place of the one that stands there.
pub fn with_checksum(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.truncate(unchecked_length(&bytes));
    let checksum = checksum_field(&blake3::hash(&bytes).to_hex());
    bytes.extend(checksum);
    bytes
}

fn checksum_field(digits: &str) -> Vec<u8> {
    let metadata_props = vec![entry(CHECKSUM_KEY, digits.into())];
    ModelProto { metadata_props, ..Default::default() }.encode_to_vec()
}

/// Bytes before the checksum, if that is the last field.
fn unchecked_length(bytes: &[u8]) -> usize {
    const DIGITS: usize = 2 * blake3::OUT_LEN;
    let field = checksum_field(&"0".repeat(DIGITS));
    let before = bytes.len().saturating_sub(field.len());
    let head = &field[..field.len() - DIGITS];
    if bytes[before..].starts_with(head) { before } else { bytes.len() }
}

fn entry(key: &str, value: String) -> StringStringEntryProto {
    StringStringEntryProto { key: Some(key.into()), value: Some(value) }
}

/// Input and outputs with their shapes; sides have names where a file takes several sizes.
fn declare(graph: &mut Graph<'_>, shape: &EncoderShape, sizes: &[InputSize]) {
    let (writer, dim) = (writer(shape), Fixed(shape.dim()));
    let (height, width, grid) = match *sizes {
        [size] => (Fixed(size.height), Fixed(size.width), writer.grid(size).map(Fixed)),
        _ => (Named("height"), Named("width"), NAMED_GRID),
    };
    let [rows, columns] = grid;
    graph.input(PIXELS_INPUT, &[BATCH, Fixed(shape.channels()), height, width]);
    graph.output(Output::Embedding, &[BATCH, dim]);
    graph.output(Output::PatchTokens, &[BATCH, rows, columns, dim]);
    for (output, shape) in writer.further_outputs(grid) {
        graph.output(output, &[[BATCH].as_slice(), &shape].concat());
    }
}

#[cfg(test)]
mod tests;
