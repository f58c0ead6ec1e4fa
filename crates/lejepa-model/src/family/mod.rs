//! Families of encoders: a folder for each.
//!
//! A family is a shape that implements [`Family`], which says all that the rest of the workspace asks of a family, and
//! a [`Network`] that it builds. A new one is a folder beside the others and a line in each of the three lists below.

mod convnext;
mod definition;
mod listed;
mod resnet;
mod stages;
mod vit;

use std::ops::Deref;

use serde::{Deserialize, Serialize};

pub use self::convnext::{ConvNext, ConvNextSettings, ConvNextShape};
pub use self::definition::{CentreViews, Family, Network};
pub(crate) use self::listed::Listed;
use self::listed::Wrapped;
pub use self::resnet::{ResNet, ResNetBlock, ResNetSettings, ResNetShape};
pub use self::vit::{Pool, VisionTransformer, VitSettings, VitShape, VitTokens};

/// What a configuration stands for: a family and all of its sizes. It has the methods of [`Family`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "family", rename_all = "lowercase")]
pub enum EncoderShape {
    /// A vision transformer.
    Vit(VitShape),
    /// A residual network.
    ResNet(ResNetShape),
    /// A ConvNeXt V2.
    ConvNext(ConvNextShape),
}

impl Deref for EncoderShape {
    type Target = dyn Family;

    fn deref(&self) -> &Self::Target {
        match self {
            Self::Vit(shape) => shape,
            Self::ResNet(shape) => shape,
            Self::ConvNext(shape) => shape,
        }
    }
}

/// Every family, in the order in which messages list them and files hold their settings.
pub(crate) static FAMILIES: &[&dyn Listed] =
    &[&Wrapped(EncoderShape::Vit), &Wrapped(EncoderShape::ResNet), &Wrapped(EncoderShape::ConvNext)];
