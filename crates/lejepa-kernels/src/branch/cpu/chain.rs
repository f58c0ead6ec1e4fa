//! Branches one after the other as one operation: Candle would copy and add the gradient of the rows between
//! any two.

use candle_core::Tensor;

use super::super::Half;
use super::attention::{Attention, Remembered};
use super::mlp::Mlp;
use crate::operation::{Joint, JointInputs};

pub(crate) struct Chain {
    links: Vec<Link>,
    /// Whether there may be a backward pass; if not, no link leaves anything to it.
    is_tracked: bool,
}

struct Link {
    step: Step,
    /// Places of its own among all parameters.
    parameters: std::ops::Range<usize>,
}

enum Step {
    Attention(Attention),
    Mlp(Mlp),
}

/// The values that a link leaves to its backward pass.
pub(crate) struct Left {
    /// The rows that it started from; absent for the first, whose rows are given.
    rows: Vec<f32>,
    kept: Kept,
}

enum Kept {
    Attention(Remembered),
    Mlp(Vec<f32>),
}

impl Chain {
    /// The chain of halves, and the parameters of all.
    pub(crate) fn new<'a>(rows: &Tensor, halves: &[Half<'a>]) -> (Self, Vec<&'a Tensor>) {
        let (mut parameters, mut links) = (Vec::new(), Vec::with_capacity(halves.len()));
        for half in halves {
            let before = parameters.len();
            let step = match half {
                Half::Attention(branch) => {
                    parameters.extend(branch.parameters.into_iter().chain(branch.gamma));
                    Step::Attention(Attention::new(branch))
                }
                Half::Mlp(branch) => {
                    parameters.extend(branch.parameters.into_iter().chain(branch.gamma));
                    Step::Mlp(Mlp::new(branch))
                }
            };
            links.push(Link { step, parameters: before..parameters.len() });
        }
        let is_tracked = rows.track_op() || parameters.iter().any(|parameter| parameter.track_op());
        (Self { links, is_tracked }, parameters)
    }
}

impl Joint for Chain {
    type Kept = Vec<Left>;

    fn name(&self) -> &'static str {
        "branches"
    }

    fn forward(&self, rows: &[f32], parameters: &[&[f32]]) -> (Vec<f32>, Vec<Left>) {
        let mut left: Vec<Left> = Vec::with_capacity(self.links.len());
        let mut between = Vec::new();
        for (index, link) in self.links.iter().enumerate() {
            let rows = if index == 0 { rows } else { &between };
            let parameters = &parameters[link.parameters.clone()];
            let (ys, kept) = match &link.step {
                Step::Attention(attention) => {
                    let (ys, kept) = attention.forward(rows, parameters);
                    (ys, Kept::Attention(kept))
                }
                Step::Mlp(mlp) => {
                    let (ys, kept) = mlp.forward(rows, parameters);
                    (ys, Kept::Mlp(kept))
                }
            };
            let rows = std::mem::replace(&mut between, ys);
            if self.is_tracked {
                left.push(Left { rows, kept });
            }
        }
        (between, left)
    }

    fn backward(&self, inputs: &JointInputs<'_>, mut left: Vec<Left>) -> (Option<Vec<f32>>, Vec<Vec<f32>>) {
        let mut of_links = Vec::with_capacity(self.links.len());
        let mut gradient: Option<Vec<f32>> = None;
        for link in self.links.iter().rev() {
            // What the link has left is free as soon as the loop comes to the next.
            let Some(Left { rows, kept }) = left.pop() else { break };
            let inputs = JointInputs {
                rows: if left.is_empty() { inputs.rows } else { &rows },
                parameters: &inputs.parameters[link.parameters.clone()],
                gradient: gradient.as_deref().unwrap_or(inputs.gradient),
                of_rows_is_needed: true,
            };
            let (of_rows, of_parameters) = match (&link.step, kept) {
                (Step::Attention(attention), Kept::Attention(kept)) => attention.backward(&inputs, kept),
                (Step::Mlp(mlp), Kept::Mlp(kept)) => mlp.backward(&inputs, kept),
                _ => break,
            };
            gradient = of_rows;
            of_links.push(of_parameters);
        }
        (gradient, of_links.into_iter().rev().flatten().collect())
    }
}
