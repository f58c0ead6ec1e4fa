//! Pictures inside a page.

use super::Text;

/// A picture by its data URI, with the words that stand for it; nothing without one.
pub fn picture(uri: Option<&str>, words: &str) -> String {
    match uri {
        Some(uri) => format!("<img src=\"{uri}\" alt=\"{}\" loading=\"lazy\"/>", Text(words)),
        None => String::new(),
    }
}
