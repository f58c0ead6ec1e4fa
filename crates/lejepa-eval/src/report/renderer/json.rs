//! A report as JSON, with everything: what the other forms are made from.

use super::{Rendered, Renderer, single};
use crate::report::Report;
use crate::{Error, Result};

/// `report.json`.
#[derive(Debug, Clone, Copy)]
pub struct Json;

impl Json {
    /// The file's name.
    pub(crate) const FILE: &str = "report.json";
}

impl Renderer for Json {
    fn files(&self) -> &'static [&'static str] {
        &[Self::FILE]
    }

    fn render(&self, report: &Report) -> Result<Vec<Rendered>> {
        let json = serde_json::to_string_pretty(report).map_err(Error::Json)? + "\n";
        Ok(single(Self::FILE, json))
    }
}
