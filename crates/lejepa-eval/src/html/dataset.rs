//! All that was measured on one labelled set.

use std::fmt::Write;

use super::table::{Align, Table, figure, words};
use super::text::Text;
use super::{classes, link, map, pictures};
use crate::footnotes::Footnotes;
use crate::number::{self, count, counted, percent, significant};
use crate::remarks::remarks;
use crate::{DatasetReport, Report};

/// More differences than this are folded away.
const OPEN_COMPARISONS: usize = 12;

pub(super) fn section(
    report: &Report,
    dataset: &DatasetReport,
    index: usize,
    footnotes: &Footnotes<'_>,
) -> String {
    let mut html =
        format!("<section id=\"set-{index}\">\n<h2>{}</h2>\n{}", Text(&dataset.name), facts(report, dataset));
    if dataset.results.is_empty() {
        html.push_str("<p>No result yet.</p>\n");
    } else {
        html.push_str(&results(dataset, footnotes));
    }
    if let Some(drawn) = &dataset.pictures {
        html.push_str(&map::section(dataset, drawn, index));
        html.push_str(&pictures::section(dataset, drawn));
    }
    if !dataset.comparisons.is_empty() {
        html.push_str(&comparisons(dataset));
    }
    html.push_str(&classes::sections(report, dataset));
    if !dataset.results.is_empty() {
        let _ = write!(html, "<details>\n<summary>Single draws</summary>\n{}</details>\n", draws(dataset));
    }
    html.push_str("</section>\n");
    html
}

fn facts(report: &Report, dataset: &DatasetReport) -> String {
    let [train, test] = &dataset.fingerprints;
    let mut html = format!(
        "<p class=\"facts\">{} · {} of {} · {} of {}<br>\n<code>{}</code> · fingerprints <code>{}</code> \
         (training), <code>{}</code> (test)</p>\n",
        counted(dataset.classes.len(), "class"),
        count(dataset.train),
        counted(dataset.train_available, "training image"),
        count(dataset.test),
        counted(dataset.test_available, "test image"),
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
        ("top‑5", Align::Right),
        ("draws", Align::Right),
        ("train", Align::Right),
        ("setting chosen", Align::Left),
        ("protocol", Align::Right),
    ];
    let caption = "All results. Accuracy, ± standard deviation over draws, interval and top-5 in %.";
    let mut table = Table::new(&format!("Results on {}", dataset.name), caption, &columns);
    for result in &dataset.results {
        table.row(&[
            words(&result.probe),
            figure(result.shots.to_string()),
            words(&result.candidate),
            figure(percent(result.accuracy)),
            figure(result.deviation.map(percent).unwrap_or_default()),
            figure(number::interval(result)),
            words(number::source(result.interval.over)),
            figure(result.top5.map(percent).unwrap_or_default()),
            figure(result.draws.len().to_string()),
            figure(number::train(&result.draws)),
            words(&number::choices(&result.draws)),
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
    for comparison in &dataset.comparisons {
        table.row(&[
            words(&comparison.probe),
            figure(comparison.shots.to_string()),
            words(&comparison.first),
            words(&comparison.second),
            figure(number::points(comparison.difference)),
            figure(number::probability(comparison.p)),
            words(number::test(comparison.test)),
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
        for draw in &result.draws {
            table.row(&[
                words(&result.probe),
                figure(result.shots.to_string()),
                words(&result.candidate),
                figure(draw.draw.to_string()),
                figure(count(draw.train)),
                figure(percent(draw.accuracy)),
                figure(percent(draw.top5)),
                figure(draw.choice.map(|choice| significant(choice.value)).unwrap_or_default()),
                figure(draw.choice.map(|choice| count(choice.held_out)).unwrap_or_default()),
                figure(format!("{:.1}", draw.seconds)),
            ]);
        }
    }
    table.finish()
}
