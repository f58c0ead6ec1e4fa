//! Products of f32 matrices on the CPU, for those who divide the work themselves.
//!
//! ```text
//! multiply              C = start + A B      A (rows, depth), B (depth, columns)
//! multiply_transposed   C = start + A^T B    A (depth, rows)
//! ```
//!
//! One thread, no copies: matrices are read where they lie. The caller cuts a large product into blocks that
//! stay in a core's cache and gives them to threads, so that what comes before and after a product happens to
//! a block while it is there. A sum is always made in the same order, whatever the number of threads.

mod kernel;
mod matrix;
mod multiply;
mod panels;

pub use self::matrix::{Matrix, MatrixMut};
pub use self::multiply::{Right, Start, multiply, multiply_transposed};
pub use self::panels::Panels;
