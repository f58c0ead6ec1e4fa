//! Tables that read well as they are.

use std::fmt::Write;

/// Columns are padded so that the table also reads well in a terminal: the first `names` left, numbers right.
pub fn push_table(text: &mut String, rows: &[Vec<String>], names: usize) {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width =
        |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0).max(3)).collect();
    for (index, row) in rows.iter().enumerate() {
        for (column, (cell, &width)) in row.iter().zip(&widths).enumerate() {
            let _ = if column < names {
                write!(text, "| {cell:<width$} ")
            } else {
                write!(text, "| {cell:>width$} ")
            };
        }
        text.push_str("|\n");
        if index == 0 {
            for (column, &width) in widths.iter().enumerate() {
                let (line, end) = ("-".repeat(width + 1), if column < names { "-" } else { ":" });
                let _ = write!(text, "|{line}{end}");
            }
            text.push_str("|\n");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_padded_and_a_short_row_ends_early() {
        let mut text = String::new();
        let rows = [vec!["candidate", "k-NN"], vec!["ours", "81.2 ± 0.4"], vec!["other"]];
        push_table(&mut text, &rows.map(|row| row.into_iter().map(str::to_owned).collect()), 1);
        assert_eq!(
            text.lines().collect::<Vec<_>>(),
            [
                "| candidate |       k-NN |",
                "|-----------|-----------:|",
                "| ours      | 81.2 ± 0.4 |",
                "| other     |",
            ]
        );
    }
}
