//! `lejepa attention`

use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::Result;
use clap::Args;
use lejepa_data::{Claim, Image, Output};
use lejepa_embed::Encoder;
use lejepa_picture::{ATTENTION_MASS, AttentionPictures, attention_sheet, seen};

use crate::output::say;
use crate::picture_arguments::{PictureArguments, Subject, refuse_none};
use crate::{output, progress};

/// Draw what the class token of a vision transformer looks at, by head and on average
///
/// Writes a sheet for every image, and beside it a folder with attention, mask and overlay of the mean and of
/// every head. Masks keep the smallest set of patches with a share of the attention. Pictures show the part
/// of an image that the encoder sees.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Share of the attention that masks keep
    #[arg(long, value_name = "SHARE", default_value_t = ATTENTION_MASS)]
    mass: f64,

    #[command(flatten)]
    pictures: PictureArguments,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let clock = Instant::now();
    let encoder = arguments.pictures.encoder(Output::ClsAttention)?;
    let subjects = arguments.pictures.subjects()?;
    // Of every image a folder too.
    let claim = arguments.pictures.claim(("attention", &encoder), &subjects, subjects.names())?;
    let bar = progress::bar(subjects.len() as u64);
    let mut drawn = 0;
    for chunk in subjects.chunks() {
        arguments.draw(&claim, &encoder, &chunk)?;
        drawn += chunk.len();
        bar.inc(chunk.len() as u64);
    }
    bar.finish_and_clear();
    refuse_none(drawn)?;
    let sheets = if drawn == 1 { "sheet" } else { "sheets" };
    say!("{drawn} {sheets} in {}", progress::duration(clock.elapsed()));
    output::line(arguments.pictures.out.display());
    Ok(ExitCode::SUCCESS)
}

impl Arguments {
    fn draw(&self, claim: &Claim, encoder: &Encoder, subjects: &[Subject]) -> Result<()> {
        let images: Vec<Image> = subjects.iter().map(|subject| subject.image.clone()).collect();
        let attention = encoder.attention(&images)?; // (images, heads, rows, columns)
        let pictures = AttentionPictures { mass: self.mass, upsampling: self.pictures.upsampling };
        for (subject, heads) in subjects.iter().zip(attention.outer_iter()) {
            let image = seen(encoder.preprocess(), &subject.image)?;
            let pictures = pictures.of(&image, heads)?;
            let folder = self.pictures.out.join(&subject.name);
            let write = |picture: &Image, folder: &Path, name: &str| {
                let path = folder.join(format!("{name}.png"));
                claim.write(&path, &picture.to_marked_png(claim.mark())?)
            };
            for picture in &pictures {
                let name = picture.name.replace(' ', "-");
                write(&picture.heat, &folder, &format!("{name}-attention"))?;
                write(&picture.mask, &folder, &format!("{name}-mask"))?;
                write(&picture.overlay, &folder, &format!("{name}-overlay"))?;
            }
            write(&attention_sheet(&image, &pictures)?, &self.pictures.out, &subject.name)?;
        }
        Ok(())
    }
}
