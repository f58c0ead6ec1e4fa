//! Convolutions in every precision, channels first; the int8 form is that of a
//! [`Linear`](crate::linear::Linear) layer.

use candle_core::Tensor;

use crate::Result;
use crate::graph::{
    Attribute::{Int, Ints},
    Graph,
};
use crate::proto::tensor_proto::DataType;
use crate::quantised::{QuantisedWeight, quantise};

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

    /// In floats, whatever the precision of the graph.
    pub(crate) fn write(&self, graph: &mut Graph<'_>, maps: &str) -> Result<String> {
        let name = &self.name;
        let weight = graph.floats(&format!("{name}.weight"), &self.weight)?;
        let bias = graph.floats(&format!("{name}.bias"), &self.bias)?;
        Ok(self.node(graph, "Conv", &format!("{name}/conv"), &[maps, &weight, &bias]))
    }

    /// In integers.
    pub(crate) fn write_quantised(&self, graph: &mut Graph<'_>, maps: &str) -> Result<String> {
        let name = &self.name;
        let per_channel = (self.bias.elem_count(), 1, 1);
        let [quantised, scale, zero] = quantise(graph, maps);
        let weight = QuantisedWeight::new(&self.weight)?;
        let of_weight = graph.floats(&format!("{name}.scale"), &weight.scales.reshape(per_channel)?)?;
        let weight = graph.bytes(&format!("{name}.weight"), &weight.shape, &weight.values);
        let inputs = [&*quantised, &*weight, &*zero];
        let sums = self.node(graph, "ConvInteger", &format!("{name}/sums"), &inputs);
        let sums = graph.cast(&format!("{name}/float_sums"), &sums, DataType::Float);
        let scale = graph.node("Mul", &format!("{name}/scale"), &[&scale, &of_weight], &[]);
        let product = graph.node("Mul", &format!("{name}/product"), &[&sums, &scale], &[]);
        let bias = graph.floats(&format!("{name}.bias"), &self.bias.reshape(per_channel)?)?;
        Ok(graph.node("Add", &format!("{name}/conv"), &[&product, &bias], &[]))
    }

    fn node(&self, graph: &mut Graph<'_>, operator: &str, name: &str, inputs: &[&str]) -> String {
        let strides = [self.steps.stride as i64; 2];
        let padding = [self.steps.padding as i64; 4];
        let groups = self.steps.groups as i64;
        let attributes = [("strides", Ints(&strides)), ("pads", Ints(&padding)), ("group", Int(groups))];
        graph.node(operator, name, inputs, &attributes)
    }
}
