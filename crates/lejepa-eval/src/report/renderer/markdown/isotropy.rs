//! Bias and variance on isotropic and anisotropic features.

use std::fmt::Write;

use lejepa_page::markdown::{plain, push_table};

use crate::isotropy::DemonstrationReport;
use crate::isotropy::table::{
    Detail, PlainTable, about_features, about_simulation, feature_tables, simulation_tables,
};
use crate::report::CandidateIsotropy;

/// Simulated features.
pub(super) fn push_simulation(text: &mut String, report: &DemonstrationReport, most: Detail) {
    push_tables(text, &simulation_tables(report), most);
    let _ = writeln!(text, "\n{}", plain(&about_simulation(report)));
}

/// One candidate's features of a set.
pub(super) fn push_features(text: &mut String, dataset: &str, of: &CandidateIsotropy, most: Detail) {
    let mut tables = feature_tables(of);
    tables.iter_mut().for_each(|table| table.title.insert_str(0, &format!("{dataset}, ")));
    push_tables(text, &tables, most);
    let (sentence, notes) = about_features(of);
    let _ = writeln!(text, "\n{}\n", plain(&sentence));
    notes.iter().for_each(|note| {
        let _ = writeln!(text, "- {}", plain(note));
    });
}

fn push_tables(text: &mut String, tables: &[PlainTable], most: Detail) {
    for table in tables.iter().filter(|table| table.detail <= most) {
        let PlainTable { title, caption, detail: _, names, header, rows } = table;
        let gap = if text.is_empty() { "" } else { "\n" };
        let caption = if caption.is_empty() { String::new() } else { format!(": {}", plain(caption)) };
        let _ = writeln!(text, "{gap}**{}**{caption}\n", plain(title));
        let cells = |row: &Vec<String>| row.iter().map(|cell| plain(cell)).collect::<Vec<_>>();
        push_table(text, &[header].into_iter().chain(rows).map(cells).collect::<Vec<_>>(), *names);
    }
}
