//! A report as Markdown.

pub(crate) mod table;
pub(crate) mod text;

use std::fmt::Write;

use self::table::push_table;
use self::text::{code, code_block, plain};
use crate::footnotes::Footnotes;
use crate::number::{self, PENDING, count, counted, percent};
use crate::remarks::remarks;
use crate::score_table::{Cell, Origin, PaperRow, Rank, ScoreTable, score_tables};
use crate::{DatasetReport, Report};

/// The whole report but what is told of single classes and draws: that is in the other files.
pub fn to_markdown(report: &Report) -> String {
    let mut text = format!("# Evaluation: {}\n\n", plain(&report.suite));
    if !report.about.is_empty() {
        let _ = writeln!(text, "{}\n", plain(&report.about));
    }
    push_scores(&mut text, report, PaperRows::All);
    push_missing(&mut text, report);
    push_videos(&mut text, report);
    text.push_str("\n## Candidates\n\n");
    push_candidates(&mut text, report);
    text.push_str("\n## Data\n\n");
    for dataset in &report.datasets {
        push_data(&mut text, report, dataset);
    }
    let footnotes = Footnotes::new(report);
    text.push_str("\n## All results\n\n");
    push_results(&mut text, report, &footnotes);
    push_comparisons(&mut text, report);
    text.push_str("\n## Protocols\n\n");
    for (number, note) in footnotes.iter() {
        let _ = writeln!(text, "{number}. {}", code(note.protocol));
    }
    let _ = write!(text, "\n## Command\n\n{}\n", code_block(&report.command));
    let _ = writeln!(text, "lejepa {}, seed {}.", plain(&report.version), report.seed);
    text
}

/// What the terminal shows at the end: the main tables without the paper's fine-tuned encoders, what is
/// missing, and a sentence about the images.
pub fn to_table(report: &Report) -> String {
    let mut text = String::new();
    push_scores(&mut text, report, PaperRows::Frozen);
    push_missing(&mut text, report);
    push_videos(&mut text, report);
    text.push('\n');
    let images = |dataset: &DatasetReport| {
        let [test, classes] = [counted(dataset.test, "test image"), counted(dataset.classes.len(), "class")];
        format!("{} ({test} of {classes})", plain(&dataset.name))
    };
    let images: Vec<String> = report.datasets.iter().map(images).collect();
    if !images.is_empty() {
        let _ = writeln!(text, "Tested on {}; seed {}.", images.join(", "), report.seed);
    }
    text
}

/// Whether encoders that the paper fine-tuned stand beside frozen ones.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PaperRows {
    All,
    Frozen,
}

impl PaperRows {
    fn has(self, row: PaperRow<'_>) -> bool {
        self == Self::All || row.is_frozen()
    }
}

fn push_scores(text: &mut String, report: &Report, paper: PaperRows) {
    let tables = score_tables(report);
    if tables.is_empty() {
        text.push_str("No result yet.\n");
    }
    for (index, table) in tables.iter().enumerate() {
        let gap = if index > 0 { "\n" } else { "" };
        let _ = writeln!(text, "{gap}**{}** ({})\n", plain(&table.title), table.reading());
        push_table(text, &score_rows(table, paper), 1);
    }
    let mut rows = tables.iter().flat_map(|table| &table.rows);
    if rows.any(|row| matches!(row.origin, Origin::Paper(row) if paper.has(row))) {
        text.push_str("\nIn italics: as printed in the paper.\n");
    }
    if tables.iter().any(ScoreTable::has_pending) {
        let _ = writeln!(text, "\n{PENDING}: not measured yet.");
    }
}

/// The scores of masks, where true ones are known.
fn push_videos(text: &mut String, report: &Report) {
    for video in &report.videos {
        if let Some(table) = video.to_table() {
            let _ = write!(text, "\n**{}**\n\n{table}", plain(&video.title()));
        }
    }
}

fn score_rows(table: &ScoreTable<'_>, paper: PaperRows) -> Vec<Vec<String>> {
    let titles = table.columns.iter().map(|column| plain(&column.title));
    let mut rows = vec![["candidate".into()].into_iter().chain(titles).collect()];
    for row in &table.rows {
        let title = match row.origin {
            Origin::Candidate(candidate) => plain(&candidate.name),
            Origin::Paper(row) if !paper.has(row) => continue,
            Origin::Paper(paper) => {
                let PaperRow { table, method, protocol, .. } = paper;
                format!("*{}*", plain(&format!("{method}, {}, {protocol} ({table})", paper.encoder())))
            }
        };
        rows.push([title].into_iter().chain(row.cells.iter().map(score_cell)).collect());
    }
    rows
}

fn score_cell(cell: &Cell<'_>) -> String {
    match cell {
        Cell::Measured(result, Rank::Best) => format!("**{}**", number::with_deviation(result)),
        Cell::Measured(result, Rank::Other) => number::with_deviation(result),
        Cell::Average(accuracy, Rank::Best) => format!("**{}**", percent(*accuracy)),
        Cell::Average(accuracy, Rank::Other) => percent(*accuracy),
        Cell::Published(accuracy) => format!("*{}*", percent(*accuracy)),
        Cell::Pending => PENDING.into(),
        Cell::Blank => String::new(),
    }
}

fn push_missing(text: &mut String, report: &Report) {
    for (index, missing) in report.missing.iter().enumerate() {
        let gap = if index == 0 { "\n" } else { "" };
        let folders: Vec<String> = missing.folders.iter().map(|folder| code(folder)).collect();
        let _ = writeln!(
            text,
            "{gap}- {} is missing: no folder {}; from {}",
            plain(&missing.name),
            folders.join(" or "),
            plain(&missing.source)
        );
    }
}

fn push_candidates(text: &mut String, report: &Report) {
    for candidate in &report.candidates {
        let _ = write!(
            text,
            "- {}: {}, {} features of length {}",
            plain(&candidate.name),
            plain(&candidate.description),
            code(&candidate.feature),
            candidate.dim
        );
        if let Some(fingerprint) = &candidate.fingerprint {
            let _ = write!(text, ", fingerprint {}", code(fingerprint));
        }
        text.push('\n');
    }
}

fn push_data(text: &mut String, report: &Report, dataset: &DatasetReport) {
    let [train, test] = &dataset.fingerprints;
    let _ = writeln!(
        text,
        "- {}: {}, {}; {} of {} training images (fingerprint {}), {} of {} test images (fingerprint {})",
        plain(&dataset.name),
        code(&dataset.path),
        counted(dataset.classes.len(), "class"),
        count(dataset.train),
        count(dataset.train_available),
        code(train),
        count(dataset.test),
        count(dataset.test_available),
        code(test)
    );
    for remark in remarks(report, dataset) {
        let _ = writeln!(text, "  - {}", plain(&remark));
    }
    if let Some(pictures) = &dataset.pictures {
        let points = counted(pictures.points.len(), "test image");
        let _ = writeln!(text, "  - maps and pictures of {points}: see `report.html`");
    }
}

fn push_results(text: &mut String, report: &Report, footnotes: &Footnotes<'_>) {
    let titles = [
        "set",
        "probe",
        "candidate",
        "shots",
        "accuracy",
        "95 % interval",
        "over",
        "top-5",
        "draws",
        "train",
        "setting chosen",
        "protocol",
    ];
    let mut rows = vec![titles.map(str::to_owned).to_vec()];
    for dataset in &report.datasets {
        for result in &dataset.results {
            rows.push(vec![
                plain(&dataset.name),
                plain(&result.probe),
                plain(&result.candidate),
                result.shots.to_string(),
                number::with_deviation(result),
                number::interval(result),
                number::source(result.interval.over).into(),
                result.top5.map(percent).unwrap_or_default(),
                result.draws.len().to_string(),
                number::train(&result.draws),
                number::choices(&result.draws),
                footnotes.number(result).to_string(),
            ]);
        }
    }
    text.push_str("Accuracy, deviation over draws, interval and top-5 in %.\n\n");
    push_table(text, &rows, 3);
}

fn push_comparisons(text: &mut String, report: &Report) {
    let titles = ["set", "probe", "first", "second", "shots", "difference", "p", "test"];
    let mut rows = vec![titles.map(str::to_owned).to_vec()];
    for dataset in &report.datasets {
        for comparison in &dataset.comparisons {
            rows.push(vec![
                plain(&dataset.name),
                plain(&comparison.probe),
                plain(&comparison.first),
                plain(&comparison.second),
                comparison.shots.to_string(),
                number::points(comparison.difference),
                number::probability(comparison.p),
                number::test(comparison.test).into(),
            ]);
        }
    }
    if rows.len() > 1 {
        text.push_str("\n## Differences\n\n");
        text.push_str("Accuracy of the first less that of the second in points; ");
        text.push_str("p is not corrected for their number.\n\n");
        push_table(text, &rows, 4);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;

    #[test]
    fn masks_have_a_table_for_each_method() {
        let report = samples::quick();
        for text in [to_table(&report), to_markdown(&report)] {
            assert!(text.contains("\n**Video: attention**\n\n| masks of |    J |    F |  J&F |\n"), "{text}");
            assert!(
                text.contains("mean over 16 objects of 8 clips, 320 true masks; propagation:top5."),
                "{text}"
            );
        }
    }

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

    #[test]
    fn the_paper_and_missing_sets_stand_beside_our_numbers() {
        let text = to_table(&samples::few_shot());
        assert!(text.contains("| *I-JEPA + STOP, vit_huge, imagenet1k, frozen (transfer)* |"));
        assert!(text.contains(
            "- cars is missing: no folder `stanford_cars` or `cars`; from https://ai.stanford.edu/~"
        ));
        let (short, long) = (to_table(&samples::galaxies()), to_markdown(&samples::galaxies()));
        assert!(!short.contains("finetuned") && long.contains("finetuned"));
    }

    #[test]
    fn every_result_has_an_interval_a_protocol_and_a_command() {
        let report = samples::galaxies();
        let text = to_markdown(&report);
        for result in &report.datasets[0].results {
            assert!(text.contains(&number::interval(result)) && text.contains(&code(&result.protocol)));
        }
        assert!(text.contains(&report.command) && text.contains("| paired t |"));
    }

    #[test]
    fn rows_have_as_many_cells_as_their_header_whatever_names_hold() {
        for (name, report) in samples::all() {
            let text = to_markdown(&report);
            let cells = |line: &str| line.replace("\\|", "").matches('|').count();
            let mut columns = None;
            for line in text.lines() {
                if line.starts_with('|') {
                    assert_eq!(cells(line), *columns.get_or_insert(cells(line)), "{name}: {line}");
                } else {
                    columns = None;
                }
            }
        }
    }
}
