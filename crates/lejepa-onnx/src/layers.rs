//! The layers that more than one family has, as nodes of a graph.

use lejepa_model::layers::LayerNorm;

use crate::Result;
use crate::graph::{
    Attribute::{Float, Int, Ints},
    Graph,
};

/// Layer normalisation over the last axis; its value is called `output`.
pub(crate) fn layer_norm(graph: &mut Graph<'_>, name: &str, xs: &str, output: &str) -> Result<String> {
    let weight = graph.parameter(&format!("{name}.weight"))?;
    let bias = graph.parameter(&format!("{name}.bias"))?;
    let attributes = [("axis", Int(-1)), ("epsilon", Float(LayerNorm::EPSILON as f32))];
    Ok(graph.node("LayerNormalization", output, &[xs, &weight, &bias], &attributes))
}

/// `gelu(x) = x (1 + erf(x / sqrt(2))) / 2`, in the form that ONNX Runtime makes one kernel of.
pub(crate) fn gelu(graph: &mut Graph<'_>, place: &str, xs: &str) -> String {
    let (half, one) = (graph.float("half", 0.5), graph.float("one", 1.));
    let root = graph.float("sqrt_two", std::f32::consts::SQRT_2);
    let scaled = graph.node("Div", &format!("{place}/scaled"), &[xs, &root], &[]);
    let erf = graph.node("Erf", &format!("{place}/erf"), &[&scaled], &[]);
    let gate = graph.node("Add", &format!("{place}/gate"), &[&erf, &one], &[]);
    let gated = graph.node("Mul", &format!("{place}/gated"), &[xs, &gate], &[]);
    graph.node("Mul", &format!("{place}/gelu"), &[&gated, &half], &[])
}

/// Maps `(batch, channels, rows, columns)` with the channels last.
pub(crate) fn channels_last(graph: &mut Graph<'_>, name: &str, maps: &str) -> String {
    graph.node("Transpose", name, &[maps], &[("perm", Ints(&[0, 2, 3, 1]))])
}

/// The mean over all places of maps `(batch, channels, height, width)`, called `output`: `(batch, channels)`.
pub(crate) fn global_pool(graph: &mut Graph<'_>, maps: &str, output: &str) -> String {
    let pooled = graph.node("GlobalAveragePool", "pool", &[maps], &[]);
    graph.node("Flatten", output, &[&pooled], &[("axis", Int(1))])
}
