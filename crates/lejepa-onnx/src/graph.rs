//! Builds an ONNX graph node by node; values are named after the place that makes them.

use std::collections::BTreeMap;

use candle_core::Tensor;

use crate::proto::{
    AttributeProto, GraphProto, NodeProto, TensorProto, TensorShapeProto, TypeProto, ValueInfoProto,
    attribute_proto::AttributeType, tensor_proto::DataType, tensor_shape_proto, type_proto,
};
use crate::{Error, Result};

/// A graph under construction.
pub(crate) struct Graph<'a> {
    weights: BTreeMap<&'a str, &'a Tensor>,
    proto: GraphProto,
}

/// An attribute of a node.
pub(crate) enum Attribute<'a> {
    Int(i64),
    Ints(&'a [i64]),
    Float(f32),
}

/// A dimension of an input or output.
pub(crate) enum Dimension {
    Batch,
    Fixed(usize),
}

impl<'a> Graph<'a> {
    pub(crate) fn new(name: &str, weights: impl Iterator<Item = (&'a str, &'a Tensor)>) -> Self {
        let proto = GraphProto { name: Some(name.into()), ..Default::default() };
        Self { weights: weights.collect(), proto }
    }

    /// The encoder's tensor of this name.
    pub(crate) fn weight(&self, name: &str) -> Result<&'a Tensor> {
        self.weights.get(name).copied().ok_or_else(|| Error::MissingParameter { name: name.into() })
    }

    /// Adds a constant of floats and returns its name.
    pub(crate) fn floats(&mut self, name: &str, tensor: &Tensor) -> Result<String> {
        let values: Vec<f32> = tensor.flatten_all()?.to_vec1()?;
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        let shape = tensor.dims().iter().map(|&size| size as i64).collect();
        Ok(self.constant(name, DataType::Float, shape, bytes))
    }

    /// Adds a single float.
    pub(crate) fn float(&mut self, name: &str, value: f32) -> String {
        self.constant(name, DataType::Float, Vec::new(), value.to_le_bytes().to_vec())
    }

    /// Adds a list of integers.
    pub(crate) fn ints(&mut self, name: &str, values: &[i64]) -> String {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.constant(name, DataType::Int64, vec![values.len() as i64], bytes)
    }

    /// Adds a single integer.
    pub(crate) fn int(&mut self, name: &str, value: i64) -> String {
        self.constant(name, DataType::Int64, Vec::new(), value.to_le_bytes().to_vec())
    }

    fn constant(&mut self, name: &str, kind: DataType, dims: Vec<i64>, raw_data: Vec<u8>) -> String {
        self.proto.initializer.push(TensorProto {
            name: Some(name.into()),
            data_type: Some(kind as i32),
            dims,
            raw_data: Some(raw_data),
            ..Default::default()
        });
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
        self.proto.node.push(NodeProto {
            op_type: Some(operator.into()),
            name: Some(name.into()),
            input: inputs.iter().map(|&input| input.into()).collect(),
            output: vec![name.into()],
            attribute: attributes.iter().map(|(name, value)| attribute(name, value)).collect(),
            ..Default::default()
        });
        name.into()
    }

    /// Declares a float input of the whole graph.
    pub(crate) fn input(&mut self, name: &str, shape: &[Dimension]) {
        self.proto.input.push(float_value(name, shape));
    }

    /// Declares a float output of the whole graph.
    pub(crate) fn output(&mut self, name: &str, shape: &[Dimension]) {
        self.proto.output.push(float_value(name, shape));
    }

    pub(crate) fn finish(self) -> GraphProto {
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
            value: Some(match dimension {
                Dimension::Batch => Value::DimParam("batch".into()),
                Dimension::Fixed(size) => Value::DimValue(*size as i64),
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
