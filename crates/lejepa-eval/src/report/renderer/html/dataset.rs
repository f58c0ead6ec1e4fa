//! All that was measured on one labelled set.

use std::fmt::Write;

use lejepa_page::html::{Align, Table, Text, figure, words};
use lejepa_page::number::{count, counted, percent, points, probability, significant};

use super::{classes, isotropy, link, map, pictures};
use crate::report::footnotes::Footnotes;
use crate::report::remarks::remarks;
use crate::report::{Comparison, DatasetReport, DrawResult, Interval, ProbeResult, Report, number};

/// More differences than this are folded away.
const OPEN_COMPARISONS: usize = 12;

pub(super) fn section(
    report: &Report,
    dataset: &DatasetReport,
    index: usize,
    footnotes: &Footnotes<'_>,
) -> String {
    let DatasetReport {
        name,
        // Facts.
        path: _,
        fingerprints: _,
        train: _,
        train_available: _,
        test: _,
        test_available: _,
        splits: _,
        // Columns of the main tables.
        per_class: _,
        classes: _,
        notes: _,
        seen: _,
        results: found,
        comparisons: differences,
        // In the main tables.
        published: _,
        isotropy: shaped,
        pictures: drawn,
    } = dataset;
    let mut html =
        format!("<section id=\"set-{index}\">\n<h2>{}</h2>\n{}", Text(name), facts(report, dataset));
    if found.is_empty() && shaped.is_empty() {
        html.push_str("<p>No result yet.</p>\n");
    }
    if !found.is_empty() {
        html.push_str(&results(dataset, footnotes));
    }
    if let Some(drawn) = drawn {
        html.push_str(&map::section(dataset, drawn, index));
        html.push_str(&pictures::section(dataset, drawn));
    }
    shaped.iter().for_each(|candidate| html.push_str(&isotropy::features(candidate)));
    if !differences.is_empty() {
        html.push_str(&comparisons(dataset));
    }
    html.push_str(&classes::sections(report, dataset));
    if !found.is_empty() {
        let _ = write!(html, "<details>\n<summary>Single draws</summary>\n{}</details>\n", draws(dataset));
    }
    html.push_str("</section>\n");
    html
}

fn facts(report: &Report, dataset: &DatasetReport) -> String {
    let [train, test] = &dataset.fingerprints;
    let mut html = format!(
        "<p class=\"facts\">{} · {} of {} ({}) · {} of {} ({})<br>\n<code>{}</code> · fingerprints <code>{}</code> \
         (training), <code>{}</code> (test)</p>\n",
        counted(dataset.classes.len(), "class"),
        count(dataset.train),
        counted(dataset.train_available, "training image"),
        Text(&dataset.splits[0]),
        count(dataset.test),
        counted(dataset.test_available, "test image"),
        Text(&dataset.splits[1]),
        Text(&dataset.path),
        Text(train),
        Text(test)
    );
    let notes: String =
        remarks(report, dataset).iter().map(|remark| format!("<li>{}</li>\n", Text(remark))).collect();
    if !notes.is_empty() {
        let _ = write!(html, "<ul class=\"notes\">\n{notes}</ul>\n");
    }
    html
}

fn results(dataset: &DatasetReport, footnotes: &Footnotes<'_>) -> String {
    let columns = [
        ("probe", Align::Left),
        ("shots", Align::Right),
        ("candidate", Align::Left),
        ("accuracy", Align::Right),
        ("±", Align::Right),
        ("95 % interval", Align::Right),
        ("over", Align::Left),
        ("per class", Align::Right),
        ("top‑5", Align::Right),
        ("draws", Align::Right),
        ("train", Align::Right),
        ("setting chosen", Align::Left),
        ("protocol", Align::Right),
    ];
    let caption =
        "All results. Accuracy, ± standard deviation over draws, interval, mean over classes and top-5 in %.";
    let mut table = Table::new(&format!("Results on {}", dataset.name), caption, &columns);
    for result in &dataset.results {
        let ProbeResult {
            candidate,
            probe,
            shots,
            // By the number of its footnote.
            protocol: _,
            accuracy,
            deviation,
            interval: Interval { low: _, high: _, over },
            class_mean,
            top5,
            // Among classes.
            class_accuracies: _,
            confusion: _,
            draws,
            // Among facts.
            notes: _,
        } = result;
        table.row(&[
            words(probe),
            figure(shots.to_string()),
            words(candidate),
            figure(percent(*accuracy)),
            figure(deviation.map(percent).unwrap_or_default()),
            figure(number::interval(result)),
            words(number::source(*over)),
            figure(percent(*class_mean)),
            figure(top5.map(percent).unwrap_or_default()),
            figure(draws.len().to_string()),
            figure(number::train(draws)),
            words(&number::choices(draws)),
            (link(footnotes.number(result)), Align::Right),
        ]);
    }
    table.finish()
}

fn comparisons(dataset: &DatasetReport) -> String {
    let columns = [
        ("probe", Align::Left),
        ("shots", Align::Right),
        ("first", Align::Left),
        ("second", Align::Left),
        ("difference", Align::Right),
        ("p", Align::Right),
        ("test", Align::Left),
    ];
    let caption = "Accuracy of the first less that of the second, in points. \
                   p is not corrected for the number of differences.";
    let mut table = Table::new(&format!("Differences on {}", dataset.name), caption, &columns);
    for Comparison { probe, shots, first, second, difference, p, test } in &dataset.comparisons {
        table.row(&[
            words(probe),
            figure(shots.to_string()),
            words(first),
            words(second),
            figure(points(*difference)),
            figure(probability(*p)),
            words(number::test(*test)),
        ]);
    }
    let open = if dataset.comparisons.len() <= OPEN_COMPARISONS { " open" } else { "" };
    format!(
        "<details{open}>\n<summary>Differences between candidates</summary>\n{}</details>\n",
        table.finish()
    )
}

fn draws(dataset: &DatasetReport) -> String {
    let columns = [
        ("probe", Align::Left),
        ("shots", Align::Right),
        ("candidate", Align::Left),
        ("draw", Align::Right),
        ("train", Align::Right),
        ("accuracy", Align::Right),
        ("top‑5", Align::Right),
        ("setting chosen", Align::Right),
        ("held out", Align::Right),
        ("seconds", Align::Right),
    ];
    let caption =
        "Unless all were taken, the samples of a draw are listed in <code>draws/</code> beside the report.";
    let mut table = Table::new(&format!("Single draws of {}", dataset.name), caption, &columns);
    for result in &dataset.results {
        for DrawResult { draw, train, accuracy, top5, choice, seconds } in &result.draws {
            table.row(&[
                words(&result.probe),
                figure(result.shots.to_string()),
                words(&result.candidate),
                figure(draw.to_string()),
                figure(count(*train)),
                figure(percent(*accuracy)),
                figure(percent(*top5)),
                figure(choice.map(|choice| significant(choice.value)).unwrap_or_default()),
                figure(choice.map(|choice| count(choice.held_out)).unwrap_or_default()),
                figure(format!("{seconds:.1}")),
            ]);
        }
    }
    table.finish()
}
