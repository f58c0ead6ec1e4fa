//! How masks are made, as it is typed.

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use lejepa_picture::ATTENTION_MASS;
use lejepa_video::{
    AttentionMasks, AttentionSettings, Clip, LabelMap, PropagationSettings, SegmentationMethod,
};

#[derive(Debug, Args)]
pub(super) struct MethodArguments {
    /// How masks are made [default: attention; propagate with --first-mask]
    #[arg(long, value_name = "NAME")]
    method: Option<Method>,

    /// Mask of the first frame, for propagate [default: the first of the true masks]
    #[arg(long, value_name = "FILE")]
    first_mask: Option<PathBuf>,

    /// Share of the attention that masks keep [default: 0.6]
    #[arg(long, value_name = "SHARE")]
    mass: Option<f64>,

    /// Weight of the frames before, from 0 to below 1: steadier attention, which lags behind [default: 0]
    #[arg(long, value_name = "WEIGHT")]
    smooth: Option<f32>,

    /// Head whose masks are written, from 1 [default: the mean over heads]
    #[arg(long, value_name = "NUMBER")]
    head: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Method {
    /// What the class token of a vision transformer looks at in the last block: the smallest set of patches
    /// with a share of the attention
    Attention,
    /// Follow the objects of a first mask by likeness of patches; any encoder
    Propagate,
}

impl MethodArguments {
    /// Refuses what does not belong to the method.
    pub(super) fn resolve(&self, clips: &[Clip]) -> Result<SegmentationMethod> {
        let followed = if self.first_mask.is_some() { Method::Propagate } else { Method::Attention };
        let method = self.method.unwrap_or(followed);
        let foreign = [
            ("--first-mask", self.first_mask.is_some(), Method::Propagate),
            ("--mass", self.mass.is_some(), Method::Attention),
            ("--smooth", self.smooth.is_some(), Method::Attention),
            ("--head", self.head.is_some(), Method::Attention),
        ];
        if let Some((option, _, of)) = foreign.into_iter().find(|(_, given, of)| *given && *of != method) {
            let name = of.to_possible_value().map(|value| value.get_name().to_string()).unwrap_or_default();
            bail!("{option} is for --method {name}");
        }
        match method {
            Method::Attention => {
                let mass = self.mass.unwrap_or(ATTENTION_MASS);
                if !(mass > 0. && mass <= 1.) {
                    return Err(lejepa_picture::Error::AttentionMass { got: mass }.into());
                }
                let settings = AttentionSettings { mass, smoothing: self.smooth.unwrap_or(0.) };
                // Refused before anything is opened.
                AttentionMasks::new(settings)?;
                Ok(SegmentationMethod::Attention { settings, head: self.head })
            }
            Method::Propagate if clips.len() > 1 && self.first_mask.is_some() => {
                bail!("--first-mask is for a single clip, got: {}", clips.len())
            }
            Method::Propagate => {
                let first_mask = self.first_mask.as_deref().map(LabelMap::read).transpose()?;
                Ok(SegmentationMethod::Propagation { settings: PropagationSettings::default(), first_mask })
            }
        }
    }
}
