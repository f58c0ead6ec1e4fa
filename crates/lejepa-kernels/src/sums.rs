//! Sums of rows that are the same for any number of threads: partial sums of fixed rows, added up in their order.

use rayon::prelude::*;

/// Rows per task: enough work to be worth a thread.
pub(crate) const ROWS_PER_TASK: usize = 64;

/// The sum of all rows.
///
/// # Shapes
/// - `rows`: `(rows, columns)`; result: `(columns)`
pub(crate) fn sum_rows(rows: &[f32], columns: usize) -> Vec<f32> {
    let partial_sums: Vec<Vec<f32>> = rows
        .par_chunks(ROWS_PER_TASK * columns)
        .map(|rows| {
            let mut sums = vec![0.; columns];
            for row in rows.chunks_exact(columns) {
                sums.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
            }
            sums
        })
        .collect();
    add_up(&partial_sums, columns)
}

/// The sum of partial sums, in their order.
pub(crate) fn add_up(partial_sums: &[Vec<f32>], length: usize) -> Vec<f32> {
    let mut total = vec![0.; length];
    for sums in partial_sums {
        total.iter_mut().zip(sums).for_each(|(total, sum)| *total += sum);
    }
    total
}
