//! Convolutions, channels first, in floats whatever the precision.
//!
//! With int8 the large ones keep their weight in 8 bits, which a runtime makes floats of when it opens the
//! file. ONNX Runtime has a convolution of integers too (`ConvInteger`), but it is three to four times as
//! slow as that of floats.

use candle_core::Tensor;
use lejepa_data::Precision;

use crate::Result;
use crate::graph::{
    Attribute::{Int, Ints},
    Graph,
};
use crate::proto::tensor_proto::DataType;
use crate::quantised::{QuantisedWeight, STORED};

/// How the window of a convolution moves.
#[derive(Clone, Copy)]
pub(crate) struct Steps {
    pub(crate) stride: usize,
    pub(crate) padding: usize,
    pub(crate) groups: usize,
}

/// A convolution before it is written.
pub(crate) struct Convolution {
    pub(crate) name: String,
    /// `(outputs, inputs / groups, kernel, kernel)`.
    pub(crate) weight: Tensor,
    /// `(outputs)`.
    pub(crate) bias: Tensor,
    pub(crate) steps: Steps,
}

impl Convolution {
    /// The encoder's convolution of this name.
    pub(crate) fn named(graph: &Graph<'_>, name: &str, steps: Steps) -> Result<Self> {
        let weight = graph.weight(&format!("{name}.weight"))?.clone();
        let bias = graph.weight(&format!("{name}.bias"))?.clone();
        Ok(Self { name: name.into(), weight, bias, steps })
    }

    /// With the weight as the graph keeps floats.
    pub(crate) fn write(&self, graph: &mut Graph<'_>, maps: &str) -> Result<String> {
        let weight = graph.floats(&format!("{}.weight", self.name), &self.weight)?;
        self.write_with(graph, maps, &weight)
    }

    /// With the weight in 8 bits, if that is the graph's precision.
    pub(crate) fn write_compact(&self, graph: &mut Graph<'_>, maps: &str) -> Result<String> {
        if graph.precision() != Precision::Int8 {
            return self.write(graph, maps);
        }
        let name = &self.name;
        let weight = QuantisedWeight::new(&self.weight, STORED)?;
        let scale = weight.scales.reshape((weight.scales.elem_count(), 1, 1, 1))?;
        let scale = graph.floats(&format!("{name}.scale"), &scale)?;
        let weight = graph.bytes(&format!("{name}.weight"), &weight.shape, &weight.values);
        let weight = graph.cast(&format!("{name}/float_weight"), &weight, DataType::Float);
        let weight = graph.node("Mul", &format!("{name}/scaled_weight"), &[&weight, &scale], &[]);
        self.write_with(graph, maps, &weight)
    }

    fn write_with(&self, graph: &mut Graph<'_>, maps: &str, weight: &str) -> Result<String> {
        let bias = graph.floats(&format!("{}.bias", self.name), &self.bias)?;
        let strides = [self.steps.stride as i64; 2];
        let padding = [self.steps.padding as i64; 4];
        let groups = self.steps.groups as i64;
        let attributes = [("strides", Ints(&strides)), ("pads", Ints(&padding)), ("group", Int(groups))];
        Ok(graph.node("Conv", &format!("{}/conv", self.name), &[maps, weight, &bias], &attributes))
    }
}
