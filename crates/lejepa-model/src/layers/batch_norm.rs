//! Batch normalisation of features: `y = (x - mean) / sqrt(var + eps) * weight + bias` per column.

use candle_core::{Tensor, Var};
use lejepa_kernels::profile::part;
use lejepa_kernels::{Activation, batch_norm, convolve_and_norm, is_fused, normalise};

use super::{Convolution, FeatureMap};
use crate::{Error, Initialisation, Pass, Result, Scope, SumAcross};

/// Batch normalisation of `(samples, dim)` features with PyTorch's conventions.
///
/// Statistics are computed in the type of the parameters, whatever that of the features.
#[derive(Debug, Clone)]
pub struct BatchNorm {
    weight: Tensor,
    bias: Tensor,
    running_mean: Var,
    running_var: Var,
}

/// Mean and biased variance of a batch, and of how many samples.
struct Statistics {
    mean: Tensor,
    variance: Tensor,
    samples: f64,
}

impl BatchNorm {
    /// Added to the variance.
    pub const EPSILON: f64 = 1e-5;
    const MOMENTUM: f64 = 0.1;

    /// Starts with unit scale, no shift and standard statistics.
    pub fn new(dim: usize, mut scope: Scope<'_>) -> Result<Self> {
        Ok(Self {
            weight: scope.parameter("weight", dim, Initialisation::Ones)?,
            bias: scope.parameter("bias", dim, Initialisation::Zeros)?,
            running_mean: scope.buffer("running_mean", dim, Initialisation::Zeros)?,
            running_var: scope.buffer("running_var", dim, Initialisation::Ones)?,
        })
    }

    /// # Shapes
    /// - `xs` and result: `(samples, dim)`
    pub fn forward(&self, xs: &Tensor, pass: &Pass) -> Result<Tensor> {
        part("norms", xs, |xs| self.forward_with(xs, pass, Activation::Identity))
    }

    /// With a ReLU behind it, in one operation where there is one.
    ///
    /// # Shapes
    /// - `xs` and result: `(samples, dim)`
    pub fn forward_relu(&self, xs: &Tensor, pass: &Pass) -> Result<Tensor> {
        part("norms", xs, |xs| self.forward_with(xs, pass, Activation::Relu))
    }

    fn forward_with(&self, xs: &Tensor, pass: &Pass, activation: Activation) -> Result<Tensor> {
        let given = xs.dtype();
        let xs = &xs.to_dtype(self.weight.dtype())?;
        let affine = [&self.weight, &self.bias];
        let activate = |ys: Tensor| if activation == Activation::Relu { ys.relu() } else { Ok(ys) };
        let ys = if let Some(sums) = pass.sums() {
            let statistics = statistics_across(xs, sums)?;
            self.follow(&statistics, pass)?;
            activate(normalise(xs, [&statistics.mean, &statistics.variance], affine, Self::EPSILON)?)?
        } else if pass.is_training() {
            let samples = xs.dim(0)? as f64;
            at_least_two(samples)?;
            let normalised = batch_norm(xs, affine, Self::EPSILON, activation)?;
            let (mean, variance) = (normalised.mean, normalised.variance);
            self.follow(&Statistics { mean, variance, samples }, pass)?;
            normalised.ys
        } else {
            // Nobody learns them, and a variable would make the pass keep its operations.
            let running = [&self.running_mean, &self.running_var].map(Var::as_detached_tensor);
            activate(normalise(xs, running.each_ref(), affine, Self::EPSILON)?)?
        };
        Ok(ys.to_dtype(given)?)
    }

    /// Behind a convolution, with which it is one operation where there is one.
    pub(crate) fn forward_convolved(
        &self,
        convolution: &Convolution,
        map: &FeatureMap,
        pass: &Pass,
        activation: Activation,
    ) -> Result<FeatureMap> {
        let is_fused = pass.is_training() && pass.sums().is_none() && is_fused(&map.rows);
        let Some((kernel, windows)) = convolution.ungrouped(map)?.filter(|_| is_fused) else {
            let map = convolution.forward(map)?;
            let norm = |rows: &Tensor| self.forward_with(rows, pass, activation);
            return Ok(map.with_rows(part("norms", &map.rows, norm)?));
        };
        let samples = (map.images * windows.output.height * windows.output.width) as f64;
        at_least_two(samples)?;
        let rows = part("convolutions", &map.rows, |rows| -> Result<_> {
            let settings = (Self::EPSILON, activation);
            let normalised = convolve_and_norm(rows, kernel, &windows, [&self.weight, &self.bias], settings)?;
            let (mean, variance) = (normalised.mean, normalised.variance);
            self.follow(&Statistics { mean, variance, samples }, pass)?;
            Ok(normalised.ys)
        })?;
        Ok(FeatureMap { rows, images: map.images, size: windows.output.into() })
    }

    /// Moves the running statistics; the variance among them is the unbiased one.
    fn follow(&self, batch: &Statistics, pass: &Pass) -> Result<()> {
        if !pass.is_tracking() {
            return Ok(());
        }
        let unbiased = (batch.variance.detach() * (batch.samples / (batch.samples - 1.)))?;
        for (running, batch) in [(&self.running_mean, &batch.mean.detach()), (&self.running_var, &unbiased)] {
            let kept = (running.as_tensor() * (1. - Self::MOMENTUM))?;
            running.set(&(kept + (batch * Self::MOMENTUM)?)?)?;
        }
        Ok(())
    }
}

/// The statistics of all processes' samples: two sums, for the deviations are from the common mean.
fn statistics_across(xs: &Tensor, sums: &dyn SumAcross) -> Result<Statistics> {
    let (samples, dim) = xs.dims2()?;
    let count = Tensor::full(samples as f64, 1, xs.device())?.to_dtype(xs.dtype())?;
    let total = sums.sum(&Tensor::cat(&[&count, &xs.sum(0)?], 0)?)?; // (1 + dim)
    let samples: f64 = total.get(0)?.to_dtype(candle_core::DType::F64)?.to_scalar()?;
    at_least_two(samples)?;
    let mean = (total.narrow(0, 1, dim)? / samples)?;
    let variance = (sums.sum(&xs.broadcast_sub(&mean)?.sqr()?.sum(0)?)? / samples)?;
    Ok(Statistics { mean, variance, samples })
}

fn at_least_two(samples: f64) -> Result<()> {
    if samples < 2. {
        return Err(Error::Setting {
            field: "batch",
            expected: "at least 2 samples for batch normalisation".into(),
            got: samples.to_string(),
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use candle_core::{DType, Device};

    use super::*;
    use crate::Parameters;

    /// The sums of another process, one per call.
    #[derive(Debug)]
    struct Other(Mutex<Vec<Tensor>>);

    impl SumAcross for Other {
        fn sum(&self, local: &Tensor) -> Result<Tensor> {
            Ok((local + self.0.lock().unwrap().remove(0))?)
        }
    }

    #[test]
    fn processes_that_share_a_batch_normalise_it_as_one() {
        let random = |shape: &[usize]| {
            let mut parameters = Parameters::new(3, DType::F64, &Device::Cpu);
            parameters.root().parameter("x", shape, Initialisation::Normal(1.)).unwrap().detach()
        };
        let (share, rest, dim) = (5, 9, 4);
        let whole = random(&[share + rest, dim]);
        let run = |xs: &Tensor, pass: &Pass| {
            let mut parameters = Parameters::new(0, DType::F64, &Device::Cpu);
            let norm = BatchNorm::new(dim, parameters.root()).unwrap();
            let ys = norm.forward_relu(xs, pass).unwrap();
            let running = [norm.running_mean.as_tensor(), norm.running_var.as_tensor()].map(Tensor::clone);
            (ys, running)
        };
        let (expected, expected_running) = run(&whole, &Pass::train(0));

        let others = whole.narrow(0, share, rest).unwrap();
        let count = Tensor::new(&[rest as f64], &Device::Cpu).unwrap();
        let first = Tensor::cat(&[&count, &others.sum(0).unwrap()], 0).unwrap();
        let deviations = others.broadcast_sub(&whole.mean(0).unwrap()).unwrap();
        let second = deviations.sqr().unwrap().sum(0).unwrap();
        let sums = Arc::new(Other(Mutex::new(vec![first, second])));
        let (ys, running) = run(&whole.narrow(0, 0, share).unwrap(), &Pass::train(0).with_sums(sums));

        let assert_close = |left: &Tensor, right: &Tensor| {
            let difference = (left - right).unwrap().abs().unwrap().flatten_all().unwrap();
            assert!(difference.max(0).unwrap().to_scalar::<f64>().unwrap() < 1e-12);
        };
        assert_close(&ys, &expected.narrow(0, 0, share).unwrap());
        running.iter().zip(&expected_running).for_each(|(left, right)| assert_close(left, right));
    }

    #[test]
    fn a_pass_without_tracking_leaves_the_running_statistics_alone() {
        let mut parameters = Parameters::new(0, DType::F32, &Device::Cpu);
        let norm = BatchNorm::new(2, parameters.root()).unwrap();
        let xs = Tensor::new(&[[1f32, 10.], [2., 20.]], &Device::Cpu).unwrap();
        norm.forward(&xs, &Pass::train(0).without_tracking()).unwrap();
        assert_eq!(norm.running_mean.to_vec1::<f32>().unwrap(), [0., 0.]);
        norm.forward(&xs, &Pass::train(0)).unwrap();
        assert_ne!(norm.running_mean.to_vec1::<f32>().unwrap(), [0., 0.]);
    }
}
