//! HTML: one file with its style, tables, and text in which nothing that users wrote is markup.

mod page;
mod picture;
mod table;
mod text;

pub use page::Page;
pub use picture::picture;
pub use table::{Align, Table, code, figure, title_of_column, words};
pub use text::Text;
