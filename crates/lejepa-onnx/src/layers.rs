//! The layers that more than one family has, as nodes of a graph.

use lejepa_model::layers::LayerNorm;

use crate::Result;
use crate::graph::{
    Attribute::{Float, Int, Ints},
    Graph,
};

/// `y = x W^T + b` over the last axis.
pub(crate) fn linear(graph: &mut Graph<'_>, name: &str, xs: &str) -> Result<String> {
    let transposed = graph.weight(&format!("{name}.weight"))?.flatten_from(1)?.t()?.contiguous()?;
    let weight = graph.floats(&format!("{name}.weight"), &transposed)?;
    let bias = graph.floats(&format!("{name}.bias"), graph.weight(&format!("{name}.bias"))?)?;
    let product = graph.node("MatMul", &format!("{name}/product"), &[xs, &weight], &[]);
    Ok(graph.node("Add", &format!("{name}/out"), &[&product, &bias], &[]))
}

/// Layer normalisation over the last axis; its value is called `output`.
pub(crate) fn layer_norm(graph: &mut Graph<'_>, name: &str, xs: &str, output: &str) -> Result<String> {
    let weight = graph.floats(&format!("{name}.weight"), graph.weight(&format!("{name}.weight"))?)?;
    let bias = graph.floats(&format!("{name}.bias"), graph.weight(&format!("{name}.bias"))?)?;
    let attributes = [("axis", Int(-1)), ("epsilon", Float(LayerNorm::EPSILON as f32))];
    Ok(graph.node("LayerNormalization", output, &[xs, &weight, &bias], &attributes))
}

/// Adds the constants of [`gelu`], once per graph.
pub(crate) fn declare_gelu(graph: &mut Graph<'_>) {
    graph.float("half", 0.5);
    graph.float("one", 1.);
    graph.float("sqrt_half", std::f32::consts::FRAC_1_SQRT_2);
}

/// `gelu(x) = 0.5 x (1 + erf(x / sqrt(2)))`, the form that runtimes fuse.
pub(crate) fn gelu(graph: &mut Graph<'_>, name: &str, xs: &str) -> String {
    let scaled = graph.node("Mul", &format!("{name}/scaled"), &[xs, "sqrt_half"], &[]);
    let erf = graph.node("Erf", &format!("{name}/erf"), &[&scaled], &[]);
    let gate = graph.node("Add", &format!("{name}/gate"), &[&erf, "one"], &[]);
    let gated = graph.node("Mul", &format!("{name}/gated"), &[xs, &gate], &[]);
    graph.node("Mul", &format!("{name}/gelu"), &[&gated, "half"], &[])
}

/// How the window of a convolution moves.
#[derive(Clone, Copy)]
pub(crate) struct Steps {
    pub(crate) stride: usize,
    pub(crate) padding: usize,
    pub(crate) groups: usize,
}

/// A convolution whose weight and bias are constants of the graph already, channels first.
pub(crate) fn convolution(graph: &mut Graph<'_>, name: &str, inputs: [&str; 3], steps: Steps) -> String {
    let strides = [steps.stride as i64; 2];
    let padding = [steps.padding as i64; 4];
    let attributes =
        [("strides", Ints(&strides)), ("pads", Ints(&padding)), ("group", Int(steps.groups as i64))];
    graph.node("Conv", &format!("{name}/conv"), &inputs, &attributes)
}

/// The mean over all places of maps `(batch, channels, height, width)`, called `output`: `(batch, channels)`.
pub(crate) fn global_pool(graph: &mut Graph<'_>, maps: &str, output: &str) -> String {
    let pooled = graph.node("GlobalAveragePool", "pool", &[maps], &[]);
    graph.node("Flatten", output, &[&pooled], &[("axis", Int(1))])
}
