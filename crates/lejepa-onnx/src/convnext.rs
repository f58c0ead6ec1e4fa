//! ConvNeXt V2 as an ONNX graph; norms and perceptrons work on maps with the channels last.

use lejepa_data::{Output, PIXELS_INPUT};
use lejepa_model::{ConvNextShape, Parameters};

use crate::Result;
use crate::graph::{
    Attribute::Ints,
    Dimension::{Batch, Fixed},
    Graph,
};
use crate::layers::{Steps, convolution, declare_gelu, gelu, global_pool, layer_norm, linear};
use crate::proto::GraphProto;

/// The graph from pixels `(batch, channels, height, width)` to the normalised feature `(batch, dim)`.
pub(crate) fn graph(shape: &ConvNextShape, parameters: &Parameters) -> Result<GraphProto> {
    let mut graph = Graph::new("convnext", parameters.tensors());
    let size = shape.image_size;
    graph.input(PIXELS_INPUT, &[Batch, Fixed(shape.channels), Fixed(size.height), Fixed(size.width)]);
    graph.output(Output::Embedding.name(), &[Batch, Fixed(shape.dim())]);
    declare_gelu(&mut graph);
    graph.float("response_epsilon", 1e-6);

    let stem = Steps { stride: 4, padding: 0, groups: 1 };
    let maps = biased_convolution(&mut graph, "stem.0", PIXELS_INPUT, stem)?;
    let mut maps = norm_of_channels(&mut graph, "stem.1", &maps)?;
    for (stage, (&depth, &width)) in shape.depths.iter().zip(&shape.widths).enumerate() {
        let name = format!("stages.{stage}");
        if stage > 0 {
            maps = norm_of_channels(&mut graph, &format!("{name}.downsample.0"), &maps)?;
            let halves = Steps { stride: 2, padding: 0, groups: 1 };
            maps = biased_convolution(&mut graph, &format!("{name}.downsample.1"), &maps, halves)?;
        }
        for index in 0..depth {
            maps = block(&mut graph, &format!("{name}.blocks.{index}"), &maps, width)?;
        }
    }
    let pooled = global_pool(&mut graph, &maps, "pooled");
    layer_norm(&mut graph, "head.norm", &pooled, Output::Embedding.name())?;
    Ok(graph.finish())
}

fn block(graph: &mut Graph<'_>, name: &str, maps: &str, width: usize) -> Result<String> {
    let depthwise = Steps { stride: 1, padding: 3, groups: width };
    let branch = biased_convolution(graph, &format!("{name}.conv_dw"), maps, depthwise)?;
    let branch = channels_last(graph, &format!("{name}/last"), &branch);
    let branch = layer_norm(graph, &format!("{name}.norm"), &branch, &format!("{name}.norm/out"))?;
    let hidden = linear(graph, &format!("{name}.mlp.fc1"), &branch)?;
    let hidden = gelu(graph, &format!("{name}.mlp"), &hidden);
    let hidden = response_norm(graph, &format!("{name}.mlp.grn"), &hidden)?;
    let branch = linear(graph, &format!("{name}.mlp.fc2"), &hidden)?;
    let branch = channels_first(graph, &format!("{name}/first"), &branch);
    Ok(graph.node("Add", &format!("{name}/out"), &[maps, &branch], &[]))
}

/// `y = x + weight (x n) + bias`, `n` the norm over places by its mean over channels, channels last.
fn response_norm(graph: &mut Graph<'_>, name: &str, maps: &str) -> Result<String> {
    let weight = graph.floats(&format!("{name}.weight"), graph.weight(&format!("{name}.weight"))?)?;
    let bias = graph.floats(&format!("{name}.bias"), graph.weight(&format!("{name}.bias"))?)?;
    let (places, channels) = ([1, 2], [-1]);
    let response = graph.node("ReduceL2", &format!("{name}/response"), &[maps], &[("axes", Ints(&places))]);
    let mean = graph.node("ReduceMean", &format!("{name}/mean"), &[&response], &[("axes", Ints(&channels))]);
    let mean = graph.node("Add", &format!("{name}/denominator"), &[&mean, "response_epsilon"], &[]);
    let relative = graph.node("Div", &format!("{name}/relative"), &[&response, &mean], &[]);
    let scaled = graph.node("Mul", &format!("{name}/scaled"), &[maps, &relative], &[]);
    let weighted = graph.node("Mul", &format!("{name}/weighted"), &[&scaled, &weight], &[]);
    let shifted = graph.node("Add", &format!("{name}/shifted"), &[&weighted, &bias], &[]);
    Ok(graph.node("Add", &format!("{name}/out"), &[maps, &shifted], &[]))
}

fn biased_convolution(graph: &mut Graph<'_>, name: &str, maps: &str, steps: Steps) -> Result<String> {
    let weight = graph.floats(&format!("{name}.weight"), graph.weight(&format!("{name}.weight"))?)?;
    let bias = graph.floats(&format!("{name}.bias"), graph.weight(&format!("{name}.bias"))?)?;
    Ok(convolution(graph, name, [maps, &weight, &bias], steps))
}

/// Layer normalisation of maps with the channels first.
fn norm_of_channels(graph: &mut Graph<'_>, name: &str, maps: &str) -> Result<String> {
    let last = channels_last(graph, &format!("{name}/last"), maps);
    let normed = layer_norm(graph, name, &last, &format!("{name}/normed"))?;
    Ok(channels_first(graph, &format!("{name}/first"), &normed))
}

fn channels_last(graph: &mut Graph<'_>, name: &str, maps: &str) -> String {
    graph.node("Transpose", name, &[maps], &[("perm", Ints(&[0, 2, 3, 1]))])
}

fn channels_first(graph: &mut Graph<'_>, name: &str, maps: &str) -> String {
    graph.node("Transpose", name, &[maps], &[("perm", Ints(&[0, 3, 1, 2]))])
}
