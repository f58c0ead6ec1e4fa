//! The position embedding for every size of input that a file takes.
//!
//! Resampled embeddings stand one behind the other in a table; the pair of height and width chooses the
//! part to add:
//!
//! ```text
//! match[i] = (height, width) == sizes[i]
//! chosen   = n - sum_i match[i] (n - i)        n, which is out of range, where nothing matches
//! part     = table[starts[chosen] .. ends[chosen]]
//! ```
//!
//! Runtimes refuse an index that is out of range: other sizes fail instead of giving numbers, even where
//! they have as many patches as a listed one.

use candle_core::Tensor;
use lejepa_data::{InputSize, PIXELS_INPUT};
use lejepa_model::layers::resample_position_embedding;
use lejepa_model::{ImageSize, VitShape};

use super::grid;
use crate::Result;
use crate::graph::{
    Attribute::{Int, Ints},
    Graph,
};
use crate::proto::tensor_proto::DataType;

/// `(1, patches, dim)` for the size of the input.
pub(super) fn positions_of_patches(
    graph: &mut Graph<'_>,
    shape: &VitShape,
    sizes: &[InputSize],
) -> Result<String> {
    let mut tables = Vec::with_capacity(sizes.len());
    let (mut starts, mut ends) = (Vec::new(), Vec::new());
    let mut end = 0;
    for &size in sizes {
        let table = resampled(graph, shape, size)?;
        starts.push(end);
        end += table.dim(1)? as i64;
        ends.push(end);
        tables.push(table);
    }
    let table = graph.floats("pos_embed.patches", &Tensor::cat(&tables, 1)?)?;
    if sizes.len() == 1 {
        return Ok(table);
    }
    let chosen = choose(graph, sizes);
    let starts = graph.list("sizes/starts", &starts);
    let start = graph.node("Gather", "sizes/start", &[&starts, &chosen], &[("axis", Int(0))]);
    let ends = graph.list("sizes/ends", &ends);
    let end = graph.node("Gather", "sizes/end", &[&ends, &chosen], &[("axis", Int(0))]);
    let axis = graph.list("axis1", &[1]);
    Ok(graph.node("Slice", "pos_embed/part", &[&table, &start, &end, &axis], &[]))
}

/// The position embedding of the patches of one size: `(1, patches, dim)`.
fn resampled(graph: &Graph<'_>, shape: &VitShape, size: InputSize) -> Result<Tensor> {
    let [height, width] = grid(shape, size);
    let all = graph.weight("pos_embed")?;
    let all = resample_position_embedding(all, shape.grid(), ImageSize { height, width })?;
    let prefix = if shape.embed_prefix { shape.prefix() } else { 0 };
    Ok(all.narrow(1, prefix, height * width)?)
}

/// Which of the sizes the input has: `(1)`.
fn choose(graph: &mut Graph<'_>, sizes: &[InputSize]) -> String {
    let count = sizes.len() as i64;
    let pairs: Vec<i64> = sizes.iter().flat_map(|size| [size.height as i64, size.width as i64]).collect();
    let sides = [("start", Int(2)), ("end", Int(4))];
    let input = graph.node("Shape", "sizes/input", &[PIXELS_INPUT], &sides);
    let pairs = graph.ints("sizes/pairs", &[sizes.len(), 2], &pairs);
    let equal = graph.node("Equal", "sizes/equal", &[&input, &pairs], &[]);
    let equal = graph.cast("sizes/equal_int", &equal, DataType::Int64);
    let attributes = [("axes", Ints([1].as_slice())), ("keepdims", Int(0))];
    let matches = graph.node("ReduceMin", "sizes/matches", &[&equal], &attributes);
    let back = graph.list("sizes/back", &(0..count).map(|index| index - count).collect::<Vec<_>>());
    let back = graph.node("Mul", "sizes/steps", &[&matches, &back], &[]);
    let back = graph.node("ReduceSum", "sizes/step", &[&back], &[("keepdims", Int(1))]);
    let count = graph.list("sizes/count", &[count]);
    graph.node("Add", "sizes/chosen", &[&count, &back], &[])
}
