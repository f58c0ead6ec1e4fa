//! Numbers of the paper: `eval/paper/*.csv`, one line per number.

use serde::Deserialize;

use crate::report::Published;
use crate::sets::Shots;
use crate::{Error, Result};

/// Tables whose numbers stand for a set and a number of shots.
const TABLES: [(&str, &str); 3] = [
    ("transfer", include_str!("../../../../eval/paper/transfer.csv")),
    ("galaxy10", include_str!("../../../../eval/paper/galaxy10.csv")),
    ("in_domain", include_str!("../../../../eval/paper/in_domain.csv")),
];

/// The columns that matter here.
#[derive(Deserialize)]
struct Line {
    method: String,
    arch: String,
    pretraining: String,
    protocol: String,
    dataset: String,
    shots: Shots,
    value: f64,
}

/// Names of the tables that a suite can name.
pub(crate) fn tables() -> impl Iterator<Item = &'static str> {
    TABLES.iter().map(|(name, _)| *name)
}

/// What a table says of frozen encoders on a set.
pub(crate) fn published(table: &str, dataset: &str) -> Result<Vec<Published>> {
    let Some((name, text)) = TABLES.iter().find(|(name, _)| *name == table) else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    for line in csv::Reader::from_reader(text.as_bytes()).deserialize() {
        let line: Line = line.map_err(Error::Csv)?;
        if line.dataset == dataset && line.protocol == "frozen" {
            found.push(Published {
                table: (*name).into(),
                method: line.method,
                arch: line.arch,
                pretraining: line.pretraining,
                protocol: line.protocol,
                shots: line.shots,
                accuracy: line.value / 100.,
            });
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_are_read_to_the_last_line() {
        let count = |table, dataset| published(table, dataset).unwrap().len();
        assert!(
            ["dtd", "aircraft", "cars", "cifar10", "cifar100", "flowers102", "food101", "pets"]
                .into_iter()
                .all(|dataset| count("transfer", dataset) == 15)
        );
        assert_eq!(count("galaxy10", "galaxy10"), 42);
        assert!(count("in_domain", "flowers102") > 0);
        assert_eq!(count("transfer", "mine") + count("none", "dtd"), 0);
    }

    #[test]
    fn a_number_is_the_printed_one() {
        let first = &published("transfer", "flowers102").unwrap()[0];
        assert_eq!((first.method.as_str(), first.shots), ("LeJEPA", Shots::Each(1)));
        assert_eq!(first.accuracy, 0.4853);
    }
}
