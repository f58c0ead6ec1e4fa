//! The adaptor between an operation of this crate and Candle's custom operations.
//!
//! An [`Operation`] computes values from slices and makes its gradients of tensors; [`apply`] puts it into Candle's
//! graph. The adaptor deals with storage, types and layouts: an operation is given contiguous values of its type, a
//! backward pass tensors without a graph, and its gradients reach the inputs that need one. What else an operation may
//! need is built on it:
//!
//! - [`Kept`] holds what a forward pass leaves to the backward pass,
//! - [`Joint`] has more parameters than an operation of Candle has inputs,
//! - [`compute`] and [`read`] are for backward passes, whose results have no gradient.
//!
//! A kernel for graphics cards is a `cuda.rs` beside an operation's `cpu.rs`, and a method beside [`Operation::cpu`].

mod adaptor;
mod joint;
mod kept;
mod view;

use candle_core::{Device, Error, Result, Shape, Tensor, WithDType};

pub(crate) use self::adaptor::apply;
pub(crate) use self::joint::{Joint, JointInputs, apply_joint};
pub(crate) use self::kept::Kept;

pub(crate) use self::view::{View, compute, read};

/// An operation of `N` inputs with a backward pass of its own.
pub(crate) trait Operation<const N: usize, T: WithDType = f32>: Send + Sync + 'static {
    /// The name that errors give.
    fn name(&self) -> &'static str;

    /// The forward pass.
    fn cpu(&self, inputs: [View<'_, T>; N]) -> Result<(Vec<T>, Shape)>;

    /// The gradients of the inputs; those of inputs that need none are not looked at.
    fn backward(&self, backward: Backward<N>) -> Result<[Option<Tensor>; N]>;
}

/// The tensors that a backward pass starts from, contiguous and without a graph.
pub(crate) struct Backward<const N: usize> {
    pub(crate) inputs: [Tensor; N],
    /// Whether the gradient of an input is needed: pixels at the very beginning need none.
    pub(crate) is_needed: [bool; N],
    pub(crate) result: Tensor,
    /// The gradient of the result.
    pub(crate) gradient: Tensor,
}
