//! Every probe on features from a file: `probe FEATURES`.
//!
//! The file holds `train` and `test` (f32) with `train_labels` and `test_labels` (i64). Prints a line
//! per probe: its name and its accuracy. `tests/probe_agreement.sh` runs it beside scikit-learn and PyTorch.

#![allow(clippy::print_stdout)]

use lejepa_probe::{
    Features, KernelSolution, Knn, Linear, LogisticProblem, RadiusSolution, RidgeSolution, Scores, Solution,
    accuracy, predicted, unwatched,
};
use ndarray::Array2;
use safetensors::SafeTensors;

type Error = Box<dyn std::error::Error>;

fn main() -> Result<(), Error> {
    let path = std::env::args().nth(1).ok_or("usage: probe FEATURES")?;
    let bytes = std::fs::read(path)?;
    let file = SafeTensors::deserialize(&bytes)?;
    let (labels, expected) = (labels(&file, "train_labels")?, labels(&file, "test_labels")?);
    let classes = labels.iter().chain(&expected).max().map_or(0, |label| label + 1);
    let train = Features::labelled(values(&file, "train")?, labels, classes)?;
    let queries = values(&file, "test")?;
    // The root of the mean squared distance between two samples.
    let unit = (2. * train.values().mapv(f64::from).var_axis(ndarray::Axis(0), 0.).sum()).sqrt();

    let report = |name: String, scores: Scores| {
        println!("{name} {:.6}", accuracy(&predicted(&scores), &expected));
    };
    for k in [10, 20, 100, 200] {
        report(format!("knn_{k}"), Knn { k, temperature: 0.07 }.scores(&train, &queries)?);
    }
    for multiple in [0.4, 0.6, 0.8] {
        let radius = RadiusSolution::new(&train, multiple * unit);
        report(format!("radius_{multiple}"), radius.scores(&queries)?);
    }
    for multiple in [0.1, 0.2, 0.4] {
        let kernel = KernelSolution::new(&train, multiple * unit);
        report(format!("kernel_{multiple}"), kernel.scores(&queries)?);
    }
    for lambda in [0.01, 1., 100.] {
        report(format!("ridge_{lambda}"), RidgeSolution::fit(&train, lambda)?.scores(&queries)?);
    }
    let mut problem = LogisticProblem::new(&train)?;
    for c in [0.001, 0.1, 10., 1000.] {
        report(format!("logistic_{c}"), problem.fit(c, 1000)?.scores(&queries)?);
    }
    let linear = Linear {
        learning_rates: vec![1e-3],
        holdout: 0.1,
        epochs: 50,
        batch: 256,
        warmup: 5,
        weight_decay: 1e-6,
    };
    report("linear".into(), unwatched(|watch| linear.train(&train, 1e-3, 0, watch))?.scores(&queries)?);
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
