//! Bias and variance on isotropic and anisotropic features: plots over condition numbers, then all numbers.

use std::fmt::Write;

use lejepa_page::html::{Align, Table, Text, figure, words};

use crate::isotropy::DemonstrationReport;
use crate::isotropy::figure::{feature_figures, simulation_figures};
use crate::isotropy::table::{
    Detail, PlainTable, about_features, about_simulation, feature_tables, simulation_tables,
};
use crate::report::CandidateIsotropy;

/// Simulated features.
pub(super) fn simulation(report: &DemonstrationReport) -> String {
    format!(
        "<section id=\"simulation\">\n<h2>Isotropy on simulated features</h2>\n<p class=\"facts\">{}</p>\n\
         {}{}</section>\n",
        Text(&about_simulation(report)),
        simulation_figures(report),
        tables(&simulation_tables(report))
    )
}

/// One candidate's features, as a part of the section of a set.
pub(super) fn features(of: &CandidateIsotropy) -> String {
    let (sentence, notes) = about_features(of);
    let notes: String = notes.iter().map(|note| format!("<li>{}</li>\n", Text(note))).collect();
    let notes = if notes.is_empty() { notes } else { format!("<ul class=\"notes\">\n{notes}</ul>\n") };
    format!(
        "<h3>Isotropy: {}</h3>\n<p class=\"facts\">{}</p>\n{notes}{}{}",
        Text(&of.candidate),
        Text(&sentence),
        feature_figures(of),
        tables(&feature_tables(of))
    )
}

fn tables(tables: &[PlainTable]) -> String {
    let mut html = String::new();
    for PlainTable { title, caption, detail, names, header, rows } in tables {
        let align = |column: usize| if column < *names { Align::Left } else { Align::Right };
        let columns: Vec<(&str, Align)> =
            header.iter().enumerate().map(|(column, title)| (title.as_str(), align(column))).collect();
        let caption = format!("<strong>{}</strong>: {}", Text(title), Text(caption));
        let caption = caption.trim_end_matches(": ");
        let mut table = Table::new(title, caption, &columns);
        for row in rows {
            let cell = |(column, cell): (usize, &String)| {
                if column < *names { words(cell) } else { figure(cell) }
            };
            table.row(&row.iter().enumerate().map(cell).collect::<Vec<_>>());
        }
        let table = table.finish();
        let _ = match detail {
            Detail::Main => html.write_str(&table),
            Detail::More | Detail::All => {
                writeln!(html, "<details>\n<summary>{}</summary>\n{table}</details>", Text(title))
            }
        };
    }
    html
}
