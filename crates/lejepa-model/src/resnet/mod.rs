//! The residual network and its grouped form ResNeXt, with timm's parameter names and numerics.

mod shape;

pub use shape::{ResNetBlock, ResNetShape};
