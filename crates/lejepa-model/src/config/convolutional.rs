//! Residual networks and ConvNeXt V2: sizes of one's own, and those behind timm's names.

use super::EncoderConfig;
use super::fields::Allowed;
use crate::{ConvNextShape, EncoderShape, ResNetBlock, ResNetShape, Result};

/// What no name fixes.
const OPTIONS: [&str; 2] = ["image_size", "drop_path"];
const RESNET_SIZES: [&str; 5] = ["depths", "widths", "block", "groups", "group_width"];
const CONVNEXT_SIZES: [&str; 2] = ["depths", "widths"];

impl EncoderConfig {
    pub(super) fn own_resnet(&self) -> Result<ResNetShape> {
        let fields = [OPTIONS.as_slice(), &RESNET_SIZES].concat();
        self.allow(&Allowed { family: "resnet", fields: &fields, fixed: &[] })?;
        Ok(ResNetShape {
            image_size: self.required("encoder.image_size", self.image_size)?,
            channels: self.channels,
            block: self.block.unwrap_or(ResNetBlock::Basic),
            depths: self.required("encoder.depths", self.depths)?,
            widths: self.required("encoder.widths", self.widths)?,
            groups: self.groups.unwrap_or(1),
            group_width: self.group_width.unwrap_or(64),
            drop_path: self.drop_path.unwrap_or(0.),
        })
    }

    pub(super) fn named_resnet(&self) -> Result<Option<EncoderShape>> {
        let Some(named) = ResNetShape::named(&self.arch) else { return Ok(None) };
        self.allow(&Allowed { family: "resnet", fields: &OPTIONS, fixed: &RESNET_SIZES })?;
        Ok(Some(EncoderShape::ResNet(ResNetShape {
            image_size: self.image_size.unwrap_or(named.image_size),
            channels: self.channels,
            drop_path: self.drop_path.unwrap_or(named.drop_path),
            ..named
        })))
    }

    pub(super) fn own_convnext(&self) -> Result<ConvNextShape> {
        let fields = [OPTIONS.as_slice(), &CONVNEXT_SIZES].concat();
        self.allow(&Allowed { family: "convnextv2", fields: &fields, fixed: &[] })?;
        Ok(ConvNextShape {
            image_size: self.required("encoder.image_size", self.image_size)?,
            channels: self.channels,
            depths: self.required("encoder.depths", self.depths)?,
            widths: self.required("encoder.widths", self.widths)?,
            conv_mlp: false,
            drop_path: self.drop_path.unwrap_or(0.),
        })
    }

    pub(super) fn named_convnext(&self) -> Result<Option<EncoderShape>> {
        let Some(named) = ConvNextShape::named(&self.arch) else { return Ok(None) };
        self.allow(&Allowed { family: "convnextv2", fields: &OPTIONS, fixed: &CONVNEXT_SIZES })?;
        Ok(Some(EncoderShape::ConvNext(ConvNextShape {
            image_size: self.image_size.unwrap_or(named.image_size),
            channels: self.channels,
            drop_path: self.drop_path.unwrap_or(named.drop_path),
            ..named
        })))
    }
}
