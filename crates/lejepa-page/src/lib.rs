//! Writes numbers, tables, charts and pages for people to read: Markdown that also reads well in a terminal, and
//! HTML files that load nothing and run nothing.
//!
//! Nothing of this crate knows what it writes about.
//!
//! ```
//! use lejepa_page::markdown::push_table;
//!
//! let mut text = String::new();
//! let rows = [["encoder", "k-NN"], ["ours", "81.2"]].map(|row| row.map(String::from).to_vec());
//! push_table(&mut text, &rows, 1);
//! assert!(text.starts_with("| encoder | k-NN |\n"));
//! ```

pub mod chart;
pub mod html;
pub mod markdown;
pub mod number;
