//! The forms of a report. Each takes the report apart field by field, without `..`: a field that one of them
//! forgets does not compile.

mod html;
mod json;
mod markdown;
mod spreadsheet;
mod terminal;

pub use html::Html;
pub use json::Json;
pub use markdown::Markdown;
pub use spreadsheet::Spreadsheet;
pub(crate) use spreadsheet::plain;
pub use terminal::Terminal;

use crate::Result;
use crate::report::Report;

/// A form of a report.
pub trait Renderer {
    /// Names of all files that it may write; none if it is only shown.
    fn files(&self) -> &'static [&'static str];

    /// The report in this form: of its files those that the report has something for.
    fn render(&self, report: &Report) -> Result<Vec<Rendered>>;
}

/// A file of a report, or what is shown of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rendered {
    /// The file's name in a report's folder, or where it is shown.
    pub name: &'static str,
    /// All of it.
    pub content: Vec<u8>,
}

/// The forms that are written into a report's folder, in this order.
pub const RENDERERS: [&dyn Renderer; 4] = [&Json, &Markdown, &Html, &Spreadsheet];

/// A single file.
fn single(name: &'static str, text: String) -> Vec<Rendered> {
    vec![Rendered { name, content: text.into_bytes() }]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::samples;

    #[test]
    fn renderers_write_the_files_that_they_name_and_no_file_twice() {
        let mut names: Vec<&str> = RENDERERS.iter().flat_map(|renderer| renderer.files()).copied().collect();
        for (_, report) in samples::all() {
            for renderer in RENDERERS {
                for file in renderer.render(&report).unwrap() {
                    assert!(renderer.files().contains(&file.name), "{}", file.name);
                    assert!(!file.content.is_empty(), "{}", file.name);
                }
            }
        }
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
    }
}
