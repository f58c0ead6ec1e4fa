//! A report as Markdown.

mod isotropy;

use std::fmt::Write;

use lejepa_page::markdown::{code, code_block, plain, push_table};
use lejepa_page::number::{count, counted, percent, points, probability};
use lejepa_video::SegmentationReport;

use super::{Rendered, Renderer, single};
use crate::Result;
use crate::isotropy::DemonstrationReport;
use crate::isotropy::table::Detail;
use crate::report::footnotes::Footnotes;
use crate::report::number::PENDING;
use crate::report::remarks::{remarks, seen};
use crate::report::score_table::{Cell, Origin, PaperRow, Rank, ScoreTable, score_tables};
use crate::report::{
    CandidateInfo, Comparison, DatasetReport, Interval, MissingDataset, ProbeResult, Report, number,
};

/// `report.md`: all but what is told of single classes and draws.
#[derive(Debug, Clone, Copy)]
pub struct Markdown;

const FILE: &str = "report.md";

impl Renderer for Markdown {
    fn files(&self) -> &'static [&'static str] {
        &[FILE]
    }

    fn render(&self, report: &Report) -> Result<Vec<Rendered>> {
        Ok(single(FILE, to_markdown(report)))
    }
}

/// The whole report but what is told of single classes and draws: that is in the other files.
pub(super) fn to_markdown(report: &Report) -> String {
    let Report {
        format: _,
        version,
        suite,
        about,
        // By what the tables wait for.
        complete: _,
        command,
        seed,
        candidates,
        datasets,
        missing,
        videos,
        demonstration,
    } = report;
    let mut text = format!("# Evaluation: {}\n\n", plain(suite));
    if !about.is_empty() {
        let _ = writeln!(text, "{}\n", plain(about));
    }
    push_scores(&mut text, report, PaperRows::All);
    push_seen(&mut text, datasets);
    push_missing(&mut text, missing);
    push_videos(&mut text, videos);
    if demonstration.is_some() || datasets.iter().any(|dataset| !dataset.isotropy.is_empty()) {
        text.push_str("\n## Isotropy\n");
    }
    push_isotropy(&mut text, datasets, demonstration.as_ref(), Detail::More);
    if !candidates.is_empty() {
        text.push_str("\n## Candidates\n\n");
        candidates.iter().for_each(|candidate| push_candidate(&mut text, candidate));
    }
    if !datasets.is_empty() {
        text.push_str("\n## Data\n\n");
        datasets.iter().for_each(|dataset| push_data(&mut text, report, dataset));
    }
    let footnotes = Footnotes::new(report);
    if footnotes.iter().next().is_some() {
        text.push_str("\n## All results\n\n");
        push_results(&mut text, datasets, &footnotes);
        push_comparisons(&mut text, datasets);
        text.push_str("\n## Protocols\n\n");
        for (number, note) in footnotes.iter() {
            let _ = writeln!(text, "{number}. {}", code(note.protocol));
        }
    }
    let _ = write!(text, "\n## Command\n\n{}\n", code_block(command));
    let _ = writeln!(text, "lejepa {}, seed {seed}.", plain(version));
    text
}

/// Images of the sets that candidates were trained on.
pub(super) fn push_seen(text: &mut String, datasets: &[DatasetReport]) {
    let sentences: Vec<String> = datasets.iter().flat_map(seen).collect();
    if !sentences.is_empty() {
        text.push('\n');
    }
    sentences.iter().for_each(|sentence| text.push_str(&format!("- {}\n", plain(sentence))));
}

pub(super) fn push_isotropy(
    text: &mut String,
    datasets: &[DatasetReport],
    demonstration: Option<&DemonstrationReport>,
    most: Detail,
) {
    if let Some(demonstration) = demonstration {
        isotropy::push_simulation(text, demonstration, most);
    }
    for dataset in datasets {
        for candidate in &dataset.isotropy {
            isotropy::push_features(text, &dataset.name, candidate, most);
        }
    }
}

/// Whether encoders that the paper fine-tuned stand beside frozen ones.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum PaperRows {
    All,
    Frozen,
}

impl PaperRows {
    fn has(self, row: PaperRow<'_>) -> bool {
        self == Self::All || row.is_frozen()
    }
}

pub(super) fn push_scores(text: &mut String, report: &Report, paper: PaperRows) {
    let tables = score_tables(report);
    if !report.has_results() {
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
pub(super) fn push_videos(text: &mut String, videos: &[SegmentationReport]) {
    for video in videos {
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
        Cell::PerClass(result, Rank::Best) => format!("**{}**", percent(result.class_mean)),
        Cell::PerClass(result, Rank::Other) => percent(result.class_mean),
        Cell::Average(accuracy, Rank::Best) => format!("**{}**", percent(*accuracy)),
        Cell::Average(accuracy, Rank::Other) => percent(*accuracy),
        Cell::Published(accuracy) => format!("*{}*", percent(*accuracy)),
        Cell::Pending => PENDING.into(),
        Cell::Blank => String::new(),
    }
}

pub(super) fn push_missing(text: &mut String, missing: &[MissingDataset]) {
    for (index, MissingDataset { name, folders, source }) in missing.iter().enumerate() {
        let gap = if index == 0 { "\n" } else { "" };
        let folders: Vec<String> = folders.iter().map(|folder| code(folder)).collect();
        let _ = writeln!(
            text,
            "{gap}- {} is missing: no folder {}; from {}",
            plain(name),
            folders.join(" or "),
            plain(source)
        );
    }
}

fn push_candidate(text: &mut String, candidate: &CandidateInfo) {
    let CandidateInfo { name, description, feature, dim, fingerprint } = candidate;
    let _ =
        write!(text, "- {}: {}, {} features of length {dim}", plain(name), plain(description), code(feature));
    if let Some(fingerprint) = fingerprint {
        let _ = write!(text, ", fingerprint {}", code(fingerprint));
    }
    text.push('\n');
}

fn push_data(text: &mut String, report: &Report, dataset: &DatasetReport) {
    let DatasetReport {
        name,
        path,
        fingerprints: [train_fingerprint, test_fingerprint],
        train,
        train_available,
        test,
        test_available,
        splits: [train_split, test_split],
        // Columns of the tables.
        per_class: _,
        classes,
        // With those of the results among the remarks.
        notes: _,
        seen: _,
        // Tables of their own.
        results: _,
        comparisons: _,
        published: _,
        isotropy: _,
        pictures,
    } = dataset;
    let _ = writeln!(
        text,
        "- {}: {}, {}; {} of {} training images ({}, fingerprint {}), {} of {} test images ({}, fingerprint {})",
        plain(name),
        code(path),
        counted(classes.len(), "class"),
        count(*train),
        count(*train_available),
        plain(train_split),
        code(train_fingerprint),
        count(*test),
        count(*test_available),
        plain(test_split),
        code(test_fingerprint)
    );
    for remark in remarks(report, dataset) {
        let _ = writeln!(text, "  - {}", plain(&remark));
    }
    if let Some(pictures) = pictures {
        let points = counted(pictures.points.len(), "test image");
        let _ = writeln!(text, "  - maps and pictures of {points}: see `report.html`");
    }
}

fn push_results(text: &mut String, datasets: &[DatasetReport], footnotes: &Footnotes<'_>) {
    let titles = [
        "set",
        "probe",
        "candidate",
        "shots",
        "accuracy",
        "95 % interval",
        "over",
        "per class",
        "top-5",
        "draws",
        "train",
        "setting chosen",
        "protocol",
    ];
    let mut rows = vec![titles.map(str::to_owned).to_vec()];
    for dataset in datasets {
        for result in &dataset.results {
            let ProbeResult {
                candidate,
                probe,
                shots,
                // By the numbers of footnotes.
                protocol: _,
                // Both by `with_deviation`.
                accuracy: _,
                deviation: _,
                interval: Interval { low: _, high: _, over },
                class_mean,
                top5,
                // In HTML and CSV.
                class_accuracies: _,
                confusion: _,
                draws,
                // Among the remarks on the data.
                notes: _,
            } = result;
            rows.push(vec![
                plain(&dataset.name),
                plain(probe),
                plain(candidate),
                shots.to_string(),
                number::with_deviation(result),
                number::interval(result),
                number::source(*over).into(),
                percent(*class_mean),
                top5.map(percent).unwrap_or_default(),
                draws.len().to_string(),
                number::train(draws),
                number::choices(draws),
                footnotes.number(result).to_string(),
            ]);
        }
    }
    text.push_str("Accuracy, deviation over draws, interval, mean over classes and top-5 in %.\n\n");
    push_table(text, &rows, 3);
}

fn push_comparisons(text: &mut String, datasets: &[DatasetReport]) {
    let titles = ["set", "probe", "first", "second", "shots", "difference", "p", "test"];
    let mut rows = vec![titles.map(str::to_owned).to_vec()];
    for dataset in datasets {
        for Comparison { probe, shots, first, second, difference, p, test } in &dataset.comparisons {
            rows.push(vec![
                plain(&dataset.name),
                plain(probe),
                plain(first),
                plain(second),
                shots.to_string(),
                points(*difference),
                probability(*p),
                number::test(*test).into(),
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
    use super::super::terminal::to_table;
    use super::*;
    use crate::report::samples;

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
    fn the_isotropy_experiment_is_told_in_the_terminal_and_in_markdown() {
        let report = samples::isotropy();
        for text in [to_table(&report), to_markdown(&report)] {
            assert!(!text.contains("No result yet"), "{text}");
            for title in ["variance of OLS (lemma 2)", "squared bias of ridge (lemma 1)", "(theorem 1)"] {
                assert!(text.contains(&format!("**Simulated: {title}")) || text.contains(title), "{title}");
            }
            assert!(text.contains("**galaxies, ours, ViT-S/8: bias and variance by shape**"), "{text}");
            let found = &report.datasets[0].isotropy[0].found;
            for verdict in found.verdicts.iter().chain(&report.demonstration.as_ref().unwrap().verdicts) {
                assert!(text.contains(&lejepa_page::number::significant(verdict.anisotropic)), "{verdict:?}");
            }
            found.notes.iter().for_each(|note| assert!(text.contains(note), "{note}"));
        }
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
        assert!(text.contains(&report.command) && text.contains("| t, draws and images |"));
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
