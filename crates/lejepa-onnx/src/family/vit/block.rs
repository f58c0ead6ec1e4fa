//! One block of a vision transformer.
//!
//! ```text
//! tokens = tokens + ls1(proj(softmax(q k^T / sqrt(head_dim)) v))     q, k, v of norm1(tokens)
//! tokens = tokens + ls2(fc2(gelu(fc1(norm2(tokens)))))
//! ```
//!
//! Queries, keys and values are three products, so that heads are split off by a plain transpose; the
//! factor of the logits is part of the query's weight.

use lejepa_model::VitShape;

use super::class_of;
use crate::Result;
use crate::graph::{
    Attribute::{Int, Ints},
    Graph,
};
use crate::layers::{gelu, layer_norm};
use crate::linear::Linear;

/// A block before it is written.
pub(super) struct Block<'a> {
    shape: &'a VitShape,
    name: String,
}

/// What queries of a block meet.
pub(super) struct Keys {
    /// The block's input after its first norm: `(batch, tokens, dim)`.
    normed: String,
    /// `(batch, heads, head_dim, tokens)`.
    keys: String,
    /// `(batch, heads, tokens, head_dim)`.
    values: String,
}

impl<'a> Block<'a> {
    pub(super) fn new(shape: &'a VitShape, index: usize) -> Self {
        Self { shape, name: format!("blocks.{index}") }
    }

    /// `(batch, tokens, dim)` to the same.
    pub(super) fn write(&self, graph: &mut Graph<'_>, tokens: &str) -> Result<String> {
        let keys = self.keys(graph, tokens)?;
        self.write_rest(graph, tokens, &keys)
    }

    /// The part that all queries share.
    pub(super) fn keys(&self, graph: &mut Graph<'_>, tokens: &str) -> Result<Keys> {
        let name = &self.name;
        let normed = layer_norm(graph, &format!("{name}.norm1"), tokens, &format!("{name}.norm1/out"))?;
        let heads = self.heads_shape(graph);
        let part = |graph: &mut Graph<'_>, part: Part, order: [i64; 4]| -> Result<String> {
            let place = format!("{name}.attn.{}", part.name());
            let value = self.part(graph, part)?.write(graph, &normed, &place)?;
            let value = graph.node("Reshape", &format!("{place}/split"), &[&value, &heads], &[]);
            Ok(graph.node("Transpose", &format!("{place}/heads"), &[&value], &[("perm", Ints(&order))]))
        };
        let keys = part(graph, Part::Key, [0, 2, 3, 1])?;
        let values = part(graph, Part::Value, [0, 2, 1, 3])?;
        Ok(Keys { normed, keys, values })
    }

    /// The block behind its keys, for all tokens.
    pub(super) fn write_rest(&self, graph: &mut Graph<'_>, tokens: &str, keys: &Keys) -> Result<String> {
        let place = format!("{}.attn.q", self.name);
        let query = self.part(graph, Part::Query)?.write(graph, &keys.normed, &place)?;
        let heads = self.heads_shape(graph);
        let query = graph.node("Reshape", &format!("{place}/split"), &[&query, &heads], &[]);
        let order = [0, 2, 1, 3];
        let query = graph.node("Transpose", &format!("{place}/heads"), &[&query], &[("perm", Ints(&order))]);
        let place = format!("{}.attn", self.name);
        let (mixed, _probabilities) = attend(graph, &place, &query, keys);
        let mixed = graph.node("Transpose", &format!("{place}/joined"), &[&mixed], &[("perm", Ints(&order))]);
        let joined = graph.list("tokens_shape", &[0, 0, self.shape.dim as i64]);
        let mixed = graph.node("Reshape", &format!("{place}/tokens"), &[&mixed, &joined], &[]);
        self.write_tail(graph, tokens, &mixed, &self.name)
    }

    /// What the class token alone gathers, `(batch, dim)`, and from where, `(batch, heads, 1, tokens)`.
    pub(super) fn class_attention(&self, graph: &mut Graph<'_>, keys: &Keys) -> Result<(String, String)> {
        let (heads, dim) = (self.shape.heads as i64, self.shape.dim as i64);
        let place = format!("{}/class", self.name);
        let class = class_of(graph, &keys.normed, &format!("{place}/normed"));
        let query = self.part(graph, Part::Query)?.write(graph, &class, &format!("{place}.attn.q"))?;
        let split = graph.list("class_heads_shape", &[0, heads, 1, dim / heads]);
        let query = graph.node("Reshape", &format!("{place}.attn.q/heads"), &[&query, &split], &[]);
        let (mixed, probabilities) = attend(graph, &format!("{place}.attn"), &query, keys);
        let joined = graph.list("class_shape", &[0, dim]);
        Ok((graph.node("Reshape", &format!("{place}.attn/token"), &[&mixed, &joined], &[]), probabilities))
    }

    /// The rest of the block for the class token: `(batch, dim)` to the same.
    pub(super) fn write_class(&self, graph: &mut Graph<'_>, class: &str, mixed: &str) -> Result<String> {
        self.write_tail(graph, class, mixed, &format!("{}/class", self.name))
    }

    /// Behind the attention: projection, perceptron and what is added; values are called after `place`.
    fn write_tail(&self, graph: &mut Graph<'_>, tokens: &str, mixed: &str, place: &str) -> Result<String> {
        let name = &self.name;
        let linear = |graph: &mut Graph<'_>, layer: &str, xs: &str| {
            Linear::named(graph, &format!("{name}.{layer}"))?.write(graph, xs, &format!("{place}.{layer}"))
        };
        let change = linear(graph, "attn.proj", mixed)?;
        let change = self.layer_scale(graph, "ls1", change, place)?;
        let tokens = graph.node("Add", &format!("{place}/attended"), &[tokens, &change], &[]);
        let normed = layer_norm(graph, &format!("{name}.norm2"), &tokens, &format!("{place}.norm2/out"))?;
        let hidden = linear(graph, "mlp.fc1", &normed)?;
        let hidden = gelu(graph, &format!("{place}.mlp"), &hidden);
        let change = linear(graph, "mlp.fc2", &hidden)?;
        let change = self.layer_scale(graph, "ls2", change, place)?;
        Ok(graph.node("Add", &format!("{place}/out"), &[&tokens, &change], &[]))
    }

    /// `x * gamma`, where the encoder has it.
    fn layer_scale(&self, graph: &mut Graph<'_>, layer: &str, xs: String, place: &str) -> Result<String> {
        if self.shape.layer_scale.is_none() {
            return Ok(xs);
        }
        let gamma = graph.parameter(&format!("{}.{layer}.gamma", self.name))?;
        Ok(graph.node("Mul", &format!("{place}.{layer}/out"), &[&xs, &gamma], &[]))
    }

    /// A third of the product that the encoder has for queries, keys and values.
    fn part(&self, graph: &Graph<'_>, part: Part) -> Result<Linear> {
        let (dim, head_dim) = (self.shape.dim, self.shape.dim / self.shape.heads);
        let (first, factor) = match part {
            Part::Query => (0, (head_dim as f64).powf(-0.5)),
            Part::Key => (dim, 1.),
            Part::Value => (2 * dim, 1.),
        };
        let all = Linear::named(graph, &format!("{}.attn.qkv", self.name))?;
        all.part(&format!("{}.attn.{}", self.name, part.name()), [first, dim], factor)
    }

    fn heads_shape(&self, graph: &mut Graph<'_>) -> String {
        let (heads, dim) = (self.shape.heads as i64, self.shape.dim as i64);
        graph.list("heads_shape", &[0, 0, heads, dim / heads])
    }
}

/// A third of `qkv`.
#[derive(Clone, Copy)]
enum Part {
    Query,
    Key,
    Value,
}

impl Part {
    fn name(self) -> &'static str {
        match self {
            Self::Query => "q",
            Self::Key => "k",
            Self::Value => "v",
        }
    }
}

/// `softmax(q k) v` with the probabilities, for queries `(batch, heads, queries, head_dim)`.
fn attend(graph: &mut Graph<'_>, place: &str, query: &str, keys: &Keys) -> (String, String) {
    let logits = graph.node("MatMul", &format!("{place}/logits"), &[query, &keys.keys], &[]);
    let probabilities = graph.node("Softmax", &format!("{place}/softmax"), &[&logits], &[("axis", Int(-1))]);
    let mixed = graph.node("MatMul", &format!("{place}/mixed"), &[&probabilities, &keys.values], &[]);
    (mixed, probabilities)
}
