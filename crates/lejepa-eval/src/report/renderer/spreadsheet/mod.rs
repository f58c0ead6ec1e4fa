//! A report as tables for other programs: shares between 0 and 1 with all their digits.
//!
//! Names come from users' files, and a spreadsheet takes a cell that starts with `=`, `+`, `-` or `@` for a
//! formula. A name that starts with one of these, with a tab, a line break or an apostrophe gets an
//! apostrophe in front. Nothing is lost: in these files, an apostrophe at the start is never part of the name.

mod isotropy;

use csv::Writer;

use super::{Rendered, Renderer};
use crate::report::{DatasetReport, Interval, ProbeResult, Report, Source};
use crate::{Error, Result};

/// Tables of numbers, one line each.
#[derive(Debug, Clone, Copy)]
pub struct Spreadsheet;

impl Renderer for Spreadsheet {
    fn files(&self) -> &'static [&'static str] {
        &["scores.csv", "classes.csv", "confusion.csv", "isotropy.csv", "verdicts.csv"]
    }

    fn render(&self, report: &Report) -> Result<Vec<Rendered>> {
        let files = to_csv(report)?;
        Ok(files.into_iter().map(|(name, content)| Rendered { name, content }).collect())
    }
}

/// The files' names and contents: `scores.csv` with a line per result, `classes.csv` with the accuracy within
/// every class, and `confusion.csv` with the test images per class and predicted class, summed over draws;
/// `isotropy.csv` and `verdicts.csv` where bias and variance were measured.
fn to_csv(report: &Report) -> Result<Vec<(&'static str, Vec<u8>)>> {
    let Report {
        format: _,
        version: _,
        suite: _,
        about: _,
        complete: _,
        command: _,
        seed: _,
        // Names of lines.
        candidates: _,
        datasets,
        missing: _,
        // Masks have a report of their own.
        videos: _,
        demonstration,
    } = report;
    let mut files = vec![
        ("scores.csv", scores(datasets)?),
        ("classes.csv", classes(datasets)?),
        ("confusion.csv", confusion(datasets)?),
    ];
    files.extend(isotropy::files(datasets, demonstration.as_ref())?);
    Ok(files)
}

/// The columns that say which result a line belongs to.
const RESULT: [&str; 4] = ["dataset", "candidate", "probe", "shots"];

fn scores(datasets: &[DatasetReport]) -> Result<Vec<u8>> {
    let mut table = Table::new(&[
        "accuracy",
        "class_mean",
        "deviation",
        "low",
        "high",
        "interval_over",
        "top5",
        "draws",
        "train",
        "protocol",
    ])?;
    for (dataset, result) in results(datasets) {
        let ProbeResult {
            // The columns of every table.
            candidate: _,
            probe: _,
            shots: _,
            protocol,
            accuracy,
            deviation,
            interval: Interval { low, high, over },
            class_mean,
            top5,
            // Tables of their own.
            class_accuracies: _,
            confusion: _,
            draws,
            // For people.
            notes: _,
        } = result;
        // Only a mean fits into a cell; it is the number of every draw unless images ran out for some.
        let train: usize = draws.iter().map(|draw| draw.train).sum();
        let draws = draws.len();
        let over = match over {
            Source::DrawsAndTestImages => "draws_and_test_images",
            Source::TestImages => "test_images",
        };
        table.line(
            dataset,
            result,
            &[
                accuracy.to_string(),
                class_mean.to_string(),
                optional(*deviation),
                low.to_string(),
                high.to_string(),
                over.into(),
                optional(*top5),
                draws.to_string(),
                optional((draws > 0).then(|| train as f64 / draws as f64)),
                plain(protocol),
            ],
        )?;
    }
    table.finish()
}

fn classes(datasets: &[DatasetReport]) -> Result<Vec<u8>> {
    let mut table = Table::new(&["class", "accuracy"])?;
    for (dataset, result) in results(datasets) {
        for (class, &accuracy) in result.class_accuracies.iter().enumerate() {
            table.line(dataset, result, &[class_name(dataset, class), optional(accuracy)])?;
        }
    }
    table.finish()
}

fn confusion(datasets: &[DatasetReport]) -> Result<Vec<u8>> {
    let mut table = Table::new(&["class", "predicted", "test_images"])?;
    for (dataset, result) in results(datasets) {
        for &[class, predicted, images] in &result.confusion {
            let classes = [class, predicted].map(|class| class_name(dataset, class));
            let [class, predicted] = classes;
            table.line(dataset, result, &[class, predicted, images.to_string()])?;
        }
    }
    table.finish()
}

fn results(datasets: &[DatasetReport]) -> impl Iterator<Item = (&DatasetReport, &ProbeResult)> {
    datasets.iter().flat_map(|dataset| dataset.results.iter().map(move |result| (dataset, result)))
}

/// Lines that start with [`RESULT`].
struct Table(Writer<Vec<u8>>);

impl Table {
    fn new(columns: &[&str]) -> Result<Self> {
        let mut writer = Writer::from_writer(Vec::new());
        writer.write_record(RESULT.iter().chain(columns)).map_err(Error::Csv)?;
        Ok(Self(writer))
    }

    fn line(&mut self, dataset: &DatasetReport, result: &ProbeResult, cells: &[String]) -> Result<()> {
        let shots = result.shots.to_string();
        let start = [plain(&dataset.name), plain(&result.candidate), plain(&result.probe), shots];
        self.0.write_record(start.iter().chain(cells)).map_err(Error::Csv)
    }

    fn finish(self) -> Result<Vec<u8>> {
        self.0.into_inner().map_err(|error| Error::Write(error.into_error()))
    }
}

fn optional(value: Option<f64>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

/// A name that no spreadsheet calculates: what stands in every CSV file that is written.
pub(crate) fn plain(name: &str) -> String {
    let mark = if name.starts_with(['=', '+', '-', '@', '\t', '\r', '\n', '\'']) { "'" } else { "" };
    format!("{mark}{name}")
}

/// A label without a name is its number.
fn class_name(dataset: &DatasetReport, class: usize) -> String {
    dataset.classes.get(class).map_or_else(|| class.to_string(), |class| plain(class))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::samples;

    fn read(content: &[u8]) -> Vec<Vec<String>> {
        let lines = csv::Reader::from_reader(content).into_records();
        lines.map(|line| line.unwrap().iter().map(str::to_owned).collect()).collect()
    }

    #[test]
    fn every_result_is_read_back_with_all_digits() {
        let report = samples::few_shot();
        let [(_, scores), (_, classes), (_, confusion)] = &to_csv(&report).unwrap()[..] else { panic!() };
        let scores = read(scores);
        assert_eq!(scores.len(), results(&report.datasets).count());
        for (line, (dataset, result)) in scores.iter().zip(results(&report.datasets)) {
            assert_eq!(line[..3], [&dataset.name, &result.candidate, &result.probe].map(Clone::clone));
            assert_eq!(line[3].parse(), Ok(result.shots));
            assert_eq!(line[4].parse(), Ok(result.accuracy));
            assert_eq!(line[5].parse(), Ok(result.class_mean));
            assert_eq!(line[6].parse().ok(), result.deviation);
            assert_eq!(
                [&line[11], &line[12]],
                [&result.draws.len().to_string(), &result.draws[0].train.to_string()]
            );
            assert_eq!(line[13], result.protocol);
        }
        let lines = |count: fn(&ProbeResult) -> usize| {
            results(&report.datasets).map(|(_, it)| count(it)).sum::<usize>()
        };
        assert_eq!(read(classes).len(), lines(|result| result.class_accuracies.len()));
        assert_eq!(read(confusion).len(), lines(|result| result.confusion.len()));
    }

    #[test]
    fn bias_and_variance_have_tables_of_their_own() {
        let report = samples::isotropy();
        let files = to_csv(&report).unwrap();
        assert_eq!(
            files.iter().map(|(name, _)| *name).collect::<Vec<_>>()[3..],
            ["isotropy.csv", "verdicts.csv"]
        );
        let numbers = read(&files[3].1);
        let point = &report.demonstration.as_ref().unwrap().linear[0];
        let first = [point.coefficient_variance, point.standard_error, point.expected_coefficient_variance];
        assert_eq!(numbers[0][7..], first.map(|number| number.to_string()));
        let measured = |line: &&Vec<String>| line[0] == "galaxies" && line[6] == "variance";
        let variants = &report.datasets[0].isotropy[0].found.variants;
        let expected: usize = variants.iter().map(|variant| variant.measurements.len()).sum();
        assert_eq!(numbers.iter().filter(measured).count(), expected);
        let verdicts = report.demonstration.unwrap().verdicts.len()
            + report.datasets[0].isotropy[0].found.verdicts.len();
        assert_eq!(read(&files[4].1).len(), verdicts);
        assert_eq!(to_csv(&samples::quick()).unwrap().len(), 3, "no empty files");
    }

    #[test]
    fn names_are_quoted_and_never_formulas() {
        let mut report = samples::hostile();
        report.datasets[0].classes[0] = "=HYPERLINK(\"x\"),\n1".into();
        let classes = &to_csv(&report).unwrap()[1].1;
        assert_eq!(read(classes)[0][4], "'=HYPERLINK(\"x\"),\n1");
        assert_eq!(
            ["-1", "@a", "+b", "\tc", "'d", "e=f"].map(plain),
            ["'-1", "'@a", "'+b", "'\tc", "''d", "e=f"]
        );
    }
}
