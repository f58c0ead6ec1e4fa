//! ConvNeXt V2 as an ONNX graph; norms and perceptrons work on maps with the channels last.

use lejepa_data::{InputSize, Output, PIXELS_INPUT};
use lejepa_model::ConvNextShape;

use super::Writer;
use crate::Result;
use crate::convolution::{Convolution, Steps};
use crate::graph::{Attribute::Ints, Graph};
use crate::layers::{channels_last, gelu, global_pool, layer_norm};
use crate::linear::Linear;

impl Writer for ConvNextShape {
    /// Places of the last map: what is left at the edges is dropped.
    fn grid(&self, size: InputSize) -> [usize; 2] {
        [size.height, size.width].map(|side| side / 32)
    }

    /// From pixels `(batch, channels, height, width)` to the normalised feature `(batch, dim)`.
    fn write(&self, graph: &mut Graph<'_>, _sizes: &[InputSize]) -> Result<()> {
        let stem = Steps { stride: 4, padding: 0, groups: 1 };
        let maps = Convolution::named(graph, "stem.0", stem)?.write(graph, PIXELS_INPUT)?;
        let mut maps = norm_of_channels(graph, "stem.1", &maps)?;
        for (stage, (&depth, &width)) in self.depths.iter().zip(&self.widths).enumerate() {
            let name = format!("stages.{stage}");
            if stage > 0 {
                maps = norm_of_channels(graph, &format!("{name}.downsample.0"), &maps)?;
                let halves = Steps { stride: 2, padding: 0, groups: 1 };
                let halving = Convolution::named(graph, &format!("{name}.downsample.1"), halves)?;
                maps = halving.write_compact(graph, &maps)?;
            }
            for index in 0..depth {
                maps = block(graph, &format!("{name}.blocks.{index}"), &maps, width)?;
            }
        }
        let pooled = global_pool(graph, &maps, "pooled");
        layer_norm(graph, "head.norm", &pooled, Output::Embedding.name())?;
        channels_last(graph, Output::PatchTokens.name(), &maps);
        Ok(())
    }
}

fn block(graph: &mut Graph<'_>, name: &str, maps: &str, width: usize) -> Result<String> {
    let depthwise = Steps { stride: 1, padding: 3, groups: width };
    let branch = Convolution::named(graph, &format!("{name}.conv_dw"), depthwise)?.write(graph, maps)?;
    let branch = channels_last(graph, &format!("{name}/last"), &branch);
    let branch = layer_norm(graph, &format!("{name}.norm"), &branch, &format!("{name}.norm/out"))?;
    let hidden = linear(graph, &format!("{name}.mlp.fc1"), &branch)?;
    let hidden = gelu(graph, &format!("{name}.mlp"), &hidden);
    let hidden = response_norm(graph, &format!("{name}.mlp.grn"), &hidden)?;
    let branch = linear(graph, &format!("{name}.mlp.fc2"), &hidden)?;
    let branch = channels_first(graph, &format!("{name}/first"), &branch);
    Ok(graph.node("Add", &format!("{name}/out"), &[maps, &branch], &[]))
}

/// `y = x (1 + weight n) + bias`, `n` the norm over places by its mean over channels, channels last.
fn response_norm(graph: &mut Graph<'_>, name: &str, maps: &str) -> Result<String> {
    let weight = graph.parameter(&format!("{name}.weight"))?;
    let bias = graph.parameter(&format!("{name}.bias"))?;
    let epsilon = graph.float("response_epsilon", 1e-6);
    let (places, channels) = ([1, 2], [-1]);
    let response = graph.node("ReduceL2", &format!("{name}/response"), &[maps], &[("axes", Ints(&places))]);
    let mean = graph.node("ReduceMean", &format!("{name}/mean"), &[&response], &[("axes", Ints(&channels))]);
    let mean = graph.node("Add", &format!("{name}/denominator"), &[&mean, &epsilon], &[]);
    let relative = graph.node("Div", &format!("{name}/relative"), &[&response, &mean], &[]);
    let weighted = graph.node("Mul", &format!("{name}/weighted"), &[&relative, &weight], &[]);
    let one = graph.float("one", 1.);
    let gate = graph.node("Add", &format!("{name}/gate"), &[&weighted, &one], &[]);
    let scaled = graph.node("Mul", &format!("{name}/scaled"), &[maps, &gate], &[]);
    Ok(graph.node("Add", &format!("{name}/out"), &[&scaled, &bias], &[]))
}

fn linear(graph: &mut Graph<'_>, name: &str, maps: &str) -> Result<String> {
    Linear::named(graph, name)?.write(graph, maps, name)
}

/// Layer normalisation of maps with the channels first.
fn norm_of_channels(graph: &mut Graph<'_>, name: &str, maps: &str) -> Result<String> {
    let last = channels_last(graph, &format!("{name}/last"), maps);
    let normed = layer_norm(graph, name, &last, &format!("{name}/normed"))?;
    Ok(channels_first(graph, &format!("{name}/first"), &normed))
}

fn channels_first(graph: &mut Graph<'_>, name: &str, maps: &str) -> String {
    graph.node("Transpose", name, &[maps], &[("perm", Ints(&[0, 3, 1, 2]))])
}
