//! `lejepa data inspect`

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use lejepa_data::{Claim, ContactSheet, Image, ImageSize, Inspection, Job, SourceConfig, SplitInspection};

use super::{print_left_out, print_unreadable, with_bar};
use crate::output;
use crate::output::say;
use crate::source::SourceArguments;
use crate::table::table;
use crate::targets::TargetArguments;

/// Show what a dataset holds, and draw some of its images
///
/// Sizes and unreadable images come from 1000 images of each split, always the same ones.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    source: SourceArguments,

    /// Decode every image
    #[arg(long)]
    all: bool,

    /// Contact sheet to draw [default: NAME-contact-sheet.png in the working directory, NAME being
    /// the last part of PATH; none with --json, or if the working directory is inside the data]
    #[arg(long, value_name = "FILE")]
    sheet: Option<PathBuf>,

    #[command(flatten)]
    targets: TargetArguments,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// How many classes are listed.
const CLASSES: usize = 20;

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let source = arguments.source.config();
    let sheet = match &arguments.sheet {
        None if arguments.json => None,
        None => default_sheet(&source.path),
        named => named.clone(),
    };
    let job = Job::new("data inspect", [source.path.as_path()]);
    let claim =
        |sheet: &PathBuf| Claim::of_files(std::slice::from_ref(sheet), job, arguments.targets.overwrite());
    let claim = sheet.as_ref().map(claim).transpose()?;
    let decode = (!arguments.all).then_some(Inspection::DECODED);
    let inspection = with_bar(|progress| Inspection::of(&source, decode, progress))?;
    if arguments.json {
        output::line(serde_json::to_string_pretty(&inspection)?);
    } else {
        print(&inspection);
    }
    match (sheet, claim) {
        (Some(sheet), Some(claim)) => {
            if let Some(picture) = draw(&source, &inspection)? {
                claim.write(&sheet, &picture.to_marked_png(claim.mark())?)?;
            }
            if !arguments.json {
                output::line(format_args!("\ncontact sheet: {}", sheet.display()));
            }
        }
        _ if arguments.json => {}
        _ => say!("no contact sheet inside the data: --sheet FILE names another place"),
    }
    Ok(ExitCode::SUCCESS)
}

/// A file in the working directory, unless that belongs to the data: the next run would take the
/// picture for one of its images.
fn default_sheet(data: &Path) -> Option<PathBuf> {
    let data = data.canonicalize().ok()?;
    let working = std::env::current_dir().and_then(|folder| folder.canonicalize()).ok()?;
    let name = data.file_name().unwrap_or("data".as_ref()).to_string_lossy();
    (!working.starts_with(&data)).then(|| PathBuf::from(format!("{name}-contact-sheet.png")))
}

/// Draws the first split, which is the training split if there is one.
fn draw(source: &SourceConfig, inspection: &Inspection) -> Result<Option<Image>> {
    let Some(first) = inspection.splits.first() else { return Ok(None) };
    let dataset = lejepa_data::open_source(source, first.split)?;
    Ok(Some(ContactSheet::of(dataset.as_ref()).draw()?))
}

fn print(inspection: &Inspection) {
    output::line(format_args!("{}: {}", inspection.path.display(), inspection.format.name()));
    output::line(format_args!("\n{}", table(&split_rows(&inspection.splits))));
    let in_part: Vec<String> = inspection
        .splits
        .iter()
        .filter(|split| split.decoded < split.images)
        .map(|split| format!("{} of {} {} images", split.decoded, split.images, split.split.name()))
        .collect();
    output::line("sizes are height x width");
    if !in_part.is_empty() {
        output::line(format_args!("decoded for grey and sizes: {}", in_part.join(", ")));
    }
    let classes = class_rows(&inspection.splits);
    if classes.len() > 1 {
        let listed = classes.len().min(1 + CLASSES);
        output::line(format_args!("\n{}", table(&classes[..listed])));
        print_more(classes.len() - listed);
    }
    for split in &inspection.splits {
        for note in &split.notes {
            output::line(format_args!("\nnote: {note}"));
        }
        print_left_out(split.split, [split.transparent, split.several_pictures, split.cut]);
        if split.unreadable > 0 {
            let SplitInspection { unreadable, decoded, .. } = split;
            let name = split.split.name();
            output::line(format_args!("\n{unreadable} of {decoded} decoded {name} images cannot be read:"));
            print_unreadable(&split.unreadable_images);
            print_more(unreadable - split.unreadable_images.len());
        }
    }
}

fn print_more(count: usize) {
    if count > 0 {
        output::line(format_args!("... and {count} more"));
    }
}

fn split_rows(splits: &[SplitInspection]) -> Vec<Vec<String>> {
    let heading =
        ["split", "images", "classes", "unlabelled", "fingerprint", "grey", "smallest", "median", "largest"];
    let mut rows = vec![heading.map(String::from).to_vec()];
    for split in splits {
        let readable = split.decoded - split.unreadable;
        let grey = (100 * split.grey).checked_div(readable).map_or("-".into(), |share| format!("{share}%"));
        let mut row = vec![
            split.split.name().into(),
            split.images.to_string(),
            split.classes.len().to_string(),
            split.unlabelled.to_string(),
            split.fingerprint.clone().unwrap_or_else(|| "-".into()),
            grey,
        ];
        row.extend(match &split.sizes {
            Some(sizes) => [sizes.smallest, sizes.median, sizes.largest].map(size),
            None => ["-"; 3].map(String::from),
        });
        rows.push(row);
    }
    // Without --all nobody has read everything.
    if splits.iter().all(|split| split.fingerprint.is_none()) {
        rows.iter_mut().for_each(|row| drop(row.remove(FINGERPRINT)));
    }
    rows
}

/// Its column.
const FINGERPRINT: usize = 4;

fn size(size: ImageSize) -> String {
    format!("{}x{}", size.height, size.width)
}

/// A line per class with its images in every split that has labels.
fn class_rows(splits: &[SplitInspection]) -> Vec<Vec<String>> {
    let splits: Vec<_> = splits.iter().filter(|split| !split.classes.is_empty()).collect();
    let mut heading = vec!["class".to_string()];
    heading.extend(splits.iter().map(|split| split.split.name().to_string()));
    let mut rows = vec![heading];
    // Splits of one dataset have the same classes; should they not, the longest list is shown.
    let longest = splits.iter().map(|split| &split.classes).max_by_key(|classes| classes.len());
    for (index, class) in longest.into_iter().flatten().enumerate() {
        let mut row = vec![class.name.clone()];
        row.extend(splits.iter().map(|split| match split.classes.get(index) {
            Some(class) => class.images.to_string(),
            None => "-".into(),
        }));
        rows.push(row);
    }
    rows
}
