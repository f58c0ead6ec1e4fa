//! Which tables a report has, and what their columns are.
//!
//! Several sets give a table per probe and number of shots with the sets as columns and their average, as the
//! paper's transfer table. One set gives a table per probe with the shots as columns, or a single table with
//! the probes as columns if all have the same shots.

use super::{Column, Kind, ScoreTable};
use crate::report::number::shots;
use crate::report::{DatasetReport, ProbeResult, Report};
use crate::sets::Shots;

/// The tables of a report. None without results.
pub(crate) fn score_tables<'a>(report: &'a Report) -> Vec<ScoreTable<'a>> {
    let mut tables = Vec::new();
    match &report.datasets[..] {
        [dataset] if all_shots(report, None).len() == 1 => {
            for number in all_shots(report, None) {
                let column = |probe| columns(probe, dataset, probe, number);
                let mut columns: Vec<_> = probes(report).into_iter().flat_map(column).collect();
                if dataset.published.iter().any(|published| published.shots == number) {
                    columns.push(Column { title: "paper".into(), of: Kind::Paper(dataset, number) });
                }
                tables.push(ScoreTable::new(report, format!("{}, {}", dataset.name, shots(number)), columns));
            }
        }
        [dataset] => {
            for probe in probes(report) {
                let column = |shots: Shots| columns(&shots.to_string(), dataset, probe, shots);
                let columns = all_shots(report, Some(probe)).into_iter().flat_map(column).collect();
                let title = format!("{}, {probe}, by samples per class", dataset.name);
                tables.push(ScoreTable::new(report, title, columns));
            }
        }
        datasets => {
            for probe in probes(report) {
                for number in all_shots(report, Some(probe)) {
                    let column = |dataset: &'a DatasetReport| columns(&dataset.name, dataset, probe, number);
                    let mut columns: Vec<_> = datasets.iter().flat_map(column).collect();
                    columns.push(Column { title: "average".into(), of: Kind::Average });
                    tables.push(ScoreTable::new(report, format!("{probe}, {}", shots(number)), columns));
                }
            }
        }
    }
    tables
}

/// A probe's accuracy, and the mean over classes beside it for sets that are usually scored so.
fn columns<'a>(title: &str, dataset: &'a DatasetReport, probe: &'a str, shots: Shots) -> Vec<Column<'a>> {
    let mut columns = vec![Column { title: title.into(), of: Kind::Probe(dataset, probe, shots) }];
    if dataset.per_class {
        let title = format!("{title}, per class");
        columns.push(Column { title, of: Kind::PerClass(dataset, probe, shots) });
    }
    columns
}

/// The probes of a report in the order of measuring.
pub(crate) fn probes(report: &Report) -> Vec<&str> {
    let mut probes = Vec::new();
    for result in report.datasets.iter().flat_map(|dataset| &dataset.results) {
        if !probes.contains(&result.probe.as_str()) {
            probes.push(&result.probe);
        }
    }
    probes
}

/// The shots of a probe, or of all, rising.
pub(crate) fn all_shots(report: &Report, probe: Option<&str>) -> Vec<Shots> {
    let results = report.datasets.iter().flat_map(|dataset| &dataset.results);
    let of_probe = |result: &&ProbeResult| probe.is_none_or(|probe| result.probe == probe);
    let mut shots: Vec<_> = results.filter(of_probe).map(|result| result.shots).collect();
    shots.sort_unstable();
    shots.dedup();
    shots
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::samples;

    fn titles(report: &Report) -> Vec<(String, Vec<String>)> {
        let columns =
            |table: &ScoreTable<'_>| table.columns.iter().map(|column| column.title.clone()).collect();
        score_tables(report).iter().map(|table| (table.title.clone(), columns(table))).collect()
    }

    #[test]
    fn sets_shots_or_probes_are_columns() {
        let table =
            |title: &str, columns: &str| (title.to_owned(), columns.split('|').map(str::to_owned).collect());
        assert_eq!(titles(&samples::quick()), [table("imagenette, all samples", "k-NN (k = 20)|ridge")]);
        assert_eq!(
            titles(&samples::galaxies()),
            [table("galaxy10, logistic, by samples per class", "1|2|5|10|100|1000|all")]
        );
        let sets = "dtd|aircraft|cifar10|cifar100|flowers102|pets|average";
        let shots = ["1 sample per class", "10 samples per class", "all samples"];
        assert_eq!(
            titles(&samples::few_shot()),
            shots.map(|shots| table(&format!("logistic, {shots}"), sets))
        );
        assert_eq!(titles(&samples::probes())[0].1.last().unwrap(), "paper");
    }
}
