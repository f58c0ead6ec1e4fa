//! Tables that scroll inside their own frame, so that the page never does.

use std::fmt::Write;

use super::text::Text;

/// A table with a caption; the first cell of every row is its header.
pub struct Table {
    columns: usize,
    html: String,
}

/// What a cell holds, and how it is set.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Align {
    /// Words.
    Left,
    /// Words that stay on one line.
    Short,
    /// Numbers.
    Right,
}

impl Table {
    /// The caption is HTML, the titles are text.
    pub fn new(label: &str, caption: &str, columns: &[(&str, Align)]) -> Self {
        let header = |&(title, align): &(&str, Align)| (title_of_column(title), align);
        Self::with_headers(label, caption, &columns.iter().map(header).collect::<Vec<_>>())
    }

    /// As [`Self::new`] with titles that are HTML.
    pub fn with_headers(label: &str, caption: &str, columns: &[(String, Align)]) -> Self {
        let mut html = format!(
            "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{}\">\n<table>\n",
            Text(label)
        );
        if !caption.is_empty() {
            let _ = writeln!(html, "<caption><span>{caption}</span></caption>");
        }
        html.push_str("<thead><tr>");
        for (title, align) in columns {
            let _ = write!(html, "<th scope=\"col\"{}>{title}</th>", align.class());
        }
        html.push_str("</tr></thead>\n<tbody>\n");
        Self { columns: columns.len(), html }
    }

    /// Starts another group of rows under a heading of its own.
    pub fn group(&mut self, class: &str, heading: &str) {
        let columns = self.columns;
        let _ = write!(
            self.html,
            "</tbody>\n<tbody class=\"{class}\">\n\
             <tr><th scope=\"rowgroup\" colspan=\"{columns}\"><span>{heading}</span></th></tr>\n"
        );
    }

    /// Cells are HTML.
    pub fn row(&mut self, cells: &[(String, Align)]) {
        self.html.push_str("<tr>");
        for (index, (cell, align)) in cells.iter().enumerate() {
            let _ = match index {
                0 => write!(self.html, "<th scope=\"row\"{}>{cell}</th>", align.class()),
                _ => write!(self.html, "<td{}>{cell}</td>", align.class()),
            };
        }
        self.html.push_str("</tr>\n");
    }

    /// The whole table.
    pub fn finish(mut self) -> String {
        self.html.push_str("</tbody>\n</table>\n</div>\n");
        self.html
    }
}

impl Align {
    fn class(self) -> &'static str {
        match self {
            Self::Left => "",
            Self::Short => " class=\"s\"",
            Self::Right => " class=\"n\"",
        }
    }
}

/// The longest text that is not broken into lines.
const SHORT: usize = 24;

/// A title that is broken into lines only if it is long.
pub fn title_of_column(title: &str) -> String {
    match title.chars().count() {
        0..=SHORT => format!("<span class=\"s\">{}</span>", Text(title)),
        _ => Text(title).to_string(),
    }
}

/// A cell of words.
pub fn words(text: &str) -> (String, Align) {
    let align = if text.chars().count() <= SHORT { Align::Short } else { Align::Left };
    (Text(text).to_string(), align)
}

/// A cell of numbers.
pub fn figure(text: impl AsRef<str>) -> (String, Align) {
    (Text(text.as_ref()).to_string(), Align::Right)
}

/// A cell of code.
pub fn code(text: &str) -> (String, Align) {
    (format!("<code>{}</code>", Text(text)), Align::Left)
}
