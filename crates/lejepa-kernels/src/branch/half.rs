//! The two halves of a transformer's block, and any number of them as one operation.

use candle_core::{Result, Tensor};

use super::cpu::Chain;
use super::{Images, composed};
use crate::is_fused;
use crate::operation::apply_joint;

/// The first half of a block, `y = x + factor[image] gamma proj(attention(qkv(norm(x))))`, without its rows.
pub struct AttentionBranch<'a> {
    /// Norm weight, norm bias, qkv weight, qkv bias, proj weight, proj bias.
    pub parameters: [&'a Tensor; 6],
    /// The factor of every channel.
    pub gamma: Option<&'a Tensor>,
    /// Added to the variance.
    pub epsilon: f32,
    /// The batch that the rows are of.
    pub images: Images,
    /// Heads of a row.
    pub heads: usize,
    /// The tokens of which there are results.
    pub outputs: Outputs,
}

/// The tokens of which there are results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outputs {
    /// All of them.
    All,
    /// Of the first of every image.
    First,
}

/// The second half of a block, `y = x + factor[image] gamma fc2(gelu(fc1(norm(x))))`, without its rows.
pub struct MlpBranch<'a> {
    /// Norm weight, norm bias, fc1 weight, fc1 bias, fc2 weight, fc2 bias.
    pub parameters: [&'a Tensor; 6],
    /// The factor of every channel.
    pub gamma: Option<&'a Tensor>,
    /// Added to the variance.
    pub epsilon: f32,
    /// The batch that the rows are of.
    pub images: Images,
}

/// One half of a block.
pub enum Half<'a> {
    /// The first half.
    Attention(AttentionBranch<'a>),
    /// The second half.
    Mlp(MlpBranch<'a>),
}

/// The rows behind halves of blocks, one after the other.
///
/// # Shapes
/// - `rows`: `(images * tokens, dim)`
/// - result: the same, or `(images, dim)` behind a half that has results of first tokens alone
pub fn halves(rows: &Tensor, halves: Vec<Half<'_>>) -> Result<Tensor> {
    if !is_fused(rows) {
        return halves.iter().try_fold(rows.clone(), |rows, half| match half {
            Half::Attention(branch) => composed::attention_branch(&rows, branch),
            Half::Mlp(branch) => composed::mlp_branch(&rows, branch),
        });
    }
    let (chain, parameters) = Chain::new(rows, &halves);
    apply_joint(rows, &parameters, rows.dim(1)?, chain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agreement::assert_fused_agrees;

    const EPSILON: f32 = 1e-6;

    fn mlp_branch(tensors: &[Tensor], tokens: usize, factors: &[f32]) -> Tensor {
        let [rows, norm_weight, norm_bias, fc1, fc1_bias, fc2, fc2_bias, rest @ ..] = tensors else {
            panic!("too few tensors")
        };
        let parameters = [norm_weight, norm_bias, fc1, fc1_bias, fc2, fc2_bias];
        let images = Images { tokens, factors: factors.to_vec() };
        let branch = MlpBranch { parameters, gamma: rest.first(), epsilon: EPSILON, images };
        halves(rows, vec![Half::Mlp(branch)]).unwrap()
    }

    #[test]
    fn the_fused_second_half_agrees_with_the_composed_one() {
        // The third has images of more rows than go through at a time, the last several sums.
        for (tokens, dim, hidden, factors) in [
            (1, 3, 5, &[1., 1.][..]),
            (5, 16, 40, &[1., 0., 1.25]),
            (150, 24, 33, &[0., 1.]),
            (4, 8, 8, &[0., 0.]),
            (37, 8, 12, &[1.1; 60]),
        ] {
            let rows = [tokens * factors.len(), dim];
            let shapes: [&[usize]; 8] =
                [&rows, &[dim], &[dim], &[hidden, dim], &[hidden], &[dim, hidden], &[dim], &[dim]];
            for count in [7, 8] {
                assert_fused_agrees(&shapes[..count], |tensors| mlp_branch(tensors, tokens, factors));
            }
        }
    }

    fn attention_branch(
        tensors: &[Tensor],
        heads: usize,
        tokens: usize,
        factors: &[f32],
        outputs: Outputs,
    ) -> Tensor {
        let [rows, norm_weight, norm_bias, qkv, qkv_bias, proj, proj_bias, rest @ ..] = tensors else {
            panic!("too few tensors")
        };
        // Logits of order one: far larger ones would enlarge every rounding error.
        let qkv = &(qkv / (rows.dim(1).unwrap() as f64).sqrt()).unwrap();
        let parameters = [norm_weight, norm_bias, qkv, qkv_bias, proj, proj_bias];
        let (gamma, images) = (rest.first(), Images { tokens, factors: factors.to_vec() });
        let branch = AttentionBranch { parameters, gamma, epsilon: EPSILON, images, heads, outputs };
        halves(rows, vec![Half::Attention(branch)]).unwrap()
    }

    #[test]
    fn the_fused_first_half_agrees_with_the_composed_one() {
        // The fourth has more rows of probabilities than exist at a time, the last several sums.
        for (tokens, heads, dim, factors) in [
            (1, 1, 3, &[1., 1.][..]),
            (5, 2, 8, &[1., 0., 1.25]),
            (17, 3, 48, &[0., 1., 1.]),
            (300, 1, 5, &[1.]),
            (7, 2, 8, &[0., 0.]),
            (37, 1, 8, &[1.1; 60]),
        ] {
            let rows = [tokens * factors.len(), dim];
            let shapes: [&[usize]; 8] =
                [&rows, &[dim], &[dim], &[3 * dim, dim], &[3 * dim], &[dim, dim], &[dim], &[dim]];
            for outputs in [Outputs::All, Outputs::First] {
                for count in [7, 8] {
                    assert_fused_agrees(&shapes[..count], |tensors| {
                        attention_branch(tensors, heads, tokens, factors, outputs)
                    });
                }
            }
        }
    }
}
