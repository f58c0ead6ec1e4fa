//! A report as tables for other programs: shares between 0 and 1 with all their digits.
//!
//! Names come from users' files, and a spreadsheet takes a cell that starts with `=`, `+`, `-` or `@` for a
//! formula. A name that starts with one of these, with a tab, a line break or an apostrophe gets an
//! apostrophe in front. Nothing is lost: in these files, an apostrophe at the start is never part of the name.

use csv::Writer;

use crate::{DatasetReport, Error, ProbeResult, Report, Result, Source};

/// The files' names and contents: `scores.csv` with a line per result, `classes.csv` with the accuracy within
/// every class, and `confusion.csv` with the test images per class and predicted class, summed over draws.
pub fn to_csv(report: &Report) -> Result<[(&'static str, Vec<u8>); 3]> {
    Ok([
        ("scores.csv", scores(report)?),
        ("classes.csv", classes(report)?),
        ("confusion.csv", confusion(report)?),
    ])
}

/// The columns that say which result a line belongs to.
const RESULT: [&str; 4] = ["dataset", "candidate", "probe", "shots"];

fn scores(report: &Report) -> Result<Vec<u8>> {
    let mut table = Table::new(&[
        "accuracy",
        "deviation",
        "low",
        "high",
        "interval_over",
        "top5",
        "draws",
        "train",
        "protocol",
    ])?;
    for (dataset, result) in results(report) {
        let draws = result.draws.len();
        // Only a mean fits into a cell; it is the number of every draw unless images ran out for some.
        let train: usize = result.draws.iter().map(|draw| draw.train).sum();
        let over = match result.interval.over {
            Source::Draws => "draws",
            Source::TestImages => "test_images",
        };
        table.line(
            dataset,
            result,
            &[
                result.accuracy.to_string(),
                optional(result.deviation),
                result.interval.low.to_string(),
                result.interval.high.to_string(),
                over.into(),
                optional(result.top5),
                draws.to_string(),
                optional((draws > 0).then(|| train as f64 / draws as f64)),
                name(&result.protocol),
            ],
        )?;
    }
    table.finish()
}

fn classes(report: &Report) -> Result<Vec<u8>> {
    let mut table = Table::new(&["class", "accuracy"])?;
    for (dataset, result) in results(report) {
        for (class, &accuracy) in result.class_accuracies.iter().enumerate() {
            table.line(dataset, result, &[class_name(dataset, class), optional(accuracy)])?;
        }
    }
    table.finish()
}

fn confusion(report: &Report) -> Result<Vec<u8>> {
    let mut table = Table::new(&["class", "predicted", "test_images"])?;
    for (dataset, result) in results(report) {
        for &[class, predicted, images] in &result.confusion {
            let classes = [class, predicted].map(|class| class_name(dataset, class));
            let [class, predicted] = classes;
            table.line(dataset, result, &[class, predicted, images.to_string()])?;
        }
    }
    table.finish()
}

fn results(report: &Report) -> impl Iterator<Item = (&DatasetReport, &ProbeResult)> {
    report.datasets.iter().flat_map(|dataset| dataset.results.iter().map(move |result| (dataset, result)))
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
        let start = [name(&dataset.name), name(&result.candidate), name(&result.probe), shots];
        self.0.write_record(start.iter().chain(cells)).map_err(Error::Csv)
    }

    fn finish(self) -> Result<Vec<u8>> {
        self.0.into_inner().map_err(|error| Error::Write(error.into_error()))
    }
}

fn optional(value: Option<f64>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

/// A name that no spreadsheet calculates.
fn name(name: &str) -> String {
    let mark = if name.starts_with(['=', '+', '-', '@', '\t', '\r', '\n', '\'']) { "'" } else { "" };
    format!("{mark}{name}")
}

/// A label without a name is its number.
fn class_name(dataset: &DatasetReport, class: usize) -> String {
    dataset.classes.get(class).map_or_else(|| class.to_string(), |class| name(class))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;

    fn read(content: &[u8]) -> Vec<Vec<String>> {
        let lines = csv::Reader::from_reader(content).into_records();
        lines.map(|line| line.unwrap().iter().map(str::to_owned).collect()).collect()
    }

    #[test]
    fn every_result_is_read_back_with_all_digits() {
        let report = samples::few_shot();
        let [(_, scores), (_, classes), (_, confusion)] = to_csv(&report).unwrap();
        let scores = read(&scores);
        assert_eq!(scores.len(), results(&report).count());
        for (line, (dataset, result)) in scores.iter().zip(results(&report)) {
            assert_eq!(line[..3], [&dataset.name, &result.candidate, &result.probe].map(Clone::clone));
            assert_eq!(line[3].parse(), Ok(result.shots));
            assert_eq!(line[4].parse(), Ok(result.accuracy));
            assert_eq!(line[5].parse().ok(), result.deviation);
            assert_eq!(
                [&line[10], &line[11]],
                [&result.draws.len().to_string(), &result.draws[0].train.to_string()]
            );
            assert_eq!(line[12], result.protocol);
        }
        let lines =
            |count: fn(&ProbeResult) -> usize| results(&report).map(|(_, it)| count(it)).sum::<usize>();
        assert_eq!(read(&classes).len(), lines(|result| result.class_accuracies.len()));
        assert_eq!(read(&confusion).len(), lines(|result| result.confusion.len()));
    }

    #[test]
    fn names_are_quoted_and_never_formulas() {
        let mut report = samples::hostile();
        report.datasets[0].classes[0] = "=HYPERLINK(\"x\"),\n1".into();
        let [_, (_, classes), _] = to_csv(&report).unwrap();
        assert_eq!(read(&classes)[0][4], "'=HYPERLINK(\"x\"),\n1");
        assert_eq!(
            ["-1", "@a", "+b", "\tc", "'d", "e=f"].map(name),
            ["'-1", "'@a", "'+b", "'\tc", "''d", "e=f"]
        );
    }
}
