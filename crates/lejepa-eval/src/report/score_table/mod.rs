//! The main tables of a report: candidates and the paper's encoders in rows.

mod layout;
mod paper;

pub(crate) use layout::{all_shots, probes, score_tables};
pub(crate) use paper::PaperRow;

use lejepa_page::number::percent;

use crate::report::{CandidateInfo, DatasetReport, ProbeResult, Report};
use crate::sets::Shots;

/// Candidates and the paper's encoders against sets, shots or probes.
pub(crate) struct ScoreTable<'a> {
    /// What all its numbers have in common.
    pub(crate) title: String,
    pub(crate) columns: Vec<Column<'a>>,
    /// The candidates, then the paper's.
    pub(crate) rows: Vec<Row<'a>>,
}

pub(crate) struct Column<'a> {
    pub(crate) title: String,
    of: Kind<'a>,
}

#[derive(Clone, Copy)]
enum Kind<'a> {
    /// What a probe found, and the paper's number beside it.
    Probe(&'a DatasetReport, &'a str, Shots),
    /// The mean over classes of the same, for sets that are usually scored so.
    PerClass(&'a DatasetReport, &'a str, Shots),
    /// The paper's number where probes are columns: the paper has one for all of them.
    Paper(&'a DatasetReport, Shots),
    /// The mean over the columns before.
    Average,
}

pub(crate) struct Row<'a> {
    pub(crate) origin: Origin<'a>,
    /// One per column.
    pub(crate) cells: Vec<Cell<'a>>,
}

#[derive(Clone, Copy)]
pub(crate) enum Origin<'a> {
    Candidate(&'a CandidateInfo),
    Paper(PaperRow<'a>),
}

#[derive(Clone, Copy)]
pub(crate) enum Cell<'a> {
    Measured(&'a ProbeResult, Rank),
    /// The mean over classes.
    PerClass(&'a ProbeResult, Rank),
    Average(f64, Rank),
    Published(f64),
    /// Not measured yet.
    Pending,
    /// Nothing belongs here.
    Blank,
}

/// A candidate among those of its column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rank {
    /// None is better by what is printed, and there are others.
    Best,
    Other,
}

impl<'a> ScoreTable<'a> {
    fn new(report: &'a Report, title: String, columns: Vec<Column<'a>>) -> Self {
        let mut rows: Vec<Row<'a>> = Vec::new();
        for candidate in &report.candidates {
            let find = |dataset: &'a DatasetReport, probe: &str, shots| {
                let mut results = dataset.results.iter();
                results.find(|it| it.candidate == candidate.name && it.probe == probe && it.shots == shots)
            };
            // Not every candidate has the features that every probe looks at.
            let absent = if report.complete { Cell::Blank } else { Cell::Pending };
            let cell =
                |column: &Column<'a>| match column.of {
                    Kind::Probe(dataset, probe, shots) => find(dataset, probe, shots)
                        .map_or(absent, |result| Cell::Measured(result, Rank::Other)),
                    Kind::PerClass(dataset, probe, shots) => find(dataset, probe, shots)
                        .map_or(absent, |result| Cell::PerClass(result, Rank::Other)),
                    Kind::Paper(..) | Kind::Average => Cell::Blank,
                };
            let cells = columns.iter().map(cell).collect();
            rows.push(Row { origin: Origin::Candidate(candidate), cells });
        }
        // Where probes are columns, the paper's numbers have one of their own.
        let apart = columns.iter().any(|column| matches!(column.of, Kind::Paper(..)));
        for row in paper_rows(&columns) {
            let cell = |column: &Column<'a>| match column.of {
                Kind::Probe(dataset, _, shots) if !apart => paper_cell(dataset, shots, row),
                Kind::Paper(dataset, shots) => paper_cell(dataset, shots, row),
                Kind::Probe(..) | Kind::PerClass(..) | Kind::Average => Cell::Blank,
            };
            rows.push(Row { origin: Origin::Paper(row), cells: columns.iter().map(cell).collect() });
        }
        let mut table = Self { title, columns, rows };
        if table.has_average() {
            table.rows.iter_mut().for_each(|row| row.average(report.complete));
        }
        for column in 0..table.columns.len() {
            rank(&mut table.rows, column);
        }
        table
    }

    /// Whether a candidate has not been measured yet.
    pub(crate) fn has_pending(&self) -> bool {
        self.rows.iter().flat_map(|row| &row.cells).any(|cell| matches!(cell, Cell::Pending))
    }

    /// Whether its last column is an average.
    pub(crate) fn has_average(&self) -> bool {
        self.columns.last().is_some_and(|column| matches!(column.of, Kind::Average))
    }

    /// The measured cells.
    pub(crate) fn results(&self) -> impl Iterator<Item = &'a ProbeResult> {
        self.rows.iter().flat_map(|row| &row.cells).filter_map(Cell::result)
    }

    /// How its numbers are to be read: `accuracy in %, mean ± standard deviation over 3 draws`.
    pub(crate) fn reading(&self) -> String {
        let draws = || self.results().filter(|it| it.deviation.is_some()).map(|it| it.draws.len());
        match (draws().min(), draws().max()) {
            (Some(low), Some(high)) if low < high => {
                format!("accuracy in %, mean ± standard deviation over {low} to {high} draws")
            }
            (Some(draws), _) => format!("accuracy in %, mean ± standard deviation over {draws} draws"),
            (None, _) => "accuracy in %".into(),
        }
    }
}

impl Row<'_> {
    /// Puts the mean of the cells before the last into the last, if none of them is missing.
    fn average(&mut self, complete: bool) {
        let Some((last, cells)) = self.cells.split_last_mut() else { return };
        // The mean over classes stands beside the accuracy of the same set.
        let accuracies: Option<Vec<f64>> =
            cells.iter().filter(|cell| !matches!(cell, Cell::PerClass(..))).map(Cell::accuracy).collect();
        *last = match (&self.origin, accuracies) {
            (_, Some(accuracies)) if !accuracies.is_empty() => {
                let mean = accuracies.iter().sum::<f64>() / accuracies.len() as f64;
                match self.origin {
                    Origin::Candidate(_) => Cell::Average(mean, Rank::Other),
                    Origin::Paper(_) => Cell::Published(mean),
                }
            }
            (Origin::Candidate(_), _) if !complete => Cell::Pending,
            (Origin::Candidate(_) | Origin::Paper(_), _) => Cell::Blank,
        };
    }
}

impl<'a> Cell<'a> {
    pub(crate) fn result(&self) -> Option<&'a ProbeResult> {
        match self {
            Self::Measured(result, _) | Self::PerClass(result, _) => Some(result),
            Self::Average(..) | Self::Published(_) | Self::Pending | Self::Blank => None,
        }
    }

    fn accuracy(&self) -> Option<f64> {
        match self {
            Self::Measured(result, _) => Some(result.accuracy),
            Self::PerClass(result, _) => Some(result.class_mean),
            Self::Average(accuracy, _) | Self::Published(accuracy) => Some(*accuracy),
            Self::Pending | Self::Blank => None,
        }
    }
}

/// The encoders of the paper that have any number in these columns: frozen ones first.
fn paper_rows<'a>(columns: &[Column<'a>]) -> Vec<PaperRow<'a>> {
    let mut rows = Vec::new();
    for column in columns {
        let (Kind::Probe(dataset, _, shots) | Kind::Paper(dataset, shots)) = column.of else { continue };
        for (row, published) in PaperRow::of(dataset) {
            if published.shots == shots && !rows.contains(&row) {
                rows.push(row);
            }
        }
    }
    rows.sort_by_key(|row| (!row.is_frozen(), row.protocol, row.table));
    rows
}

fn paper_cell<'a>(dataset: &'a DatasetReport, shots: Shots, row: PaperRow<'a>) -> Cell<'a> {
    let mut numbers = PaperRow::of(dataset).into_iter();
    let number = numbers.find(|(other, published)| *other == row && published.shots == shots);
    number.map_or(Cell::Blank, |(_, published)| Cell::Published(published.accuracy))
}

/// Marks the best candidates of a column by what is printed: equal digits are equal.
fn rank(rows: &mut [Row<'_>], column: usize) {
    let ours = |row: &Row<'_>| match row.cells.get(column) {
        Some(cell @ (Cell::Measured(..) | Cell::PerClass(..) | Cell::Average(..))) => cell.accuracy(),
        _ => None,
    };
    let accuracies: Vec<f64> = rows.iter().filter_map(ours).collect();
    let Some(best) = accuracies.iter().copied().max_by(f64::total_cmp) else { return };
    if accuracies.len() < 2 {
        return;
    }
    for cell in rows.iter_mut().filter_map(|row| row.cells.get_mut(column)) {
        let accuracy = cell.accuracy();
        if let (Cell::Measured(_, rank) | Cell::PerClass(_, rank) | Cell::Average(_, rank), Some(accuracy)) =
            (cell, accuracy)
            && percent(accuracy) == percent(best)
        {
            *rank = Rank::Best;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::samples;

    #[test]
    fn an_average_waits_for_all_sets() {
        let report = samples::few_shot();
        let tables = score_tables(&report);
        let averages = |table: usize| tables[table].rows[..3].iter().map(|row| row.cells.last().unwrap());
        assert!(averages(0).all(|cell| matches!(cell, Cell::Average(..))));
        assert_eq!(averages(2).filter(|cell| matches!(cell, Cell::Pending)).count(), 2);
        let first = &tables[0].rows[0].cells;
        let mean = first[..6].iter().filter_map(Cell::accuracy).sum::<f64>() / 6.;
        assert_eq!(first[6].accuracy(), Some(mean));
    }

    #[test]
    fn equal_digits_are_equally_good_and_one_candidate_is_not_the_best() {
        let mut report = samples::quick();
        let results = &mut report.datasets[0].results;
        (results[0].accuracy, results[1].accuracy, results[2].accuracy) = (0.90001, 0.90002, 0.8);
        let best = |report: &Report| -> Vec<bool> {
            let [table] = &score_tables(report)[..] else { return Vec::new() };
            table.rows.iter().map(|row| matches!(row.cells[0], Cell::Measured(_, Rank::Best))).collect()
        };
        assert_eq!(best(&report), [true, true, false]);
        report.datasets[0].results.truncate(1);
        assert_eq!(best(&report), [false; 3]);
    }

    #[test]
    fn what_a_candidate_lacks_is_waited_for_only_while_the_evaluation_runs() {
        let mut report = samples::probes();
        report.datasets[0].results.retain(|it| it.candidate != "raw pixels" || it.probe != "ridge");
        assert!(score_tables(&report)[0].has_pending());
        report.complete = true;
        assert!(!score_tables(&report)[0].has_pending());
    }

    #[test]
    fn sets_that_are_scored_by_classes_have_a_column_more_that_no_average_counts() {
        let mut report = samples::few_shot();
        let average = |report: &Report| score_tables(report)[0].rows[0].cells.last().unwrap().accuracy();
        let before = average(&report);
        report.datasets[1].per_class = true;
        let tables = score_tables(&report);
        let titles: Vec<&str> = tables[0].columns.iter().map(|column| column.title.as_str()).collect();
        assert_eq!(titles[..4], ["dtd", "aircraft", "aircraft, per class", "cifar10"]);
        let cell = &tables[0].rows[0].cells[2];
        assert_eq!(cell.accuracy(), Some(report.datasets[1].results[0].class_mean));
        assert_eq!(average(&report), before);
    }

    #[test]
    fn frozen_encoders_of_the_paper_come_first_and_only_where_shots_match() {
        let mut report = samples::galaxies();
        let protocols = |report: &Report| -> Vec<String> {
            let tables = score_tables(report);
            let rows = tables.iter().flat_map(|table| &table.rows).filter_map(|row| match row.origin {
                Origin::Paper(row) => Some(row.protocol.to_owned()),
                Origin::Candidate(_) => None,
            });
            rows.collect()
        };
        assert_eq!(protocols(&report), [vec!["frozen"; 7], vec!["finetuned"; 6]].concat());
        report.datasets[0].results.retain(|result| result.shots == Shots::Each(5));
        assert_eq!(protocols(&report).len(), 12);
        for published in &mut report.datasets[0].published {
            published.shots = Shots::Each(6);
        }
        assert!(protocols(&report).is_empty());
    }
}
