//! What the isotropy experiment found, in tables that every renderer takes as they are.

mod demonstration;
mod shapes;
mod verdicts;

pub(crate) use demonstration::{about_simulation, simulation_tables, theory};
pub(crate) use shapes::{about_features, feature_tables, reference_settings};
pub(crate) use verdicts::{holds, statement};

/// A table of words and finished numbers.
pub(crate) struct PlainTable {
    pub(crate) title: String,
    /// How its numbers are to be read.
    pub(crate) caption: String,
    pub(crate) detail: Detail,
    /// So many columns on the left hold words.
    pub(crate) names: usize,
    pub(crate) header: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
}

/// Where a table is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Detail {
    /// In the terminal too.
    Main,
    /// In Markdown and HTML.
    More,
    /// In HTML, folded away.
    All,
}

/// A condition number in a cell or on an axis.
pub(crate) fn condition(condition: f64) -> String {
    lejepa_page::number::significant(condition)
}

/// A number that not every measurement has.
fn optional(value: Option<f64>) -> String {
    value.map(lejepa_page::number::significant).unwrap_or_default()
}
