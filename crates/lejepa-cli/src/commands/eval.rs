//! `lejepa eval`

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::Result;
use candle_core::Device;
use clap::Args;
use indicatif::ProgressBar;
use lejepa_data::write_atomically;
use lejepa_embed::{Encoder, InputSize, Preprocess};
use lejepa_eval::{
    Candidate, Evaluation, EvaluationData, Event, FeatureSource, Report, Suite, to_markdown, to_table,
};
use lejepa_train::{Model, TrainConfig};

use crate::encoder_arguments::EncoderArguments;
use crate::encoder_file::{self, Content, Origin};
use crate::{output, progress};

/// Score an exported encoder, with raw pixels and the same encoder untrained beside it
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// File of `lejepa export`, or an ONNX encoder of another project with --preprocess
    encoder: PathBuf,

    /// Name of a suite (quick, knn), or the path of a .toml file
    #[arg(long, value_name = "SUITE")]
    suite: String,

    /// Labelled data with a training and a test split, in any form that `lejepa data inspect` knows
    #[arg(long, value_name = "PATH")]
    data: PathBuf,

    /// Folder for report.md and report.json [default: beside the encoder]
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,

    #[command(flatten)]
    computing: EncoderArguments,
}

impl Arguments {
    fn out(&self) -> PathBuf {
        let suite = Path::new(&self.suite).file_stem().unwrap_or_default().to_string_lossy();
        let stem = self.encoder.file_stem().unwrap_or_default().to_string_lossy();
        self.out.clone().unwrap_or_else(|| self.encoder.with_file_name(format!("{stem}-{suite}")))
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let suite = Suite::load(&arguments.suite)?;
    let encoder = arguments.computing.opener()?.open(&arguments.encoder)?;
    let data = EvaluationData::open(&arguments.data, &suite)?;
    data.notes().for_each(|note| eprintln!("note: {note}"));
    let untrained = untrained(&encoder, &arguments.computing)?;

    let mut candidates = vec![Candidate { name: "encoder", source: FeatureSource::Encoder(&encoder) }];
    match &untrained {
        Some(untrained) => candidates
            .push(Candidate { name: "same encoder, untrained", source: FeatureSource::Encoder(untrained) }),
        None => eprintln!("no untrained baseline: the encoder does not carry a training configuration"),
    }
    let pixels = FeatureSource::Pixels(encoder.preprocess());
    candidates.push(Candidate { name: "raw pixels", source: pixels });

    let out = arguments.out();
    let clock = Instant::now();
    let command = std::env::args().collect::<Vec<_>>().join(" ");
    let mut bar: Option<ProgressBar> = None;
    let mut written = Ok(());
    let evaluation = Evaluation { suite: &suite, data: &data, candidates: &candidates, command: &command };
    let report = evaluation.run(&mut |event| match event {
        Event::Extracting { name, images } => {
            let next = progress::bar(images as u64);
            next.set_message(name.to_string());
            bar = Some(next);
        }
        Event::Extracted(images) => bar.iter().for_each(|bar| bar.inc(images as u64)),
        Event::Scored(report) => {
            bar.iter().for_each(ProgressBar::finish_and_clear);
            if written.is_ok() {
                written = write(report, &out);
            }
        }
    })?;
    written?;
    eprintln!("evaluated in {}, written to {}", progress::duration(clock.elapsed()), out.display());
    output::line(to_table(&report).trim_end());
    Ok(ExitCode::SUCCESS)
}

/// The encoder as it was before its first step: its card holds all that decides it.
fn untrained(encoder: &Encoder, computing: &EncoderArguments) -> Result<Option<Encoder>> {
    let config =
        encoder.card().and_then(|card| serde_json::from_value::<TrainConfig>(card.config.clone()).ok());
    let Some(config) = config else { return Ok(None) };
    let model = Model::new(&config, &Device::Cpu)?;
    let origin = Origin { config: &config, step: 0, data_fingerprint: "" };
    let Preprocess { crop_height: height, crop_width: width, .. } = *encoder.preprocess();
    let content = Content { sizes: vec![InputSize { height, width }], ..Content::embedding() };
    let bytes = encoder_file::encode(&model, &origin, &content)?;
    Ok(Some(computing.opener()?.open_bytes("the untrained encoder", &bytes)?))
}

fn write(report: &Report, out: &Path) -> Result<()> {
    let json = serde_json::to_string_pretty(report)?;
    write_atomically(&out.join("report.json"), |file| writeln!(file, "{json}"))?;
    let markdown = to_markdown(report);
    write_atomically(&out.join("report.md"), |file| file.write_all(markdown.as_bytes()))?;
    Ok(())
}
