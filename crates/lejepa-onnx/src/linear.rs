//! Linear layers in every precision.
//!
//! ```text
//! f32, f16   y = x W^T + b
//! int8       x_q, x_scale, x_zero = quantised x        one scale for the whole tensor
//!            y = (x_scale w_scale) ((x_q - x_zero) W_q^T) + b
//! ```
//!
//! This chain of standard operators is what ONNX Runtime makes one kernel of.

use candle_core::Tensor;

use crate::Result;
use crate::graph::Graph;
use crate::proto::tensor_proto::DataType;
use crate::quantised::{QuantisedWeight, quantise};
use lejepa_data::Precision;

/// A linear layer before it is written.
pub(crate) struct Linear {
    name: String,
    /// `(outputs, inputs)`.
    weight: Tensor,
    /// `(outputs)`.
    bias: Tensor,
}

impl Linear {
    /// With this weight `(outputs, inputs)` and bias; constants are called after `name`.
    pub(crate) fn new(name: &str, weight: Tensor, bias: Tensor) -> Self {
        Self { name: name.into(), weight, bias }
    }

    /// The encoder's layer of this name; its weight may be that of a 1x1 convolution.
    pub(crate) fn named(graph: &Graph<'_>, name: &str) -> Result<Self> {
        let weight = graph.weight(&format!("{name}.weight"))?.flatten_from(1)?;
        Ok(Self::new(name, weight, graph.weight(&format!("{name}.bias"))?.clone()))
    }

    /// Rows `first..first + count` of the layer times `factor`, as a layer called `name`.
    pub(crate) fn part(&self, name: &str, [first, count]: [usize; 2], factor: f64) -> Result<Self> {
        let weight = (self.weight.narrow(0, first, count)? * factor)?;
        let bias = (self.bias.narrow(0, first, count)? * factor)?;
        Ok(Self::new(name, weight, bias))
    }

    /// How many values it makes.
    pub(crate) fn outputs(&self) -> usize {
        self.bias.elem_count()
    }

    /// Over the last axis of `xs`; values are called after `place`.
    pub(crate) fn write(&self, graph: &mut Graph<'_>, xs: &str, place: &str) -> Result<String> {
        self.write_as(graph, xs, place, &format!("{place}/out"))
    }

    /// The same with a name for the result.
    pub(crate) fn write_as(
        &self,
        graph: &mut Graph<'_>,
        xs: &str,
        place: &str,
        output: &str,
    ) -> Result<String> {
        let name = &self.name;
        let product = match graph.precision() {
            Precision::F32 | Precision::F16 => {
                let weight = graph.floats(&format!("{name}.weight"), &self.weight.t()?.contiguous()?)?;
                graph.node("MatMul", &format!("{place}/product"), &[xs, &weight], &[])
            }
            Precision::Int8 => self.write_integer_product(graph, xs, place)?,
        };
        let bias = graph.floats(&format!("{name}.bias"), &self.bias)?;
        Ok(graph.node("Add", output, &[&product, &bias], &[]))
    }

    fn write_integer_product(&self, graph: &mut Graph<'_>, xs: &str, place: &str) -> Result<String> {
        let [quantised, scale, zero] = quantise(graph, xs);
        let weight = QuantisedWeight::new(&self.weight)?.transposed();
        let of_weight = graph.floats(&format!("{}.scale", self.name), &weight.scales)?;
        let weight = graph.bytes(&format!("{}.weight", self.name), &weight.shape, &weight.values);
        let sums = graph.node("MatMulInteger", &format!("{place}/sums"), &[&quantised, &weight, &zero], &[]);
        let sums = graph.cast(&format!("{place}/float_sums"), &sums, DataType::Float);
        let scale = graph.node("Mul", &format!("{place}/scale"), &[&scale, &of_weight], &[]);
        Ok(graph.node("Mul", &format!("{place}/product"), &[&sums, &scale], &[]))
    }
}
