//! Builds an ONNX graph node by node; values are named after the place that makes them.
//!
//! A family writes everything it can compute, and [`Graph::finish`] keeps what the asked outputs need.

use std::collections::{BTreeMap, BTreeSet};

use candle_core::{DType, Tensor};
use lejepa_data::{Output, Precision};

use crate::proto::{
    AttributeProto, GraphProto, NodeProto, TensorProto, TensorShapeProto, TypeProto, ValueInfoProto,
    attribute_proto::AttributeType, tensor_proto::DataType, tensor_shape_proto, type_proto,
};
use crate::{Error, Result};

/// Fewer floats than this stay as they are, in whatever precision.
const FEW: usize = 16;

/// A graph under construction.
pub(crate) struct Graph<'a> {
    precision: Precision,
    weights: BTreeMap<String, &'a Tensor>,
    /// Names of values that are there already.
    values: BTreeSet<String>,
    outputs: BTreeMap<Output, ValueInfoProto>,
    proto: GraphProto,
}

/// An attribute of a node.
pub(crate) enum Attribute<'a> {
    Int(i64),
    Ints(&'a [i64]),
    Float(f32),
}

/// A dimension of an input or output.
#[derive(Clone, Copy)]
pub(crate) enum Dimension {
    Named(&'static str),
    Fixed(usize),
}

/// The first dimension of every input and output.
pub(crate) const BATCH: Dimension = Dimension::Named("batch");

impl<'a> Graph<'a> {
    pub(crate) fn new(name: &str, precision: Precision, weights: BTreeMap<String, &'a Tensor>) -> Self {
        let proto = GraphProto { name: Some(name.into()), ..Default::default() };
        Self { precision, weights, values: BTreeSet::new(), outputs: BTreeMap::new(), proto }
    }

    /// Whether there is a value of this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.values.contains(name)
    }

    /// How weights are stored.
    pub(crate) fn precision(&self) -> Precision {
        self.precision
    }

    /// The encoder's tensor of this name.
    pub(crate) fn weight(&self, name: &str) -> Result<&'a Tensor> {
        self.weights.get(name).copied().ok_or_else(|| Error::MissingParameter { name: name.into() })
    }

    /// Adds the encoder's tensor of this name as it is, and returns the name.
    pub(crate) fn parameter(&mut self, name: &str) -> Result<String> {
        self.floats(name, self.weight(name)?)
    }

    /// Adds a constant of floats and returns its name; a second constant of one name is the first.
    pub(crate) fn floats(&mut self, name: &str, tensor: &Tensor) -> Result<String> {
        if self.has(name) {
            return Ok(name.into());
        }
        if self.precision != Precision::F16 || tensor.elem_count() < FEW {
            return self.tensor(name, DataType::Float, &tensor.to_dtype(DType::F32)?);
        }
        let half = tensor.to_dtype(DType::F16)?;
        let sum: f32 = half.to_dtype(DType::F32)?.abs()?.sum_all()?.to_scalar()?;
        if !sum.is_finite() {
            return Err(Error::HalfRange { name: name.into() });
        }
        let half = self.tensor(&format!("{name}.half"), DataType::Float16, &half)?;
        Ok(self.cast(name, &half, DataType::Float))
    }

    fn tensor(&mut self, name: &str, kind: DataType, tensor: &Tensor) -> Result<String> {
        let mut bytes = Vec::with_capacity(tensor.elem_count() * tensor.dtype().size_in_bytes());
        tensor.write_bytes(&mut bytes)?;
        Ok(self.constant(name, kind, tensor.dims(), bytes))
    }

    /// Adds a constant of bytes.
    pub(crate) fn bytes(&mut self, name: &str, shape: &[usize], values: &[i8]) -> String {
        self.constant(name, DataType::Int8, shape, values.iter().map(|&value| value as u8).collect())
    }

    /// Adds a single float.
    pub(crate) fn float(&mut self, name: &str, value: f32) -> String {
        self.constant(name, DataType::Float, &[], value.to_le_bytes().to_vec())
    }

    /// Adds integers of any shape.
    pub(crate) fn ints(&mut self, name: &str, shape: &[usize], values: &[i64]) -> String {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.constant(name, DataType::Int64, shape, bytes)
    }

    /// Adds a list of integers.
    pub(crate) fn list(&mut self, name: &str, values: &[i64]) -> String {
        self.ints(name, &[values.len()], values)
    }

    fn constant(&mut self, name: &str, kind: DataType, shape: &[usize], raw_data: Vec<u8>) -> String {
        if self.values.insert(name.into()) {
            self.proto.initializer.push(TensorProto {
                name: Some(name.into()),
                data_type: Some(kind as i32),
                dims: shape.iter().map(|&size| size as i64).collect(),
                raw_data: Some(raw_data),
                ..Default::default()
            });
        }
        name.into()
    }

    /// Adds a node whose only output is called `name`, and returns that name.
    pub(crate) fn node(
        &mut self,
        operator: &str,
        name: &str,
        inputs: &[&str],
        attributes: &[(&str, Attribute<'_>)],
    ) -> String {
        let [name] = self.node_of_many(operator, [name.into()], inputs, attributes);
        name
    }

    /// Adds a node with several outputs.
    pub(crate) fn node_of_many<const N: usize>(
        &mut self,
        operator: &str,
        names: [String; N],
        inputs: &[&str],
        attributes: &[(&str, Attribute<'_>)],
    ) -> [String; N] {
        self.values.extend(names.iter().cloned());
        self.proto.node.push(NodeProto {
            op_type: Some(operator.into()),
            name: names.first().cloned(),
            input: inputs.iter().map(|&input| input.into()).collect(),
            output: names.to_vec(),
            attribute: attributes.iter().map(|(name, value)| attribute(name, value)).collect(),
            ..Default::default()
        });
        names
    }

    /// Adds a change of type.
    pub(crate) fn cast(&mut self, name: &str, value: &str, kind: DataType) -> String {
        self.node("Cast", name, &[value], &[("to", Attribute::Int(kind as i64))])
    }

    /// Declares a float input of the whole graph.
    pub(crate) fn input(&mut self, name: &str, shape: &[Dimension]) {
        self.proto.input.push(float_value(name, shape));
    }

    /// Declares what the graph can compute: the value that has the output's name.
    pub(crate) fn output(&mut self, output: Output, shape: &[Dimension]) {
        self.outputs.insert(output, float_value(output.name(), shape));
    }

    /// The graph with these outputs, and nothing that they do not need.
    pub(crate) fn finish(mut self, outputs: &[Output]) -> GraphProto {
        self.proto.output = outputs.iter().filter_map(|output| self.outputs.remove(output)).collect();
        let mut needed: BTreeSet<String> = outputs.iter().map(|output| output.name().into()).collect();
        let mut kept = Vec::with_capacity(self.proto.node.len());
        // Nodes stand behind those they depend on.
        for node in self.proto.node.into_iter().rev() {
            if node.output.iter().any(|name| needed.contains(name)) {
                needed.extend(node.input.iter().cloned());
                kept.push(node);
            }
        }
        kept.reverse();
        self.proto.node = kept;
        self.proto.initializer.retain(|constant| needed.contains(constant.name()));
        self.proto
    }
}

fn attribute(name: &str, value: &Attribute<'_>) -> AttributeProto {
    let mut proto = AttributeProto { name: Some(name.into()), ..Default::default() };
    let kind = match value {
        Attribute::Int(value) => {
            proto.i = Some(*value);
            AttributeType::Int
        }
        Attribute::Ints(values) => {
            proto.ints = values.to_vec();
            AttributeType::Ints
        }
        Attribute::Float(value) => {
            proto.f = Some(*value);
            AttributeType::Float
        }
    };
    proto.r#type = Some(kind as i32);
    proto
}

fn float_value(name: &str, shape: &[Dimension]) -> ValueInfoProto {
    use tensor_shape_proto::dimension::Value;
    let dim = shape
        .iter()
        .map(|dimension| tensor_shape_proto::Dimension {
            value: Some(match *dimension {
                Dimension::Named(name) => Value::DimParam(name.into()),
                Dimension::Fixed(size) => Value::DimValue(size as i64),
            }),
            ..Default::default()
        })
        .collect();
    let tensor =
        type_proto::Tensor { elem_type: Some(DataType::Float as i32), shape: Some(TensorShapeProto { dim }) };
    ValueInfoProto {
        name: Some(name.into()),
        r#type: Some(TypeProto { value: Some(type_proto::Value::TensorType(tensor)), ..Default::default() }),
        ..Default::default()
    }
}
