//! The main tables.

use lejepa_page::html::{Align, Table, Text, title_of_column};
use lejepa_page::number::percent;

use super::link;
use crate::report::footnotes::Footnotes;
use crate::report::number;
use crate::report::number::PENDING;
use crate::report::score_table::{Cell, Origin, PaperRow, Rank, Row, ScoreTable};

/// A main table with the paper's rows in groups of their own.
pub(super) fn table(scores: &ScoreTable<'_>, footnotes: &Footnotes<'_>) -> String {
    let titles = scores.columns.iter().map(|column| (title_of_column(&column.title), Align::Right));
    let columns: Vec<_> = [("candidate".to_owned(), Align::Left)].into_iter().chain(titles).collect();
    let caption = format!("<strong>{}</strong>: {}", Text(&scores.title), scores.reading());
    let mut table = Table::with_headers(&scores.title, &caption, &columns);
    let deviates: Vec<bool> = (0..scores.columns.len()).map(|column| deviates(scores, column)).collect();
    let mut group = None;
    for row in &scores.rows {
        if let Origin::Paper(PaperRow { table: source, protocol, .. }) = row.origin
            && group.replace((source, protocol)) != Some((source, protocol))
        {
            table.group("paper", &format!("As printed in the paper: {}, {}", Text(source), Text(protocol)));
        }
        let cells = row.cells.iter().zip(&deviates).map(|(cell, &deviates)| {
            let room = if deviates { deviation(cell) } else { String::new() };
            (number(cell, &room), Align::Right)
        });
        table.row(&[(header(row, footnotes), Align::Left)].into_iter().chain(cells).collect::<Vec<_>>());
    }
    table.finish()
}

/// A candidate with the numbers of its protocols, or an encoder of the paper.
fn header(row: &Row<'_>, footnotes: &Footnotes<'_>) -> String {
    match row.origin {
        Origin::Paper(paper) => format!("{} <small>{}</small>", Text(paper.method), Text(&paper.encoder())),
        Origin::Candidate(candidate) => {
            let mut protocols: Vec<usize> =
                row.cells.iter().filter_map(Cell::result).map(|result| footnotes.number(result)).collect();
            protocols.dedup();
            let links: Vec<String> = protocols.into_iter().map(link).collect();
            let mark =
                if links.is_empty() { String::new() } else { format!("<sup>[{}]</sup>", links.join(", ")) };
            format!("{}{mark}", Text(&candidate.name))
        }
    }
}

/// A cell: its number and the place of a deviation.
fn number(cell: &Cell<'_>, deviation: &str) -> String {
    match cell {
        Cell::Measured(result, rank) => {
            let title = format!("{}; 95 % interval {}", result.protocol, number::interval(result));
            format!("<span title=\"{}\">{}{deviation}</span>", Text(&title), ranked(result.accuracy, *rank))
        }
        Cell::PerClass(result, rank) => {
            format!("<span title=\"{}\">{}</span>", Text(&result.protocol), ranked(result.class_mean, *rank))
        }
        Cell::Average(accuracy, rank) => ranked(*accuracy, *rank),
        Cell::Published(accuracy) => format!("{}{deviation}", percent(*accuracy)),
        Cell::Pending => format!("{PENDING}{deviation}"),
        Cell::Blank => String::new(),
    }
}

/// The deviation beside a number, or the room of one: numbers of a column stand below each other.
fn deviation(cell: &Cell<'_>) -> String {
    let deviation = cell.result().and_then(|result| result.deviation);
    let text = deviation.map(|deviation| format!("± {}", percent(deviation))).unwrap_or_default();
    format!(" <span class=\"deviation\">{text}</span>")
}

/// Whether any number of a column has a deviation.
fn deviates(scores: &ScoreTable<'_>, column: usize) -> bool {
    let mut cells = scores.rows.iter().filter_map(|row| row.cells.get(column));
    cells.any(|cell| cell.result().is_some_and(|result| result.deviation.is_some()))
}

fn ranked(accuracy: f64, rank: Rank) -> String {
    match rank {
        Rank::Best => format!("<b>{}</b>", percent(accuracy)),
        Rank::Other => percent(accuracy),
    }
}
