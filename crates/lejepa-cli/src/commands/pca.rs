//! `lejepa pca`

use std::process::ExitCode;
use std::time::Instant;

use anyhow::Result;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use lejepa_data::{ContactSheet, Image, Output, SheetCell, SheetRow};
use lejepa_embed::Encoder;
use lejepa_eval::{ComponentsOf, patch_colours, seen};

use crate::picture_arguments::{PictureArguments, Subject, refuse_none};
use crate::{output, progress};

/// Draw patch features: their first three principal components as red, green and blue
///
/// Writes a picture of every image, and sheet.png with images and pictures side by side. Pictures show the
/// part of an image that the encoder sees. Colours are the same in every run.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pictures: PictureArguments,

    /// Components of every image by itself, of all images, or of the foreground of all with a black
    /// background
    #[arg(long, value_name = "PATCHES", default_value = "image", value_parser = components_names())]
    components: ComponentsOf,
}

/// The widest sheet in pixels.
const WIDEST: usize = 4096;

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let clock = Instant::now();
    let encoder = arguments.pictures.encoder(Output::PatchTokens)?;
    let subjects = arguments.pictures.subjects()?;
    let bar = progress::bar(subjects.len() as u64);
    let mut pairs = Vec::new();
    let mut draw = |subjects: Vec<Subject>| -> Result<()> {
        pairs.extend(arguments.draw(&encoder, &subjects)?);
        bar.inc(subjects.len() as u64);
        Ok(())
    };
    match arguments.components {
        ComponentsOf::Image => subjects.chunks().try_for_each(|chunk| draw(chunk?))?,
        ComponentsOf::All | ComponentsOf::Foreground => draw(subjects.all()?)?,
    }
    bar.finish_and_clear();
    refuse_none(pairs.len())?;
    let path = arguments.pictures.out.join("sheet.png");
    let count = pairs.len();
    sheet(pairs)?.write_png(&path)?;
    eprintln!("{count} pictures in {}", progress::duration(clock.elapsed()));
    output::line(path.display());
    Ok(ExitCode::SUCCESS)
}

impl Arguments {
    /// Writes pictures; images and pictures for the sheet.
    fn draw(&self, encoder: &Encoder, subjects: &[Subject]) -> Result<Vec<[Image; 2]>> {
        let images: Vec<Image> = subjects.iter().map(|subject| subject.image.clone()).collect();
        let tokens = encoder.patch_tokens(&images)?;
        let colours = patch_colours(tokens.view(), self.components)?;
        let mut pairs = Vec::new();
        for (subject, colours) in subjects.iter().zip(colours) {
            let image = seen(encoder.preprocess(), &subject.image)?;
            let picture = colours.draw((image.height(), image.width()), self.pictures.upsampling)?;
            picture.write_png(&self.pictures.out.join(format!("{}.png", subject.name)))?;
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
