//! The vision transformer as an ONNX graph.
//!
//! The last block is written twice: for all tokens, which the patches and their mean need, and for the
//! class token alone, whose query, projection and perceptron are a small part of the block. Both share
//! keys and values, and a file holds the one that its outputs need.

mod block;
mod positions;
mod tokens;

use lejepa_data::{InputSize, Output};
use lejepa_model::{Pool, VitShape};

use self::block::Block;
use self::tokens::{Grid, embed};
use super::Writer;
use crate::Result;
use crate::graph::{
    Attribute::{Int, Ints},
    Dimension::{self, Fixed},
    Graph,
};
use crate::layers::layer_norm;

impl Writer for VitShape {
    fn further_outputs(&self, [rows, columns]: [Dimension; 2]) -> Vec<(Output, Vec<Dimension>)> {
        let mut outputs = Vec::new();
        if self.pool == Pool::Class && self.depth >= 2 {
            outputs.push((Output::ClsLast2, vec![Fixed(2 * self.dim)]));
        }
        if self.class_token {
            outputs.push((Output::ClsAttention, vec![Fixed(self.heads), rows, columns]));
        }
        outputs
    }

    fn grid(&self, size: InputSize) -> [usize; 2] {
        grid(self, size)
    }

    /// From pixels `(batch, channels, height, width)` to everything a vision transformer has.
    fn write(&self, graph: &mut Graph<'_>, sizes: &[InputSize]) -> Result<()> {
        let (mut tokens, grid) = embed(graph, self, sizes)?;
        let last = self.depth.saturating_sub(1);
        for index in 0..last {
            tokens = Block::new(self, index).write(graph, &tokens)?;
        }
        let block = Block::new(self, last);
        let keys = block.keys(graph, &tokens)?;
        if self.class_token {
            let (mixed, probabilities) = block.class_attention(graph, &keys)?;
            write_class_attention(graph, self, &grid, &probabilities);
            if self.pool == Pool::Class {
                let before = class_of(graph, &tokens, "class_before");
                let class = block.write_class(graph, &before, &mixed)?;
                let class = layer_norm(graph, "norm", &class, Output::Embedding.name())?;
                let before = layer_norm(graph, "norm", &before, "class_before/normed")?;
                let attributes = [("axis", Int(-1))];
                graph.node("Concat", Output::ClsLast2.name(), &[&before, &class], &attributes);
            }
        }
        let tokens = block.write_rest(graph, &tokens, &keys)?;
        let mut patches = without_prefix(graph, self, &tokens, 1);
        match self.pool {
            Pool::Class => patches = layer_norm(graph, "norm", &patches, "patches/normed")?,
            Pool::Average => {
                let attributes = [("axes", Ints(&[1])), ("keepdims", Int(0))];
                let mean = graph.node("ReduceMean", "pooled", &[&patches], &attributes);
                layer_norm(graph, "fc_norm", &mean, Output::Embedding.name())?;
            }
        }
        let target = grid.between(graph, "patch_tokens/shape", &[0], &[self.dim as i64]);
        graph.node("Reshape", Output::PatchTokens.name(), &[&patches, &target], &[]);
        Ok(())
    }
}

/// Places of an image of this size.
fn grid(shape: &VitShape, size: InputSize) -> [usize; 2] {
    [size.height / shape.patch_size, size.width / shape.patch_size]
}

/// The class token of `(batch, tokens, dim)`, called `name`: `(batch, dim)`.
fn class_of(graph: &mut Graph<'_>, tokens: &str, name: &str) -> String {
    let first = graph.ints("first", &[], &[0]);
    graph.node("Gather", name, &[tokens, &first], &[("axis", Int(1))])
}

/// What the class token sees of every patch: `(batch, heads, 1, tokens)` to `(batch, heads, rows, columns)`.
fn write_class_attention(graph: &mut Graph<'_>, shape: &VitShape, grid: &Grid, probabilities: &str) {
    let patches = without_prefix(graph, shape, probabilities, 3);
    let target = grid.between(graph, "attention/shape", &[0, 0], &[]);
    graph.node("Reshape", Output::ClsAttention.name(), &[&patches, &target], &[]);
}

/// The patches alone, from values with all tokens along an axis.
fn without_prefix(graph: &mut Graph<'_>, shape: &VitShape, tokens: &str, axis: usize) -> String {
    if shape.prefix() == 0 {
        return tokens.into();
    }
    let start = graph.list("prefix", &[shape.prefix() as i64]);
    let end = graph.list("end", &[i64::MAX]);
    let axis = graph.list(&format!("axis{axis}"), &[axis as i64]);
    graph.node("Slice", &format!("{tokens}/patches"), &[tokens, &start, &end, &axis], &[])
}
