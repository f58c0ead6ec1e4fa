//! The training configuration: a TOML recipe plus what was typed on the command line, validated.

use std::path::Path;

use lejepa_data::{DataConfig, Preprocess, ViewSize, Views, ViewsConfig};
use lejepa_loss::LossConfig;
use lejepa_model::{EncoderConfig, ImageSize, ProjectorConfig};
use serde::{Deserialize, Serialize};
use toml::Table;

use crate::defaults::Assumed;
use crate::overrides::{COMMAND_LINE, Override, apply};
use crate::{
    AdamWConfig, AveragingConfig, CheckpointFolder, Error, LoopConfig, PredictorConfig, Result, Schedule,
    WatchConfig, defaults, preset, run_config,
};

/// A whole recipe. Every key has a default but `data.path`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TrainConfig {
    /// Decides every random number of the run.
    pub seed: u64,
    /// What is learnt from.
    pub data: DataConfig,
    /// How images become pixels of the encoder.
    pub preprocess: PreprocessConfig,
    /// What the encoder sees of a sample.
    pub views: ViewsConfig,
    /// The architecture.
    pub encoder: EncoderConfig,
    /// Between encoder and loss.
    pub projector: ProjectorConfig,
    /// From a view's embedding to the centre; the paper needs none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub predictor: Option<PredictorConfig>,
    /// Averages the encoder that makes the centres; the paper needs no such thing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub averaging: Option<AveragingConfig>,
    /// The objective.
    pub loss: LossConfig,
    /// AdamW and its learning rate.
    pub optimizer: AdamWConfig,
    /// How long.
    pub train: LoopConfig,
    /// When and how the run is looked at.
    pub watch: WatchConfig,
    /// What nobody gave.
    #[serde(skip)]
    pub(crate) assumed: Assumed,
}

/// The `[preprocess]` table.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PreprocessConfig {
    /// The short side before the centre crop; the encoder's image size if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resize_short_side: Option<usize>,
    /// Mean of every channel, of values in `[0, 1]`; the field's usual one if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean: Option<Vec<f64>>,
    /// Standard deviation of every channel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub std: Option<Vec<f64>>,
}

impl TrainConfig {
    /// Reads a recipe (or starts from the defaults), applies overrides in order and checks everything.
    pub fn load(file: Option<&Path>, overrides: &[Override]) -> Result<Self> {
        let mut table = Table::new();
        if let Some(path) = file {
            let origin = || path.display().to_string();
            let text = std::fs::read_to_string(path).map_err(|source| match source.kind() {
                std::io::ErrorKind::NotFound => lejepa_data::Error::NotFound { path: path.into() },
                _ => lejepa_data::Error::Io { action: "read", path: path.into(), source },
            })?;
            let invalid =
                |error: toml::de::Error| Error::Config { origin: origin(), problem: error.to_string() };
            // Once as it stands, for messages that point to the line.
            toml::from_str::<Self>(&text).map_err(invalid)?;
            table = toml::from_str(&text).map_err(invalid)?;
        }
        apply(&mut table, overrides)?;
        preset::spell_out(&mut table)?;
        let assumed = Assumed::of(&table);
        let mut config: Self = from_table(table, COMMAND_LINE)?;
        config.check()?;
        config.assumed = assumed;
        defaults::spell_out(&mut config)?;
        Ok(config)
    }

    /// The configuration of a run as it is now: that of its newest checkpoint, with what may change freely as in its
    /// `config.toml`; before the first checkpoint that of the file alone. Nothing if the folder holds no run.
    pub fn of_run(run: &Path) -> Result<Option<Self>> {
        if let Some(config) = CheckpointFolder::of(run).newest_config()? {
            return run_config::with_file(run, config).map(Some);
        }
        run_config::of_new_run(run)
    }

    /// The same configuration with some keys changed, checked.
    pub fn changed(&self, changes: &[Override]) -> Result<Self> {
        /// What a message calls the place of these changes.
        const ORIGIN: &str = "--continue-with";
        if let Some(preset) = changes.iter().find(|change| change.key == "views.preset") {
            let problem = format!("a preset is for a new run, change single keys of [views]: {}", preset.key);
            return Err(Error::Config { origin: ORIGIN.into(), problem });
        }
        let invalid =
            |error: toml::ser::Error| Error::Config { origin: ORIGIN.into(), problem: error.to_string() };
        let mut table = Table::try_from(self).map_err(invalid)?;
        apply(&mut table, changes)?;
        let mut config: Self = from_table(table, ORIGIN)?;
        config.check()?;
        config.assumed = self.assumed.without(changes);
        Ok(config)
    }

    /// Refuses values out of range, wherever they came from.
    pub fn check(&self) -> Result<()> {
        let shape = self.encoder.resolve()?;
        self.projector.check()?;
        self.loss.build()?;
        self.optimizer.check()?;
        self.data.check()?;
        self.watch.check()?;
        self.train.check(&shape)?;
        if let Some(averaging) = &self.averaging {
            averaging.check()?;
        }
        if let Some(predictor) = &self.predictor {
            predictor.check()?;
        }
        if let Some(size) = self.views.local_size {
            shape.check_image_size("views.local_size", size.into())?;
        }
        self.views()?;
        Ok(())
    }

    /// From an image to the encoder's input at inference.
    pub fn preprocess(&self) -> Result<Preprocess> {
        let shape = self.encoder.resolve()?;
        let ImageSize { height, width } = shape.image_size();
        let short_side = self.preprocess.resize_short_side.unwrap_or(height.min(width));
        let mut preprocess = Preprocess::new(short_side, (height, width), shape.channels());
        let to_f32 = |values: &Vec<f64>| values.iter().map(|&value| value as f32).collect();
        if let Some(mean) = &self.preprocess.mean {
            preprocess.mean = to_f32(mean);
        }
        if let Some(std) = &self.preprocess.std {
            preprocess.std = to_f32(std);
        }
        preprocess.check()?;
        Ok(preprocess)
    }

    /// From an image to its training views.
    pub fn views(&self) -> Result<Views> {
        let shape = self.encoder.resolve()?;
        // The paper's 96 of 224 pixels, in whole strides.
        let local_side = |side: usize| {
            let strides = (side as f64 * 3. / 7. / shape.stride() as f64).round().max(1.);
            strides as usize * shape.stride()
        };
        let local_size = match self.views.local_size {
            Some(side) => ViewSize { height: side, width: side },
            None => ViewSize {
                height: local_side(shape.image_size().height),
                width: local_side(shape.image_size().width),
            },
        };
        Ok(Views::new(&self.views, &self.preprocess()?, local_size)?)
    }

    /// The short side of images in the cache: enough for a crop of a quarter of the area.
    pub fn cache_short_side(&self) -> Result<usize> {
        let ImageSize { height, width } = self.encoder.resolve()?.image_size();
        Ok(self.data.cache_short_side.unwrap_or(2 * height.min(width)))
    }

    /// All steps of the run: at least one.
    pub fn total_steps(&self, steps_per_epoch: u64) -> u64 {
        self.train.total_steps(steps_per_epoch)
    }

    /// The learning rate over `total` steps.
    pub fn schedule(&self, total: u64) -> Schedule {
        Schedule {
            peak: self.optimizer.lr,
            last: self.optimizer.lr * self.optimizer.final_lr,
            warmup: (self.optimizer.warmup * total as f64).round() as u64,
            total,
        }
    }
}

fn from_table(table: Table, origin: &str) -> Result<TrainConfig> {
    table
        .try_into()
        .map_err(|error: toml::de::Error| Error::Config { origin: origin.into(), problem: error.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(overrides: &[&str]) -> Result<TrainConfig> {
        let overrides: Vec<Override> =
            overrides.iter().map(|typed| Override::parse(typed)).collect::<Result<_>>()?;
        TrainConfig::load(None, &overrides)
    }

    fn message(overrides: &[&str]) -> String {
        load(overrides).unwrap_err().to_string()
    }

    #[test]
    fn overrides_reach_every_table() {
        let config = load(&[
            "seed=7",
            "loss.lambda=0.1",
            "views.local.count=0",
            "views.local.scale=[0.1, 0.2]",
            "encoder.arch=vit_small_patch16_224",
            "data.path=/some/where",
        ])
        .unwrap();
        assert_eq!((config.seed, config.loss.lambda, config.views.local.count), (7, 0.1, 0));
        assert_eq!(config.encoder.arch, "vit_small_patch16_224");
        assert_eq!(config.data.path.as_deref(), Some(Path::new("/some/where")));
    }

    #[test]
    fn a_config_survives_toml_and_json() {
        let config = load(&["encoder.image_size=[64, 96]", "loss.prediction=sum"]).unwrap();
        let toml = toml::to_string(&config).unwrap();
        assert_eq!(toml::from_str::<TrainConfig>(&toml).unwrap(), config);
        let json = serde_json::to_value(&config).unwrap();
        assert_eq!(serde_json::from_value::<TrainConfig>(json).unwrap(), config);
    }

    #[test]
    fn every_number_comes_back_to_the_last_bit() {
        let mut generator = lejepa_data::generator(1, lejepa_data::Purpose::Dropping, 0, 0);
        for _ in 0..2000 {
            let mut config = load(&[]).unwrap();
            let any = f64::from_bits(rand::RngCore::next_u64(&mut generator));
            config.loss.lambda = if any.is_finite() { any } else { 0.1 };
            let unit = (rand::RngCore::next_u64(&mut generator) >> 11) as f64 / (1u64 << 53) as f64;
            config.preprocess.mean = Some(vec![unit]);
            let json = serde_json::to_string(&config).unwrap();
            assert_eq!(serde_json::from_str::<TrainConfig>(&json).unwrap(), config);
            let toml = toml::to_string(&config).unwrap();
            assert_eq!(toml::from_str::<TrainConfig>(&toml).unwrap(), config);
        }
    }

    #[test]
    fn mistakes_are_named() {
        assert!(message(&["loss.lamda=0.1"]).contains("lamda"));
        assert!(message(&["train.batch=0"]).contains("`train.batch` must be at least 2, got: 0"));
        assert!(message(&["train.epochs=-1"]).contains("train.epochs"));
        let endless = message(&["train.epochs=1e18"]);
        assert!(endless.contains("`train.epochs` must be a positive number up to 1000000000"), "{endless}");
        assert!(message(&["train.steps=0"]).contains("`train.steps` must be at least 1, got: 0"));
        let both = message(&["train.epochs=1", "train.steps=1"]);
        assert!(both.contains("`train.steps` must be absent when train.epochs is given, got: 1"), "{both}");
        assert!(message(&["loss.lambda=2"]).contains("[loss] `lambda` must be between 0 and 1, got: 2"));
        assert!(message(&["loss.lambda=much"]).contains("lambda"));
        assert!(message(&["data.broken_limit=2"]).contains("data.broken_limit"));
        assert!(message(&["data.format=floppy"]).contains("floppy"));
        assert!(message(&["data.path=a", "data.mix=[{path = 'b'}]"]).contains("data.mix"));
        assert!(message(&["data.format=idx", "data.mix=[{path = 'b'}]"]).contains("data.format"));
        assert!(message(&["views.flip=2"]).contains("views.flip"));
        assert!(message(&["views.local_size=95"]).contains("multiple of the patch size 16"));
        assert!(message(&["encoder.arch=alexnet"]).contains("encoder.arch"));
        assert!(message(&["preprocess.std=[0, 0, 0]"]).contains("std"));
        assert!(message(&["optimizer.lr=0"]).contains("optimizer.lr"));
        assert!(message(&["seed.deep=1", "seed.deep.deeper=1"]).contains("not a table"));
        assert!(message(&["nonsense"]).contains("expected key=value"));
    }

    #[test]
    fn a_run_is_as_long_as_its_epochs_or_its_steps() {
        let total = |overrides: &[&str]| load(overrides).unwrap().total_steps(30);
        assert_eq!(total(&[]), 3000, "100 epochs");
        assert_eq!(total(&["train.epochs=0.5"]), 15);
        assert_eq!(total(&["train.steps=7"]), 7);

        let folder = tempfile::tempdir().unwrap();
        let recipe = folder.path().join("train.toml");
        std::fs::write(&recipe, "[train]\nepochs = 3").unwrap();
        let of_recipe = |typed: &str| {
            let typed = [Override::parse(typed).unwrap()];
            TrainConfig::load(Some(&recipe), &typed).unwrap().total_steps(30)
        };
        assert_eq!(of_recipe("train.steps=7"), 7, "what is typed replaces the length of the recipe");
        assert_eq!(of_recipe("train.epochs=4"), 120);
        let longer = load(&["train.epochs=4"]).unwrap();
        let longer = longer.changed(&[Override::parse("train.steps=9").unwrap()]).unwrap();
        assert_eq!((longer.train.epochs, longer.total_steps(30)), (None, 9));
    }

    #[test]
    fn a_changed_configuration_is_checked() {
        let config = load(&[]).unwrap();
        let change = |typed: &str| config.changed(&[Override::parse(typed).unwrap()]);
        assert_eq!(change("optimizer.lr=1e-5").unwrap().optimizer.lr, 1e-5);
        for (typed, named) in [
            ("optimizer.lr=0", "optimizer.lr"),
            ("optimizer.rate=1", "--continue-with: unknown field `rate`"),
            ("views.preset=grey", "change single keys of [views]"),
        ] {
            let message = change(typed).unwrap_err().to_string();
            assert!(message.contains(named), "{message}");
        }
    }

    #[test]
    fn a_preset_gives_the_keys_that_are_not_given() {
        let config = load(&["views.preset=galaxies", "views.blur=0.9", "views.local.count=3"]).unwrap();
        assert_eq!((config.views.quarter_turns, config.views.flip_vertical), (0.75, 0.5));
        assert_eq!((config.views.blur, config.views.local.count), (0.9, 3));
        assert_eq!(config.views.local.scale, [0.1, 0.4], "single keys of a table can be given");
        assert_eq!(config.views.preset, None, "spelt out");
        assert_eq!(load(&["views.preset=natural"]).unwrap(), load(&[]).unwrap(), "the default");
        for (name, _) in ViewsConfig::PRESETS {
            load(&[&format!("views.preset={name}")]).unwrap();
        }
        let unknown = message(&["views.preset=moon"]);
        assert!(unknown.contains("moon") && unknown.contains("galaxies"), "{unknown}");
    }

    #[test]
    fn single_keys_of_views_can_be_given_without_a_preset() {
        let config = load(&["views.local.count=8"]).unwrap();
        assert_eq!((config.views.local.count, config.views.local.scale), (8, [0.05, 0.3]));
        let config = load(&["views.global.scale=[0.5, 1.0]"]).unwrap();
        assert_eq!((config.views.global.count, config.views.global.scale), (2, [0.5, 1.]));
        let folder = tempfile::tempdir().unwrap();
        let recipe = folder.path().join("train.toml");
        std::fs::write(&recipe, "[views]\npreset = \"galaxies\"\nlocal.count = 3").unwrap();
        let config = TrainConfig::load(Some(&recipe), &[]).unwrap();
        assert_eq!((config.views.local.count, config.views.local.scale), (3, [0.1, 0.4]), "of the preset");
        assert!(message(&["views.local.cuont=8"]).contains("cuont"));
    }

    #[test]
    fn a_preset_may_be_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mine.toml");
        let preset = format!("views.preset={}", path.display());
        std::fs::write(&path, "flip = 0.25\nhue = 0.0").unwrap();
        let config = load(&[&preset]).unwrap();
        assert_eq!((config.views.flip, config.views.hue), (0.25, 0.));
        std::fs::write(&path, "flop = 0.25").unwrap();
        let message = message(&[&preset]);
        assert!(message.contains("flop") && message.contains("mine.toml"), "{message}");
    }

    #[test]
    fn local_views_are_three_sevenths_in_whole_patches() {
        let size = |overrides: &[&str]| load(overrides).unwrap().views().unwrap().local().1;
        assert_eq!(size(&[]), ViewSize { height: 96, width: 96 });
        assert_eq!(size(&["views.local_size=64"]), ViewSize { height: 64, width: 64 });
        let wide = size(&["encoder.image_size=[32, 224]"]);
        assert_eq!(wide, ViewSize { height: 16, width: 96 });
    }
}
