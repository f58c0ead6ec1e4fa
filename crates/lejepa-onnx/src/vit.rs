//! The vision transformer as an ONNX graph, operation by operation as `lejepa-model` computes it.

use candle_core::Tensor;
use lejepa_data::{Output, PIXELS_INPUT};
use lejepa_model::{Parameters, Pool, VitShape};

use crate::Result;
use crate::graph::{
    Attribute::{Int, Ints},
    Dimension::{Batch, Fixed},
    Graph,
};
use crate::layers::{declare_gelu, gelu, layer_norm, linear};
use crate::proto::GraphProto;

/// The graph from pixels `(batch, channels, height, width)` to features `(batch, dim)`.
pub(crate) fn graph(shape: &VitShape, parameters: &Parameters) -> Result<GraphProto> {
    let mut graph = Graph::new("vit", parameters.tensors());
    let size = shape.image_size;
    graph.input(PIXELS_INPUT, &[Batch, Fixed(shape.channels), Fixed(size.height), Fixed(size.width)]);
    graph.output(Output::Embedding.name(), &[Batch, Fixed(shape.dim)]);

    declare_gelu(&mut graph);
    graph.float("attention_scale", ((shape.dim / shape.heads) as f32).powf(-0.5));
    graph.ints("heads_shape", &[0, 0, 3, shape.heads as i64, (shape.dim / shape.heads) as i64]);
    graph.ints("tokens_shape", &[0, 0, shape.dim as i64]);
    for (index, name) in ["first", "second", "third"].into_iter().enumerate() {
        graph.int(name, index as i64);
    }

    let mut tokens = embed_patches(&mut graph, shape)?;
    for index in 0..shape.depth {
        tokens = block(&mut graph, shape, &format!("blocks.{index}"), &tokens)?;
    }
    match shape.pool {
        Pool::Class => {
            let class = graph.node("Gather", "class_token", &[&tokens, "first"], &[("axis", Int(1))]);
            layer_norm(&mut graph, "norm", &class, Output::Embedding.name())?;
        }
        Pool::Average => {
            let patches = without_prefix(&mut graph, shape, &tokens);
            let attributes = [("axes", Ints(&[1])), ("keepdims", Int(0))];
            let mean = graph.node("ReduceMean", "pooled", &[&patches], &attributes);
            layer_norm(&mut graph, "fc_norm", &mean, Output::Embedding.name())?;
        }
    }
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

    let prefix = shape.prefix();
    let mut positions = graph.weight("pos_embed")?.clone(); // (1, positions, dim)
    let mut of_prefix = None;
    if shape.embed_prefix && prefix > 0 {
        of_prefix = Some(positions.narrow(1, 0, prefix)?);
        positions = positions.narrow(1, prefix, shape.tokens() - prefix)?;
    }
    let of_patches = graph.floats("pos_embed.patches", &positions)?;
    let patches = graph.node("Add", "patch_embed/positioned", &[&patches, &of_patches], &[]);
    if prefix == 0 {
        return Ok(patches);
    }

    // Class token and registers with their positions, once per image.
    let mut tokens = Vec::new();
    if shape.class_token {
        tokens.push(graph.weight("cls_token")?);
    }
    if shape.registers > 0 {
        tokens.push(graph.weight("reg_token")?);
    }
    let mut tokens = Tensor::cat(&tokens, 1)?; // (1, prefix, dim)
    if let Some(positions) = of_prefix {
        tokens = (tokens + positions)?;
    }
    let tokens = graph.floats("cls_token.positioned", &tokens)?;
    let batch = graph.node("Shape", "batch", &[PIXELS_INPUT], &[("start", Int(0)), ("end", Int(1))]);
    let rest = graph.ints("cls_token/rest_shape", &[prefix as i64, shape.dim as i64]);
    let target = graph.node("Concat", "cls_token/shape", &[&batch, &rest], &[("axis", Int(0))]);
    let tokens = graph.node("Expand", "cls_token/expanded", &[&tokens, &target], &[]);
    Ok(graph.node("Concat", "tokens", &[&tokens, &patches], &[("axis", Int(1))]))
}

/// `(batch, tokens, dim)` to the patches alone.
fn without_prefix(graph: &mut Graph<'_>, shape: &VitShape, tokens: &str) -> String {
    if shape.prefix() == 0 {
        return tokens.into();
    }
    let start = graph.ints("patches/start", &[shape.prefix() as i64]);
    let end = graph.ints("patches/end", &[shape.tokens() as i64]);
    let axis = graph.ints("patches/axis", &[1]);
    graph.node("Slice", "patches", &[tokens, &start, &end, &axis], &[])
}

fn block(graph: &mut Graph<'_>, shape: &VitShape, name: &str, tokens: &str) -> Result<String> {
    let normed = layer_norm(graph, &format!("{name}.norm1"), tokens, &format!("{name}.norm1/out"))?;
    let attended = attention(graph, &format!("{name}.attn"), &normed)?;
    let attended = layer_scale(graph, shape, &format!("{name}.ls1"), attended)?;
    let tokens = graph.node("Add", &format!("{name}/attended"), &[tokens, &attended], &[]);
    let normed = layer_norm(graph, &format!("{name}.norm2"), &tokens, &format!("{name}.norm2/out"))?;
    let mixed = mlp(graph, &format!("{name}.mlp"), &normed)?;
    let mixed = layer_scale(graph, shape, &format!("{name}.ls2"), mixed)?;
    Ok(graph.node("Add", &format!("{name}/out"), &[&tokens, &mixed], &[]))
}

/// `x * gamma`, where the encoder has it.
fn layer_scale(graph: &mut Graph<'_>, shape: &VitShape, name: &str, xs: String) -> Result<String> {
    if shape.layer_scale.is_none() {
        return Ok(xs);
    }
    let gamma = graph.floats(&format!("{name}.gamma"), graph.weight(&format!("{name}.gamma"))?)?;
    Ok(graph.node("Mul", &format!("{name}/out"), &[&xs, &gamma], &[]))
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
