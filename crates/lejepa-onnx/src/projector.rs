//! The projector behind an encoder: `(linear, batch norm, relu)` for every hidden layer, then linear.

use lejepa_data::Output;

use crate::Result;
use crate::batch_norm::ScaleAndShift;
use crate::graph::{BATCH, Dimension::Fixed, Graph};
use crate::linear::Linear;

/// What stands before the names of its parameters.
pub(crate) const PREFIX: &str = "projector";

/// Writes [`Output::Projection`] behind [`Output::Embedding`].
pub(crate) fn write(graph: &mut Graph<'_>) -> Result<()> {
    let mut features = Output::Embedding.name().to_string();
    for index in 0.. {
        let name = format!("{PREFIX}.layers.{index}.linear");
        let Ok(weight) = graph.weight(&format!("{name}.weight")) else { break };
        let norm = ScaleAndShift::named(graph, &format!("{PREFIX}.layers.{index}.norm"))?;
        let linear = Linear::new(&name, norm.scaled(weight)?, norm.shift);
        let hidden = linear.write(graph, &features, &name)?;
        features = graph.node("Relu", &format!("{PREFIX}.layers.{index}/relu"), &[&hidden], &[]);
    }
    let name = format!("{PREFIX}.output");
    let output = Linear::named(graph, &name)?;
    graph.output(Output::Projection, &[BATCH, Fixed(output.outputs())]);
    output.write_as(graph, &features, &name, Output::Projection.name())?;
    Ok(())
}
