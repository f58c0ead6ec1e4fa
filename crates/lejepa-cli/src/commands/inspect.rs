//! `lejepa inspect`

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use lejepa_data::{Interpolation, Preprocess, ResizeRule, SeenImages, printable_name};
use lejepa_embed::{EncoderCard, FileInfo, GraphOutput};

use crate::output;

/// Show what an exported encoder says about itself
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// File of `lejepa export`
    encoder: PathBuf,

    /// Print the whole card as JSON, with the training configuration
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let info = FileInfo::read(&arguments.encoder)?;
    if arguments.json {
        output::line(serde_json::to_string_pretty(&info.card)?);
        return Ok(ExitCode::SUCCESS);
    }
    let EncoderCard { arch, precision, licence, step, data_fingerprint, preprocess, sizes, .. } = &info.card;
    let sizes: Vec<String> = sizes.iter().map(|size| format!("{}x{}", size.height, size.width)).collect();
    let self_test = match &info.self_test {
        Some(test) => format!("inside, tolerates {:.0e}; `lejepa verify` runs it", test.tolerance),
        None => "none".into(),
    };
    let said = |text: &str| if text.is_empty() { "not said".to_string() } else { text.to_string() };
    let mut lines = vec![
        ("architecture", arch.clone()),
        ("embedding", format!("{} dimensions, {}", info.card.embedding_dim, info.card.feature.tag())),
        ("precision", precision.name().into()),
        ("image sizes", sizes.join(", ")),
        ("preprocessing", preprocessing(preprocess)),
        ("mean, std", format!("{:?}, {:?}", preprocess.mean, preprocess.std)),
        ("training", format!("{step} steps on data {}", said(data_fingerprint))),
        ("trained on", trained_on(info.card.seen.as_ref())),
        ("licence", said(licence)),
        ("self-test", self_test),
    ];
    lines.extend(info.outputs.iter().map(|output| ("output", described(output))));
    for (title, text) in lines {
        output::line(row(title, &text));
    }
    Ok(ExitCode::SUCCESS)
}

/// One line, whatever the card says: it cannot add lines that look like those of the command.
fn row(title: &str, text: &str) -> String {
    format!("{title:<14} {}", printable_name(text))
}

fn trained_on(seen: Option<&SeenImages>) -> String {
    match seen {
        Some(seen) if seen.has_unknown() => {
            format!("{} images, and others that are not known", seen.images())
        }
        Some(seen) => format!("{} images, which `lejepa eval` knows again", seen.images()),
        None => "not said".into(),
    }
}

fn preprocessing(preprocess: &Preprocess) -> String {
    let Preprocess { crop_height, crop_width, channels, .. } = preprocess;
    let filter = match preprocess.interpolation {
        Interpolation::Bicubic => "bicubic",
        Interpolation::Bilinear => "bilinear",
    };
    let colours = if *channels == 1 { "grey" } else { "colour" };
    match preprocess.resize {
        ResizeRule::ShortSide(side) => {
            format!("short side to {side} ({filter}), centre {crop_height}x{crop_width}, {colours}")
        }
        ResizeRule::Squash => format!("squashed to {crop_height}x{crop_width} ({filter}), {colours}"),
    }
}

fn described(output: &GraphOutput) -> String {
    let shape: Vec<String> = output.shape.iter().map(|dimension| dimension.to_string()).collect();
    format!("{} ({})", output.name, shape.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_adds_no_lines_of_its_own() {
        let expected = "architecture   vit\\u000averdict: healthy";
        assert_eq!(row("architecture", "vit\nverdict: healthy"), expected);
    }
}
