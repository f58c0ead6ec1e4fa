//! Time and memory of SIGReg, forward and backward: `sigreg SAMPLES SLICES KNOTS DIM SECONDS`.
//!
//! Prints one JSON object. `benches/sigreg.sh` runs it beside PyTorch.

#![allow(clippy::print_stdout)]

use std::time::Instant;

use candle_core::{Device, Tensor, Var};
use lejepa_loss::{EppsPulley, Sigreg};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let typed: Vec<f64> = std::env::args().skip(1).filter_map(|argument| argument.parse().ok()).collect();
    let [samples, slices, knots, dim, seconds] = typed[..] else {
        // `cargo bench` without numbers, and `cargo test --benches`, have nothing to measure.
        return Ok(());
    };
    let sigreg = Sigreg::new(EppsPulley::new(5., knots as usize)?, slices as usize);
    let shape = (samples as usize, dim as usize);
    let embeddings = Var::from_tensor(&Tensor::randn(0f32, 1., shape, &Device::Cpu)?)?;

    let before = memory("VmRSS")?;
    let mut best = f64::INFINITY;
    let start = Instant::now();
    let mut steps = 0;
    while steps < 3 || start.elapsed().as_secs_f64() < seconds {
        let clock = Instant::now();
        let loss = sigreg.forward(embeddings.as_tensor(), steps)?;
        let gradients = loss.backward()?;
        gradients.get(&embeddings).ok_or("no gradient")?;
        best = best.min(clock.elapsed().as_secs_f64());
        steps += 1;
    }
    let megabytes = (memory("VmHWM")? - before) / 1e3;
    println!("{{\"milliseconds\": {:.3}, \"megabytes\": {megabytes:.1}}}", best * 1e3);
    Ok(())
}

/// A line of `/proc/self/status`, in kB.
fn memory(name: &str) -> Result<f64, Box<dyn std::error::Error>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with(name)).ok_or("no such line")?;
    Ok(line.split_whitespace().nth(1).ok_or("no number")?.parse()?)
}
