//! Markdown in which nothing that users wrote is markup.

mod table;
mod text;

pub use table::push_table;
pub use text::{code, code_block, plain};
