//! Pictures of images, as they are asked for.

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use lejepa_data::{Claim, Fingerprinter, Image, Job, Output};
use lejepa_embed::Encoder;
use lejepa_eval::sets::ImageList;
use lejepa_picture::Upsampling;

use crate::encoder_arguments::{ComputingArguments, RuntimeArguments};
use crate::output::say;
use crate::source::SourceOptions;
use crate::targets::TargetArguments;

/// What every command that draws what an encoder sees takes.
#[derive(Debug, Args)]
pub(crate) struct PictureArguments {
    /// File of `lejepa export`
    encoder: PathBuf,

    /// Image files, and folders or files that hold images in any form that `lejepa data inspect` knows
    #[arg(required = true, value_name = "IMAGES")]
    paths: Vec<PathBuf>,

    /// Folder to write pictures into
    #[arg(long, value_name = "FOLDER")]
    pub(crate) out: PathBuf,

    #[command(flatten)]
    targets: TargetArguments,

    /// Most images to draw, at equal distances among all
    #[arg(long, value_name = "IMAGES", default_value_t = 100, value_parser = at_least_one)]
    limit: usize,

    /// How patches become pixels
    #[arg(long, value_name = "HOW", default_value = "smooth", value_parser = upsampling_names())]
    pub(crate) upsampling: Upsampling,

    #[command(flatten)]
    options: SourceOptions,

    #[command(flatten)]
    computing: ComputingArguments,

    #[command(flatten)]
    runtime: RuntimeArguments,
}

/// Images that are held at a time: photographs may be large.
const CHUNK: usize = 8;

/// Images to be drawn.
pub(crate) struct Subjects {
    list: ImageList,
    /// Those of the list that are meant.
    chosen: Vec<usize>,
}

/// An image with a name that no other one of the command has.
pub(crate) struct Subject {
    /// Good for a file.
    pub(crate) name: String,
    pub(crate) image: Image,
}

impl PictureArguments {
    /// The encoder, if it can compute the output.
    pub(crate) fn encoder(&self, output: Output) -> Result<Encoder> {
        let encoder = self.computing.opener(&self.runtime).open(&self.encoder)?;
        // Of no image: an error without the output.
        encoder.compute(output, &[])?;
        Ok(encoder)
    }

    /// The right to write into the folder what `more` names, and a picture of every image under its name.
    pub(crate) fn claim(
        &self,
        (command, encoder): (&str, &Encoder),
        subjects: &Subjects,
        more: impl IntoIterator<Item = String>,
    ) -> Result<Claim> {
        let inputs = std::iter::once(&self.encoder).chain(&self.paths);
        let mut names: Vec<String> = subjects.names().map(|name| format!("{name}.png")).collect();
        names.extend(more);
        let content = subjects.fingerprint(encoder);
        let job = Job::new(command, inputs.map(PathBuf::as_path)).with_content(&content);
        Ok(Claim::of_folder(&self.out, &names, job, self.targets.overwrite())?)
    }

    /// The images.
    pub(crate) fn subjects(&self) -> Result<Subjects> {
        let sources: Vec<_> = self.paths.iter().map(|path| self.options.config(path)).collect();
        let list = ImageList::open(&sources)?;
        list.notes().for_each(|note| say!("note: {note}"));
        let (all, most) = (list.len(), self.limit.min(list.len()));
        if most < all {
            say!("note: {most} of {all} images are drawn, see --limit");
        }
        Ok(Subjects { chosen: (0..most).map(|step| step * all / most).collect(), list })
    }
}

impl Subjects {
    /// Their number, readable or not.
    pub(crate) fn len(&self) -> usize {
        self.chosen.len()
    }

    /// Of an encoder and the images as they are stored.
    fn fingerprint(&self, encoder: &Encoder) -> String {
        let images = self.chosen.iter().map(|&index| format!("{:?}", self.list.hash(index)));
        Fingerprinter::combined(std::iter::once(encoder.fingerprint()).chain(images))
    }

    /// The names of all of them.
    pub(crate) fn names(&self) -> impl Iterator<Item = String> {
        let digits = self.len().to_string().len();
        let name = move |(number, &index): (usize, &usize)| {
            format!("{number:0digits$}-{}", file_name(&self.list.info(index).id))
        };
        (1..).zip(&self.chosen).map(name)
    }

    /// A few at a time.
    pub(crate) fn chunks(&self) -> impl Iterator<Item = Vec<Subject>> {
        (0..self.len()).step_by(CHUNK).map(|start| self.read(start)).filter(|chunk| !chunk.is_empty())
    }

    /// Those that can be read; the others are named on standard error.
    fn read(&self, start: usize) -> Vec<Subject> {
        let mut subjects = Vec::new();
        for (&index, name) in self.chosen.iter().zip(self.names()).skip(start).take(CHUNK) {
            match self.list.image(index) {
                Ok(image) => subjects.push(Subject { name, image }),
                Err(error) => {
                    say!("note: left out: {}", crate::failure::sentence(&anyhow::Error::new(error)));
                }
            }
        }
        subjects
    }
}

/// An error if nothing at all was drawn.
pub(crate) fn refuse_none(drawn: usize) -> Result<()> {
    if drawn == 0 {
        bail!("none of the images can be read");
    }
    Ok(())
}

/// Endings that say nothing of an image.
const ENDINGS: [&str; 8] = ["jpg", "jpeg", "png", "webp", "bmp", "tif", "tiff", "gif"];

/// The last part of an image's id without its ending, in letters that every file system takes.
fn file_name(id: &str) -> String {
    let last = id.rsplit('/').next().unwrap_or(id);
    let stem = match last.rsplit_once('.') {
        Some((stem, ending)) if ENDINGS.contains(&&*ending.to_lowercase()) => stem,
        _ => last,
    };
    let plain = |character: char| if character.is_alphanumeric() { character } else { '-' };
    let plain: String = stem.chars().map(plain).collect();
    plain.split('-').filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-")
}

pub(crate) fn at_least_one(typed: &str) -> Result<usize, String> {
    match typed.parse() {
        Ok(number) if number > 0 => Ok(number),
        _ => Err("expected a number of at least 1".into()),
    }
}

fn upsampling_names() -> impl TypedValueParser<Value = Upsampling> {
    PossibleValuesParser::new(["smooth", "nearest"]).map(|typed| match typed.as_str() {
        "nearest" => Upsampling::Nearest,
        _ => Upsampling::Smooth,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_images_become_names_of_files() {
        assert_eq!(file_name("photos/kodim 01.png"), "kodim-01");
        assert_eq!(file_name("data/train-images-idx3-ubyte#17"), "train-images-idx3-ubyte-17");
        assert_eq!(file_name("shard.tar: n01/x.jpg"), "x");
        assert_eq!(file_name("..."), "");
    }
}
