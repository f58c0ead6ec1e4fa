//! Images that cannot be used.

use serde::Serialize;

use crate::{Dataset, Error};

/// An image that cannot be read or decoded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unreadable {
    /// What a person calls it.
    pub name: String,
    /// What is wrong with it.
    pub reason: String,
}

impl Unreadable {
    /// What is known about a sample that could not be read, in one line.
    pub(crate) fn new(dataset: &dyn Dataset, index: usize, error: &Error) -> Self {
        let mut reason = error.to_string();
        let mut cause = std::error::Error::source(error);
        while let Some(error) = cause {
            // Some errors repeat what their cause says.
            let text = error.to_string();
            if !reason.contains(&text) {
                reason = format!("{reason}: {text}");
            }
            cause = error.source();
        }
        let reason = reason.split_whitespace().collect::<Vec<_>>().join(" ");
        Self { name: dataset.name(index), reason }
    }
}
