//! A report in the terminal, as Markdown that reads well as it is.

use std::fmt::Write;

use lejepa_page::markdown::plain;
use lejepa_page::number::counted;

use super::markdown::{PaperRows, push_isotropy, push_missing, push_scores, push_seen, push_videos};
use super::{Rendered, Renderer, single};
use crate::Result;
use crate::isotropy::table::Detail;
use crate::report::{DatasetReport, Report};

/// What is shown at the end: the main tables without the paper's fine-tuned encoders, what is missing, and a
/// sentence about the images.
#[derive(Debug, Clone, Copy)]
pub struct Terminal;

impl Terminal {
    /// The text that is shown.
    pub fn text(&self, report: &Report) -> String {
        to_table(report)
    }
}

impl Renderer for Terminal {
    fn files(&self) -> &'static [&'static str] {
        &[]
    }

    fn render(&self, report: &Report) -> Result<Vec<Rendered>> {
        Ok(single("terminal", to_table(report)))
    }
}

pub(super) fn to_table(report: &Report) -> String {
    let Report {
        format: _,
        version: _,
        suite: _,
        about: _,
        // By what the tables wait for.
        complete: _,
        command: _,
        seed,
        // Rows of the tables.
        candidates: _,
        datasets,
        missing,
        videos,
        demonstration,
    } = report;
    let mut text = String::new();
    push_scores(&mut text, report, PaperRows::Frozen);
    push_seen(&mut text, datasets);
    push_missing(&mut text, missing);
    push_videos(&mut text, videos);
    push_isotropy(&mut text, datasets, demonstration.as_ref(), Detail::Main);
    let images: Vec<String> = datasets.iter().map(images).collect();
    if !images.is_empty() {
        let _ = writeln!(text, "\nTested on {}; seed {seed}.", images.join(", "));
    }
    text
}

/// A set in the terminal's last sentence.
fn images(dataset: &DatasetReport) -> String {
    let DatasetReport {
        name,
        path: _,
        fingerprints: _,
        train: _,
        train_available: _,
        test,
        test_available: _,
        splits: _,
        // Columns of the tables.
        per_class: _,
        classes,
        // Told as notes before the tables.
        notes: _,
        // Below the tables.
        seen: _,
        // In the tables.
        results: _,
        comparisons: _,
        published: _,
        isotropy: _,
        pictures: _,
    } = dataset;
    let [test, classes] = [counted(*test, "test image"), counted(classes.len(), "class")];
    format!("{} ({test} of {classes})", plain(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::samples;

    #[test]
    fn a_report_that_is_still_running_has_a_table_with_gaps() {
        let mut report = samples::quick();
        report.datasets[0].results.truncate(4);
        report.videos.clear();
        let text = to_table(&report);
        assert_eq!(
            text.lines().collect::<Vec<_>>(),
            [
                "**imagenette, all samples** (accuracy in %)",
                "",
                "| candidate       | k-NN (k = 20) | ridge |",
                "|-----------------|--------------:|------:|",
                "| ours, ViT-S/8   |          67.7 |  69.8 |",
                "| DINOv2 ViT-S/14 |      **71.0** |     … |",
                "| raw pixels      |          33.2 |     … |",
                "",
                "…: not measured yet.",
                "",
                "Tested on imagenette (500 test images of 10 classes); seed 0.",
            ]
        );
    }
}
