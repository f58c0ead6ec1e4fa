//! What an evaluation compares: encoders, the same untrained, raw pixels.

use std::path::Path;

use anyhow::Result;
use lejepa_data::Output;
use lejepa_embed::{Encoder, Error, Preprocess};
use lejepa_eval::features::pixels_title;
use lejepa_eval::suite::Baseline;
use lejepa_eval::{Candidate, FeatureSource, Suite};

use super::Arguments;
use crate::output::say;
use crate::untrained::{Twin, untrained};

/// Opened encoders; candidates borrow them.
pub(super) struct Opened {
    encoders: Vec<OpenedEncoder>,
    pixels: Option<Preprocess>,
}

struct OpenedEncoder {
    name: String,
    file: String,
    encoder: Encoder,
    untrained: Option<Encoder>,
}

/// What probes ask of an encoder.
const PROBED: [Output; 2] = [Output::Embedding, Output::ClsLast2];
/// What segmentation asks of it; every file has an embedding.
const SEGMENTED: [Output; 3] = [Output::Embedding, Output::PatchTokens, Output::ClsAttention];

pub(super) fn open(arguments: &Arguments, suite: &Suite) -> Result<Opened> {
    let names = names(arguments);
    let mut encoders = Vec::new();
    for (path, name) in arguments.encoders.iter().zip(names) {
        let encoder = arguments.computing.open(path, |opener| opener)?;
        let untrained = match suite.baselines.contains(&Baseline::Untrained) {
            true => untrained(&encoder, &PROBED, &arguments.computing.plain_opener())?,
            false => None,
        };
        if untrained.is_none() && suite.baselines.contains(&Baseline::Untrained) {
            say!("no untrained baseline, the file carries no training configuration: {}", path.display());
        }
        encoders.push(OpenedEncoder { name, file: path.display().to_string(), encoder, untrained });
    }
    let wanted = suite.baselines.contains(&Baseline::Pixels);
    let pixels = encoders.first().filter(|_| wanted).map(|first| first.encoder.preprocess().clone());
    Ok(Opened { encoders, pixels })
}

/// The encoders once more, for frames. Those of other projects have nothing to segment with.
pub(super) fn open_for_video(arguments: &Arguments, suite: &Suite) -> Result<Opened> {
    let opener = arguments.computing.frame_opener(arguments.video_size);
    let mut encoders = Vec::new();
    for (path, name) in arguments.encoders.iter().zip(names(arguments)) {
        let encoder = match opener.clone().open(path) {
            Err(Error::NotAnEncoder { .. }) => continue,
            opened => opened?,
        };
        let untrained = match suite.baselines.contains(&Baseline::Untrained) {
            true => untrained(&encoder, &SEGMENTED, &opener)?,
            false => None,
        };
        encoders.push(OpenedEncoder { name, file: path.display().to_string(), encoder, untrained });
    }
    Ok(Opened { encoders, pixels: None })
}

impl Opened {
    /// The rows of the tables.
    pub(super) fn candidates(&self) -> Vec<Candidate<'_>> {
        let alone = matches!(&*self.encoders, [only] if only.name == ALONE);
        let mut candidates = Vec::new();
        for OpenedEncoder { name, file, encoder, untrained } in &self.encoders {
            let source = FeatureSource::Encoder(encoder);
            candidates.push(Candidate { name: name.clone(), description: file.clone(), source });
            if let Some(untrained) = untrained {
                let twin = Twin::of(encoder);
                let name = if alone { twin.title().into() } else { twin.title_beside(name) };
                let description = twin.description(file);
                candidates.push(Candidate { name, description, source: FeatureSource::Encoder(untrained) });
            }
        }
        if let (Some(preprocess), Some(first)) = (&self.pixels, self.encoders.first()) {
            let description = format!("the values that {} sees", first.file);
            let source = FeatureSource::Pixels(preprocess);
            candidates.push(Candidate { name: pixels_title(preprocess), description, source });
        }
        candidates
    }
}

/// What the only encoder is called.
const ALONE: &str = "encoder";

/// What a folder is called after a file: its stem, or that of the run or model if all such files have it.
pub(super) fn telling_name(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let absolute = path.canonicalize().unwrap_or_else(|_| path.into());
    let folder = absolute.parent().and_then(Path::file_name).filter(|_| stem == ALONE);
    folder.map_or(stem, |folder| folder.to_string_lossy().into_owned())
}

/// A short name for every file: its stem, or its path where two have the same.
fn names(arguments: &Arguments) -> Vec<String> {
    let stem = |path: &Path| path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let paths = &arguments.encoders;
    if paths.len() == 1 {
        return vec![ALONE.into()];
    }
    let unique = |name: &str| paths.iter().filter(|path| stem(path) == name).count() == 1;
    let name = |path: &std::path::PathBuf| match stem(path) {
        name if unique(&name) => name,
        _ => path.display().to_string(),
    };
    paths.iter().map(name).collect()
}
