//! Pixels to tokens: `[cls, registers, patches] + pos_embed`.

use candle_core::Tensor;
use lejepa_data::{InputSize, PIXELS_INPUT};
use lejepa_model::VitShape;

use super::grid;
use super::positions::positions_of_patches;
use crate::Result;
use crate::graph::{
    Attribute::{Int, Ints},
    Graph,
};

/// Rows and columns of patches.
pub(super) enum Grid {
    /// In a file of one size.
    Fixed([usize; 2]),
    /// A value `(2)` of the graph.
    Value(String),
}

impl Grid {
    /// A shape with rows and columns between other sizes.
    pub(super) fn between(
        &self,
        graph: &mut Graph<'_>,
        name: &str,
        before: &[i64],
        behind: &[i64],
    ) -> String {
        match self {
            Self::Fixed([rows, columns]) => {
                graph.list(name, &[before, &[*rows as i64, *columns as i64], behind].concat())
            }
            Self::Value(grid) => {
                let before = graph.list(&format!("{name}/before"), before);
                let mut parts = vec![&*before, &**grid];
                let behind = (!behind.is_empty()).then(|| graph.list(&format!("{name}/behind"), behind));
                parts.extend(behind.as_deref());
                graph.node("Concat", name, &parts, &[("axis", Int(0))])
            }
        }
    }
}

/// `(batch, channels, height, width)` to `(batch, tokens, dim)` with positions added.
pub(super) fn embed(graph: &mut Graph<'_>, shape: &VitShape, sizes: &[InputSize]) -> Result<(String, Grid)> {
    let patch = shape.patch_size as i64;
    let weight = graph.parameter("patch_embed.proj.weight")?;
    let bias = graph.parameter("patch_embed.proj.bias")?;
    let square = [patch, patch];
    let attributes = [("kernel_shape", Ints(&square)), ("strides", Ints(&square))];
    let maps = graph.node("Conv", "patch_embed/conv", &[PIXELS_INPUT, &weight, &bias], &attributes);
    let grid = match sizes {
        [size] => Grid::Fixed(grid(shape, *size)),
        _ => {
            let sides = [("start", Int(2)), ("end", Int(4))];
            Grid::Value(graph.node("Shape", "grid", &[&maps], &sides))
        }
    };
    let flat = graph.list("patch_embed/flat_shape", &[0, shape.dim as i64, -1]);
    let patches = graph.node("Reshape", "patch_embed/flat", &[&maps, &flat], &[]);
    let order = [0, 2, 1];
    let patches = graph.node("Transpose", "patch_embed/tokens", &[&patches], &[("perm", Ints(&order))]);
    let positions = positions_of_patches(graph, shape, sizes)?;
    let patches = graph.node("Add", "patch_embed/positioned", &[&patches, &positions], &[]);
    Ok((with_prefix(graph, shape, patches)?, grid))
}

/// Class token and registers with their positions before the patches, once per image.
fn with_prefix(graph: &mut Graph<'_>, shape: &VitShape, patches: String) -> Result<String> {
    let prefix = shape.prefix();
    if prefix == 0 {
        return Ok(patches);
    }
    let mut tokens = Vec::new();
    if shape.class_token {
        tokens.push(graph.weight("cls_token")?);
    }
    if shape.registers > 0 {
        tokens.push(graph.weight("reg_token")?);
    }
    let mut tokens = Tensor::cat(&tokens, 1)?; // (1, prefix, dim)
    if shape.embed_prefix {
        tokens = (tokens + graph.weight("pos_embed")?.narrow(1, 0, prefix)?)?;
    }
    let tokens = graph.floats("prefix.positioned", &tokens)?;
    let batch = graph.node("Shape", "batch", &[PIXELS_INPUT], &[("start", Int(0)), ("end", Int(1))]);
    let rest = graph.list("prefix/rest_shape", &[prefix as i64, shape.dim as i64]);
    let target = graph.node("Concat", "prefix/shape", &[&batch, &rest], &[("axis", Int(0))]);
    let tokens = graph.node("Expand", "prefix/expanded", &[&tokens, &target], &[]);
    Ok(graph.node("Concat", "tokens", &[&tokens, &patches], &[("axis", Int(1))]))
}
