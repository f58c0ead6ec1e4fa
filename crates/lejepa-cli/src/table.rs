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
