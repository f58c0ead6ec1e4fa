//! `lejepa data views`

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use lejepa_data::{BatchConfig, BatchSource, Claim, ContactSheet, Job};

use crate::output;
use crate::output::say;
use crate::recipe::RecipeArguments;
use crate::targets::TargetArguments;

/// Draw the views that the encoder will see
///
/// Each row is a sample of the first training step: the image, its global views, its local views.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Images, as for `lejepa train --data`; without it, those of the recipe
    path: Option<PathBuf>,

    #[command(flatten)]
    recipe: RecipeArguments,

    /// How many samples to draw
    #[arg(long, value_name = "NUMBER", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=256))]
    samples: u16,

    /// Picture to write
    #[arg(long, value_name = "FILE", default_value = "views.png")]
    out: PathBuf,

    #[command(flatten)]
    targets: TargetArguments,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let path = arguments.path.as_ref().map(|path| ("data.path", path.display().to_string().into()));
    let config = arguments.recipe.load(path.into_iter().collect())?;
    let sources = config.data.sources()?;
    let job = Job::new("data views", sources.iter().map(|source| source.path.as_path()));
    let out = std::slice::from_ref(&arguments.out);
    let claim = Claim::of_files(out, job, arguments.targets.overwrite())?;
    let data = config.data.open(&mut Ok)?;
    let batch = data.dataset.len().min(usize::from(arguments.samples));
    let batch = BatchConfig { batch, seed: config.seed, broken_limit: config.data.broken_limit };
    let source = BatchSource::new(data, config.views()?, batch)?;
    let picture = ContactSheet::of_views(&source)?.draw()?;
    claim.write(&arguments.out, &picture.to_marked_png(claim.mark())?)?;
    let ((global, global_size), (local, local_size)) = (source.views().global(), source.views().local());
    say!(
        "{global} global views of {}x{} and {local} local views of {}x{} beside each image",
        global_size.height,
        global_size.width,
        local_size.height,
        local_size.width
    );
    output::line(arguments.out.display());
    Ok(ExitCode::SUCCESS)
}
