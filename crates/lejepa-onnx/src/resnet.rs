//! A residual network as an ONNX graph; batch normalisation is part of the convolution before it.

use candle_core::Tensor;
use lejepa_data::{Output, PIXELS_INPUT};
use lejepa_model::layers::BatchNorm;
use lejepa_model::{Parameters, ResNetBlock, ResNetShape};

use crate::Result;
use crate::graph::{
    Attribute::Ints,
    Dimension::{Batch, Fixed},
    Graph,
};
use crate::layers::{Steps, convolution, global_pool};
use crate::proto::GraphProto;

/// The graph from pixels `(batch, channels, height, width)` to the pooled feature `(batch, dim)`.
pub(crate) fn graph(shape: &ResNetShape, parameters: &Parameters) -> Result<GraphProto> {
    let mut graph = Graph::new("resnet", parameters.tensors());
    let size = shape.image_size;
    graph.input(PIXELS_INPUT, &[Batch, Fixed(shape.channels), Fixed(size.height), Fixed(size.width)]);
    graph.output(Output::Embedding.name(), &[Batch, Fixed(shape.dim())]);

    let stem = Steps { stride: 2, padding: 3, groups: 1 };
    let maps = normed_convolution(&mut graph, ["conv1", "bn1"], PIXELS_INPUT, stem)?;
    let maps = graph.node("Relu", "stem/relu", &[&maps], &[]);
    let attributes = [
        ("kernel_shape", Ints([3, 3].as_slice())),
        ("strides", Ints([2, 2].as_slice())),
        ("pads", Ints([1, 1, 1, 1].as_slice())),
    ];
    let mut maps = graph.node("MaxPool", "stem/pool", &[&maps], &attributes);
    for (stage, &depth) in shape.depths.iter().enumerate() {
        for index in 0..depth {
            let stride = if stage > 0 && index == 0 { 2 } else { 1 };
            maps = block(&mut graph, shape, &format!("layer{}.{index}", stage + 1), &maps, stride)?;
        }
    }
    global_pool(&mut graph, &maps, Output::Embedding.name());
    Ok(graph.finish())
}

fn block(
    graph: &mut Graph<'_>,
    shape: &ResNetShape,
    name: &str,
    maps: &str,
    stride: usize,
) -> Result<String> {
    let pointwise = Steps { stride: 1, padding: 0, groups: 1 };
    let steps = match shape.block {
        ResNetBlock::Basic => {
            vec![Steps { stride, padding: 1, groups: 1 }, Steps { stride: 1, padding: 1, groups: 1 }]
        }
        ResNetBlock::Bottleneck => {
            vec![pointwise, Steps { stride, padding: 1, groups: shape.groups }, pointwise]
        }
    };
    let last = steps.len();
    let mut branch = maps.to_string();
    for (index, steps) in (1..).zip(steps) {
        let names = [&*format!("{name}.conv{index}"), &*format!("{name}.bn{index}")];
        branch = normed_convolution(graph, names, &branch, steps)?;
        if index < last {
            branch = graph.node("Relu", &format!("{name}/relu{index}"), &[&branch], &[]);
        }
    }
    let shortcut = [&*format!("{name}.downsample.0"), &*format!("{name}.downsample.1")];
    let shortcut = if graph.weight(&format!("{}.weight", shortcut[0])).is_ok() {
        normed_convolution(graph, shortcut, maps, Steps { stride, ..pointwise })?
    } else {
        maps.to_string()
    };
    let sum = graph.node("Add", &format!("{name}/sum"), &[&branch, &shortcut], &[]);
    Ok(graph.node("Relu", &format!("{name}/out"), &[&sum], &[]))
}

/// `norm(conv(x))` is a convolution too: with `s = weight / sqrt(variance + epsilon)` its kernel is `s W`
/// and its bias `bias - s mean`.
fn normed_convolution(
    graph: &mut Graph<'_>,
    [name, norm]: [&str; 2],
    maps: &str,
    steps: Steps,
) -> Result<String> {
    let of_norm = |part: &str| graph.weight(&format!("{norm}.{part}"));
    let (mean, variance) = (of_norm("running_mean")?, of_norm("running_var")?);
    let scale = (of_norm("weight")? / (variance + BatchNorm::EPSILON)?.sqrt()?)?;
    let shift: Tensor = (of_norm("bias")? - (mean * &scale)?)?;
    let kernel = graph.weight(&format!("{name}.weight"))?;
    let kernel = kernel.broadcast_mul(&scale.reshape((scale.elem_count(), 1, 1, 1))?)?;
    let kernel = graph.floats(&format!("{name}.weight"), &kernel)?;
    let shift = graph.floats(&format!("{name}.bias"), &shift)?;
    Ok(convolution(graph, name, [maps, &kernel, &shift], steps))
}
