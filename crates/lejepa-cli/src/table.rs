//! Tables in plain text.

/// Lines of columns: the first one to the left, the others to the right.
pub(crate) fn table(rows: &[Vec<String>]) -> String {
    let width =
        |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|text| text.chars().count()).max();
    let cell = |(column, text): (usize, &String)| match (column, width(column).unwrap_or(0)) {
        (0, width) => format!("{text:<width$}"),
        (_, width) => format!("{text:>width$}"),
    };
    let line = |row: &Vec<String>| row.iter().enumerate().map(cell).collect::<Vec<_>>().join("  ");
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// A column's title, and what it says about a thing.
pub(crate) type Column<T> = (&'static str, fn(&T) -> String);

/// The titles, then a row for each thing.
pub(crate) fn rows<T>(columns: &[Column<T>], things: &[T]) -> Vec<Vec<String>> {
    let titles = columns.iter().map(|(title, _)| title.to_string()).collect();
    let row = |thing| columns.iter().map(|(_, cell)| cell(thing)).collect();
    std::iter::once(titles).chain(things.iter().map(row)).collect()
}

/// The same table for Markdown.
pub(crate) fn markdown(rows: &[Vec<String>]) -> String {
    let line = |row: &Vec<String>| format!("| {} |", row.join(" | "));
    let mut lines: Vec<String> = rows.iter().map(line).collect();
    if let Some(titles) = rows.first() {
        lines.insert(1, format!("|---|{}", "---:|".repeat(titles.len().saturating_sub(1))));
    }
    lines.join("\n")
}

/// A number with so many decimals, or a dash.
pub(crate) fn optional(value: Option<f64>, decimals: usize) -> String {
    value.map_or("-".into(), |value| format!("{value:.decimals$}"))
}

/// A setting as one would type it: 1e-5 and not 0.00001.
pub(crate) fn shortest(value: f64) -> String {
    format!("{value:?}")
}
