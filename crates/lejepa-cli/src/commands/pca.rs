//! `lejepa pca`

use std::process::ExitCode;
use std::time::Instant;

use anyhow::Result;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use lejepa_data::{Claim, ContactSheet, Image, Output, SheetCell, SheetRow};
use lejepa_embed::Encoder;
use lejepa_picture::{ComponentsOf, patch_colours, seen};
use ndarray::{Array4, Axis};

use crate::output::say;
use crate::picture_arguments::{PictureArguments, Subject, refuse_none};
use crate::{output, progress};

/// Draw patch features: their first three principal components as red, green and blue
///
/// Writes a picture of every image, and sheet.png with images and pictures side by side. Pictures show the
/// part of an image that the encoder sees. Colours are the same in every run.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Components of every image by itself, of all images, or of the foreground of all with a black
    /// background
    #[arg(long, value_name = "PATCHES", default_value = "image", value_parser = components_names())]
    components: ComponentsOf,

    #[command(flatten)]
    pictures: PictureArguments,
}

/// The widest sheet in pixels.
const WIDEST: usize = 4096;

/// All of them side by side.
const SHEET: &str = "sheet.png";

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let clock = Instant::now();
    let encoder = arguments.pictures.encoder(Output::PatchTokens)?;
    let subjects = arguments.pictures.subjects()?;
    let claim = arguments.pictures.claim(("pca", &encoder), &subjects, [SHEET.to_string()])?;
    let bar = progress::bar(subjects.len() as u64);
    let (mut pairs, mut waiting) = (Vec::new(), Features::default());
    for chunk in subjects.chunks() {
        waiting.add(&encoder, &chunk)?;
        if arguments.components == ComponentsOf::Image {
            pairs.extend(arguments.draw(&claim, std::mem::take(&mut waiting))?);
        }
        bar.inc(chunk.len() as u64);
    }
    pairs.extend(arguments.draw(&claim, waiting)?);
    bar.finish_and_clear();
    refuse_none(pairs.len())?;
    let path = arguments.pictures.out.join(SHEET);
    let count = pairs.len();
    claim.write(&path, &sheet(pairs)?.to_marked_png(claim.mark())?)?;
    let pictures = if count == 1 { "picture" } else { "pictures" };
    say!("{count} {pictures} in {}", progress::duration(clock.elapsed()));
    output::line(path.display());
    Ok(ExitCode::SUCCESS)
}

/// Images with the features of their patches.
#[derive(Default)]
struct Features {
    /// Names, and what the encoder sees.
    images: Vec<(String, Image)>,
    /// Each `(images, rows, columns, dim)`.
    tokens: Vec<Array4<f32>>,
}

impl Features {
    fn add(&mut self, encoder: &Encoder, subjects: &[Subject]) -> Result<()> {
        let images: Vec<Image> = subjects.iter().map(|subject| subject.image.clone()).collect();
        self.tokens.push(encoder.patch_tokens(&images)?);
        for subject in subjects {
            self.images.push((subject.name.clone(), seen(encoder.preprocess(), &subject.image)?));
        }
        Ok(())
    }
}

impl Arguments {
    /// Writes pictures; images and pictures for the sheet.
    fn draw(&self, claim: &Claim, features: Features) -> Result<Vec<[Image; 2]>> {
        let parts: Vec<_> = features.tokens.iter().map(|tokens| tokens.view()).collect();
        if parts.is_empty() {
            return Ok(Vec::new());
        }
        let tokens = ndarray::concatenate(Axis(0), &parts)?;
        let mut pairs = Vec::new();
        for ((name, image), colours) in
            features.images.into_iter().zip(patch_colours(tokens.view(), self.components)?)
        {
            let picture = colours.draw((image.height(), image.width()), self.pictures.upsampling)?;
            let path = self.pictures.out.join(format!("{name}.png"));
            claim.write(&path, &picture.to_marked_png(claim.mark())?)?;
            pairs.push([image, picture]);
        }
        Ok(pairs)
    }
}

/// Images and pictures side by side, about as wide as high.
fn sheet(pairs: Vec<[Image; 2]>) -> Result<Image> {
    let across = (pairs.len() as f64 / 2.).sqrt().ceil() as usize;
    let side = |image: &Image| image.height().max(image.width()).min(WIDEST / (2 * across));
    let cells = pairs.into_iter().flatten().map(|image| {
        let side = side(&image);
        SheetCell::new(image, side)
    });
    let mut cells = cells.collect::<lejepa_data::Result<Vec<_>>>()?.into_iter();
    let mut rows = Vec::new();
    loop {
        let row: Vec<SheetCell> = cells.by_ref().take(2 * across).collect();
        if row.is_empty() {
            return Ok(ContactSheet::new(rows).draw()?);
        }
        rows.push(SheetRow { title: String::new(), cells: row });
    }
}

fn components_names() -> impl TypedValueParser<Value = ComponentsOf> {
    PossibleValuesParser::new(["image", "all", "foreground"]).map(|typed| match typed.as_str() {
        "all" => ComponentsOf::All,
        "foreground" => ComponentsOf::Foreground,
        _ => ComponentsOf::Image,
    })
}
