//! ConvNeXt V2, with timm's parameter names and numerics.

mod shape;

pub use shape::ConvNextShape;
