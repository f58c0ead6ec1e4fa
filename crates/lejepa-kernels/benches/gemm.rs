//! The products of a linear layer of a small transformer on one core, in GFLOP/s: `cargo bench -p lejepa-kernels`.
//!
//! The first line is a product that never leaves the registers and the first cache: what the core can do.

#![allow(clippy::print_stdout)]

use std::time::Instant;

use lejepa_kernels::gemm::{Matrix, MatrixMut, Panels, Start, multiply, multiply_transposed};

/// Measurements of which the best counts.
const TIMES: usize = 15;
/// Multiplications of a measurement at least.
const WORK: usize = 60_000_000;

fn best(rows: usize, depth: usize, columns: usize, mut product: impl FnMut()) -> f64 {
    let size = rows * depth * columns;
    let repeats = WORK.div_ceil(size);
    let seconds = (0..TIMES).map(|_| {
        let clock = Instant::now();
        (0..repeats).for_each(|_| product());
        clock.elapsed().as_secs_f64()
    });
    2e-9 * (repeats * size) as f64 / seconds.fold(f64::INFINITY, f64::min)
}

fn main() {
    println!("rows depth columns   forward  input gradient  weight gradient");
    let shapes =
        [(14, 256, 32), (112, 192, 576), (112, 192, 192), (112, 192, 768), (112, 768, 192), (197, 64, 197)];
    for (rows, inputs, outputs) in shapes {
        let (xs, gradient) = (vec![1.; rows * inputs], vec![1.; rows * outputs]);
        let weight = vec![1.; outputs * inputs];
        let (forward, backward) =
            (Panels::of_transpose(Matrix::new(&weight, inputs)), Panels::new(Matrix::new(&weight, inputs)));
        let (xs, gradient) = (Matrix::new(&xs, inputs), Matrix::new(&gradient, outputs));
        let (mut ys, mut of_xs, mut of_weight) =
            (vec![0.; rows * outputs], vec![0.; rows * inputs], vec![0.; outputs * inputs]);
        let forward = best(rows, inputs, outputs, || {
            multiply(xs, &forward, MatrixMut::new(&mut ys, outputs), Start::Zero);
        });
        let backward = best(rows, outputs, inputs, || {
            multiply(gradient, &backward, MatrixMut::new(&mut of_xs, inputs), Start::Zero);
        });
        let weight = best(outputs, rows, inputs, || {
            multiply_transposed(gradient, xs, MatrixMut::new(&mut of_weight, inputs), Start::Result);
        });
        println!("{rows:>4} {inputs:>5} {outputs:>7} {forward:>9.1} {backward:>15.1} {weight:>16.1}");
    }
}
