//! A residual network as an ONNX graph; batch normalisation is part of the convolution before it.

use lejepa_data::{InputSize, Output, PIXELS_INPUT};
use lejepa_model::{ResNetBlock, ResNetShape};

use super::Writer;
use crate::Result;
use crate::batch_norm::ScaleAndShift;
use crate::convolution::{Convolution, Steps};
use crate::graph::{Attribute::Ints, Graph};
use crate::layers::{channels_last, global_pool};

const POINTWISE: Steps = Steps { stride: 1, padding: 0, groups: 1 };

impl Writer for ResNetShape {
    /// Places of the last map: every halving keeps a half at the edge.
    fn grid(&self, size: InputSize) -> [usize; 2] {
        [size.height, size.width].map(|side| side.div_ceil(32))
    }

    /// From pixels `(batch, channels, height, width)` to the pooled feature `(batch, dim)`.
    fn write(&self, graph: &mut Graph<'_>, _sizes: &[InputSize]) -> Result<()> {
        let stem = Steps { stride: 2, padding: 3, groups: 1 };
        // The stem is small and everything depends on it.
        let maps = normed_convolution(graph, ["conv1", "bn1"], stem)?.write(graph, PIXELS_INPUT)?;
        let maps = graph.node("Relu", "stem/relu", &[&maps], &[]);
        let attributes = [
            ("kernel_shape", Ints([3, 3].as_slice())),
            ("strides", Ints([2, 2].as_slice())),
            ("pads", Ints([1, 1, 1, 1].as_slice())),
        ];
        let mut maps = graph.node("MaxPool", "stem/pool", &[&maps], &attributes);
        for (stage, &depth) in self.depths.iter().enumerate() {
            for index in 0..depth {
                let stride = if stage > 0 && index == 0 { 2 } else { 1 };
                maps = block(graph, self, &format!("layer{}.{index}", stage + 1), &maps, stride)?;
            }
        }
        global_pool(graph, &maps, Output::Embedding.name());
        channels_last(graph, Output::PatchTokens.name(), &maps);
        Ok(())
    }
}

fn block(
    graph: &mut Graph<'_>,
    shape: &ResNetShape,
    name: &str,
    maps: &str,
    stride: usize,
) -> Result<String> {
    let steps = match shape.block {
        ResNetBlock::Basic => {
            vec![Steps { stride, padding: 1, groups: 1 }, Steps { stride: 1, padding: 1, groups: 1 }]
        }
        ResNetBlock::Bottleneck => {
            vec![POINTWISE, Steps { stride, padding: 1, groups: shape.groups }, POINTWISE]
        }
    };
    let last = steps.len();
    let mut branch = maps.to_string();
    for (index, steps) in (1..).zip(steps) {
        let names = [&*format!("{name}.conv{index}"), &*format!("{name}.bn{index}")];
        branch = normed_convolution(graph, names, steps)?.write_compact(graph, &branch)?;
        if index < last {
            branch = graph.node("Relu", &format!("{name}/relu{index}"), &[&branch], &[]);
        }
    }
    let shortcut = [&*format!("{name}.downsample.0"), &*format!("{name}.downsample.1")];
    let shortcut = if graph.weight(&format!("{}.weight", shortcut[0])).is_ok() {
        normed_convolution(graph, shortcut, Steps { stride, ..POINTWISE })?.write_compact(graph, maps)?
    } else {
        maps.to_string()
    };
    let sum = graph.node("Add", &format!("{name}/sum"), &[&branch, &shortcut], &[]);
    Ok(graph.node("Relu", &format!("{name}/out"), &[&sum], &[]))
}

/// `norm(conv(x))` is a convolution too.
fn normed_convolution(graph: &Graph<'_>, [name, norm]: [&str; 2], steps: Steps) -> Result<Convolution> {
    let norm = ScaleAndShift::named(graph, norm)?;
    let weight = norm.scaled(graph.weight(&format!("{name}.weight"))?)?;
    Ok(Convolution { name: name.into(), weight, bias: norm.shift, steps })
}
