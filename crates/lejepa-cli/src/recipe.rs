//! Options that name a recipe and change keys of it.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use lejepa_model::EncoderConfig;
use lejepa_train::{Override, TrainConfig};

#[derive(Debug, Args)]
pub(crate) struct RecipeArguments {
    /// Recipe to start from; without one, the defaults
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// Architecture, such as vit_tiny_patch16_224
    #[arg(long, value_name = "NAME")]
    arch: Option<String>,

    /// Views for a kind of images: natural, small, grey, galaxies, or a .toml file
    #[arg(long, value_name = "NAME")]
    preset: Option<String>,

    /// Change any key of the recipe, such as optimizer.lr=1e-3
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
}

impl RecipeArguments {
    /// Whether none of them is given.
    pub(crate) fn is_empty(&self) -> bool {
        let Self { config, arch, preset, set } = self;
        config.is_none() && arch.is_none() && preset.is_none() && set.is_empty()
    }

    /// The recipe with these changes and those of other flags; `--set` wins.
    pub(crate) fn load(&self, flags: Vec<(&str, toml::Value)>) -> Result<TrainConfig> {
        let mut overrides = Vec::new();
        let mut change =
            |key: &str, value: Option<toml::Value>| overrides.push(Override { key: key.into(), value });
        if let Some(arch) = &self.arch {
            // The sizes and options of the recipe belong to another architecture.
            for field in EncoderConfig::architecture_fields() {
                change(field, None);
            }
            change("encoder.arch", Some(arch.clone().into()));
        }
        if let Some(preset) = &self.preset {
            change("views.preset", Some(preset.clone().into()));
        }
        for (key, value) in flags {
            change(key, Some(value));
        }
        for typed in &self.set {
            overrides.push(Override::parse(typed)?);
        }
        Ok(TrainConfig::load(self.config.as_deref(), &overrides)?)
    }
}
