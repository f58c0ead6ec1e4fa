//! The vision transformer as an ONNX graph, operation by operation as `lejepa-model` computes it.

use lejepa_data::{EMBEDDING_OUTPUT, PIXELS_INPUT};
use lejepa_model::{Parameters, VitShape};

use crate::Result;
use crate::graph::{
    Attribute::{Int, Ints},
    Dimension::{Batch, Fixed},
    Graph,
};
use crate::layers::{declare_gelu, gelu, layer_norm, linear};
use crate::proto::GraphProto;

/// The graph from pixels `(batch, channels, height, width)` to the class token `(batch, dim)`.
pub(crate) fn graph(shape: &VitShape, parameters: &Parameters) -> Result<GraphProto> {
    let mut graph = Graph::new("vit", parameters.tensors());
    let size = shape.image_size;
    graph.input(PIXELS_INPUT, &[Batch, Fixed(shape.channels), Fixed(size.height), Fixed(size.width)]);
    graph.output(EMBEDDING_OUTPUT, &[Batch, Fixed(shape.dim)]);

    declare_gelu(&mut graph);
    graph.float("attention_scale", ((shape.dim / shape.heads) as f32).powf(-0.5));
    graph.ints("heads_shape", &[0, 0, 3, shape.heads as i64, (shape.dim / shape.heads) as i64]);
    graph.ints("tokens_shape", &[0, 0, shape.dim as i64]);
    for (index, name) in ["first", "second", "third"].into_iter().enumerate() {
        graph.int(name, index as i64);
    }

    let mut tokens = embed_patches(&mut graph, shape)?;
    for index in 0..shape.depth {
        tokens = block(&mut graph, &format!("blocks.{index}"), &tokens)?;
    }
    let class = graph.node("Gather", "class_token", &[&tokens, "first"], &[("axis", Int(1))]);
    layer_norm(&mut graph, "norm", &class, EMBEDDING_OUTPUT)?;
    Ok(graph.finish())
}

/// `(batch, channels, height, width)` to `(batch, tokens, dim)` with positions added.
fn embed_patches(graph: &mut Graph<'_>, shape: &VitShape) -> Result<String> {
    let patch = shape.patch_size as i64;
    let weight = graph.floats("patch_embed.proj.weight", graph.weight("patch_embed.proj.weight")?)?;
    let bias = graph.floats("patch_embed.proj.bias", graph.weight("patch_embed.proj.bias")?)?;
    let square = [patch, patch];
    let attributes = [("kernel_shape", Ints(&square)), ("strides", Ints(&square))];
    let patches = graph.node("Conv", "patch_embed/conv", &[PIXELS_INPUT, &weight, &bias], &attributes);
    let flat = graph.ints("patch_embed/flat_shape", &[0, shape.dim as i64, -1]);
    let patches = graph.node("Reshape", "patch_embed/flat", &[&patches, &flat], &[]);
    let order = [0, 2, 1];
    let patches = graph.node("Transpose", "patch_embed/tokens", &[&patches], &[("perm", Ints(&order))]);

    let positions = graph.weight("pos_embed")?;
    let of_patches = graph.floats("pos_embed.patches", &positions.narrow(1, 1, shape.tokens() - 1)?)?;
    let patches = graph.node("Add", "patch_embed/positioned", &[&patches, &of_patches], &[]);

    // The class token with its position, once per image.
    let class = (graph.weight("cls_token")? + positions.narrow(1, 0, 1)?)?;
    let class = graph.floats("cls_token.positioned", &class)?;
    let batch = graph.node("Shape", "batch", &[PIXELS_INPUT], &[("start", Int(0)), ("end", Int(1))]);
    let rest = graph.ints("cls_token/rest_shape", &[1, shape.dim as i64]);
    let target = graph.node("Concat", "cls_token/shape", &[&batch, &rest], &[("axis", Int(0))]);
    let class = graph.node("Expand", "cls_token/expanded", &[&class, &target], &[]);
    Ok(graph.node("Concat", "tokens", &[&class, &patches], &[("axis", Int(1))]))
}

fn block(graph: &mut Graph<'_>, name: &str, tokens: &str) -> Result<String> {
    let normed = layer_norm(graph, &format!("{name}.norm1"), tokens, &format!("{name}.norm1/out"))?;
    let attended = attention(graph, &format!("{name}.attn"), &normed)?;
    let tokens = graph.node("Add", &format!("{name}/attended"), &[tokens, &attended], &[]);
    let normed = layer_norm(graph, &format!("{name}.norm2"), &tokens, &format!("{name}.norm2/out"))?;
    let mixed = mlp(graph, &format!("{name}.mlp"), &normed)?;
    Ok(graph.node("Add", &format!("{name}/out"), &[&tokens, &mixed], &[]))
}

/// `(batch, tokens, dim)` to the same; heads are split off and joined again.
fn attention(graph: &mut Graph<'_>, name: &str, tokens: &str) -> Result<String> {
    let qkv = linear(graph, &format!("{name}.qkv"), tokens)?;
    let qkv = graph.node("Reshape", &format!("{name}/split"), &[&qkv, "heads_shape"], &[]);
    let order = [2, 0, 3, 1, 4]; // (3, batch, heads, tokens, head_dim)
    let qkv = graph.node("Transpose", &format!("{name}/heads"), &[&qkv], &[("perm", Ints(&order))]);
    let mut part = |part: &str, index: &str| {
        graph.node("Gather", &format!("{name}/{part}"), &[&qkv, index], &[("axis", Int(0))])
    };
    let (query, key, value) = (part("query", "first"), part("key", "second"), part("value", "third"));
    let query = graph.node("Mul", &format!("{name}/scaled"), &[&query, "attention_scale"], &[]);
    let order = [0, 1, 3, 2];
    let key = graph.node("Transpose", &format!("{name}/key_t"), &[&key], &[("perm", Ints(&order))]);
    let logits = graph.node("MatMul", &format!("{name}/logits"), &[&query, &key], &[]);
    let probabilities = graph.node("Softmax", &format!("{name}/softmax"), &[&logits], &[("axis", Int(-1))]);
    let mixed = graph.node("MatMul", &format!("{name}/mixed"), &[&probabilities, &value], &[]);
    let order = [0, 2, 1, 3];
    let mixed = graph.node("Transpose", &format!("{name}/joined"), &[&mixed], &[("perm", Ints(&order))]);
    let mixed = graph.node("Reshape", &format!("{name}/tokens"), &[&mixed, "tokens_shape"], &[]);
    linear(graph, &format!("{name}.proj"), &mixed)
}

/// `fc2(gelu(fc1(x)))`.
fn mlp(graph: &mut Graph<'_>, name: &str, tokens: &str) -> Result<String> {
    let hidden = linear(graph, &format!("{name}.fc1"), tokens)?;
    let hidden = gelu(graph, name, &hidden);
    linear(graph, &format!("{name}.fc2"), &hidden)
}
