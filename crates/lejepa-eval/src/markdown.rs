//! A report as Markdown.

use std::fmt::Write;

use crate::Report;

/// The whole report: the table, protocols, data and command.
pub fn to_markdown(report: &Report) -> String {
    let mut text = format!("# Evaluation: {}\n\n{}", report.suite, to_table(report));
    text.push_str("\n## Protocols\n\n");
    for features in &report.features {
        for score in &features.scores {
            let (title, protocol, seconds) = (&score.title, &score.protocol, score.seconds);
            let _ = writeln!(text, "- {}, {title}: `{protocol}`, {seconds:.1} s", features.name);
        }
    }
    let data = &report.data;
    let _ = write!(
        text,
        "\n## Data\n\n`{}`, fingerprints `{}` (training) and `{}` (test).\n\n## Command\n\n```sh\n{}\n```\n",
        data.path, data.fingerprints[0], data.fingerprints[1], report.command
    );
    text
}

/// A table of features against probes, and a sentence about the images.
pub fn to_table(report: &Report) -> String {
    let mut text = String::new();
    let titles: Vec<&str> = report
        .features
        .iter()
        .max_by_key(|features| features.scores.len())
        .map(|features| features.scores.iter().map(|score| score.title.as_str()).collect())
        .unwrap_or_default();
    let mut rows =
        vec![["features", "dim"].into_iter().chain(titles.iter().copied()).map(str::to_owned).collect()];
    for features in &report.features {
        let score = |index: usize| match features.scores.get(index) {
            Some(score) => format!("{:.1} %", 100. * score.accuracy),
            None => "…".into(),
        };
        let scores = (0..titles.len()).map(score);
        rows.push([features.name.clone(), features.dim.to_string()].into_iter().chain(scores).collect());
    }
    push_table(&mut text, &rows);
    let data = &report.data;
    let _ = write!(
        text,
        "\nAccuracy on {} test images of {} classes, {} training images ({} available), seed {}.\n",
        data.test, data.classes, data.train, data.train_available, report.seed
    );
    text
}

/// Columns are padded so that the table also reads well in a terminal: names left, numbers right.
fn push_table(text: &mut String, rows: &[Vec<String>]) {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width =
        |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0).max(3)).collect();
    for (index, row) in rows.iter().enumerate() {
        for (column, (cell, &width)) in row.iter().zip(&widths).enumerate() {
            let _ = if column == 0 {
                write!(text, "| {cell:<width$} ")
            } else {
                write!(text, "| {cell:>width$} ")
            };
        }
        text.push_str("|\n");
        if index == 0 {
            for (column, &width) in widths.iter().enumerate() {
                let (line, end) = ("-".repeat(width + 1), if column == 0 { "-" } else { ":" });
                let _ = write!(text, "|{line}{end}");
            }
            text.push_str("|\n");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DataInfo, FeatureScores, Score};

    #[test]
    fn a_report_that_is_still_running_has_a_table_with_gaps() {
        let score = |title: &str, accuracy| Score {
            title: title.into(),
            protocol: "knn:k20:T0.07:cls:l2".into(),
            accuracy,
            seconds: 0.25,
        };
        let features =
            |name: &str, scores| FeatureScores { name: name.into(), dim: 128, seconds: 1., scores };
        let report = Report {
            format: Report::FORMAT,
            suite: "quick".into(),
            command: "lejepa eval encoder.onnx".into(),
            data: DataInfo {
                path: "data".into(),
                fingerprints: ["aa".into(), "bb".into()],
                train: 10,
                train_available: 20,
                test: 5,
                test_available: 5,
                classes: 3,
            },
            seed: 0,
            features: vec![
                features("trained encoder", vec![score("k-NN (k = 20)", 0.8125), score("ridge", 0.79)]),
                features("raw pixels", vec![score("k-NN (k = 20)", 0.5)]),
            ],
        };
        let text = to_markdown(&report);
        let table: Vec<&str> = text.lines().filter(|line| line.starts_with('|')).collect();
        assert_eq!(
            table,
            [
                "| features        | dim | k-NN (k = 20) |  ridge |",
                "|-----------------|----:|--------------:|-------:|",
                "| trained encoder | 128 |        81.2 % | 79.0 % |",
                "| raw pixels      | 128 |        50.0 % |      … |",
            ]
        );
        assert!(text.contains("seed 0") && text.contains("knn:k20:T0.07:cls:l2"));
    }
}
