//! Time and memory of a probe on features from a file: `probes PROBE FEATURES`.
//!
//! Prints one JSON object. `benches/probes.sh` runs it beside scikit-learn, faiss and PyTorch.

#![allow(clippy::print_stdout)]

use std::time::Instant;

use lejepa_probe::{
    Features, KernelSolution, Knn, LogisticProblem, RadiusSolution, Solution, accuracy, dinov2_path,
    predicted,
};
use ndarray::Array2;
use safetensors::SafeTensors;

type Error = Box<dyn std::error::Error>;

fn main() -> Result<(), Error> {
    let typed: Vec<String> = std::env::args().skip(1).collect();
    let [probe, path] = &typed[..] else {
        // `cargo bench` without names, and `cargo test --benches`, have nothing to measure.
        return Ok(());
    };
    let bytes = std::fs::read(path)?;
    let file = SafeTensors::deserialize(&bytes)?;
    let labels = labels(&file, "train_labels")?;
    let classes = labels.iter().max().map_or(0, |label| label + 1);
    let train = Features::labelled(values(&file, "train")?, labels, classes)?;
    let (queries, expected) = (values(&file, "test")?, self::labels(&file, "test_labels")?);
    let distance = f64::from_le_bytes(file.tensor("distance")?.data().try_into()?);

    let before = memory("VmRSS")?;
    let clock = Instant::now();
    let scores = match probe.as_str() {
        "logistic" => {
            let mut problem = LogisticProblem::new(&train)?;
            let mut last = None;
            for c in dinov2_path() {
                last = Some(problem.fit(c, 1000)?);
            }
            last.ok_or("no C")?.scores(&queries)?
        }
        "knn" => Knn { k: 20, temperature: 0.07 }.scores(&train, &queries)?,
        "radius" => RadiusSolution::new(&train, distance).scores(&queries)?,
        "kernel" => KernelSolution::new(&train, distance / 4.).scores(&queries)?,
        _ => return Err(format!("no such probe: {probe}").into()),
    };
    let seconds = clock.elapsed().as_secs_f64();
    let accuracy = accuracy(&predicted(&scores), &expected);
    let megabytes = (memory("VmHWM")? - before) / 1e3;
    println!("{{\"seconds\": {seconds:.3}, \"megabytes\": {megabytes:.1}, \"accuracy\": {accuracy:.4}}}");
    Ok(())
}

fn values(file: &SafeTensors<'_>, name: &str) -> Result<Array2<f32>, Error> {
    let tensor = file.tensor(name)?;
    let [rows, columns] = *tensor.shape() else { return Err("not a matrix".into()) };
    let (numbers, _) = tensor.data().as_chunks::<4>();
    Ok(Array2::from_shape_vec((rows, columns), numbers.iter().copied().map(f32::from_le_bytes).collect())?)
}

fn labels(file: &SafeTensors<'_>, name: &str) -> Result<Vec<usize>, Error> {
    let tensor = file.tensor(name)?;
    let (numbers, _) = tensor.data().as_chunks::<8>();
    Ok(numbers.iter().map(|bytes| i64::from_le_bytes(*bytes) as usize).collect())
}

/// A line of `/proc/self/status`, in kB.
fn memory(name: &str) -> Result<f64, Error> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with(name)).ok_or("no such line")?;
    Ok(line.split_whitespace().nth(1).ok_or("no number")?.parse()?)
}
