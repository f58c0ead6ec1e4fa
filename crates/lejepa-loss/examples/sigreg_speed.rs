//! Times SIGReg, forward and backward, for `benches/sigreg.sh`: one JSON line per case on stdin's order.

use std::io::BufRead;
use std::time::Instant;

use candle_core::{Device, Tensor, Var};
use lejepa_loss::{EppsPulley, Sigreg};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for line in std::io::stdin().lock().lines() {
        let case: Vec<usize> = line?.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
        let [samples, slices, knots, dim] = case[..] else { return Err("four numbers are needed".into()) };
        let sigreg = Sigreg::new(EppsPulley::new(5., knots)?, slices);
        let embeddings = Var::from_tensor(&Tensor::randn(0f32, 1., (samples, dim), &Device::Cpu)?)?;
        let mut best = f64::INFINITY;
        for step in 0..10 {
            let clock = Instant::now();
            let loss = sigreg.forward(embeddings.as_tensor(), step)?;
            let forward = clock.elapsed().as_secs_f64();
            let gradients = loss.backward()?;
            let _ = gradients.get(&embeddings).ok_or("no gradient")?;
            let t = clock.elapsed().as_secs_f64();
            eprintln!("forward {forward:.4} total {t:.4}");
            best = best.min(t);
        }
        eprintln!("{samples} {slices} {knots} {dim}: {:.2} ms", best * 1e3);
    }
    Ok(())
}
