//! AdamW whose state can be saved.
//!
//! ```text
//! p <- p (1 - lr * weight_decay)
//! m <- beta1 m + (1 - beta1) g,   v <- beta2 v + (1 - beta2) g^2
//! p <- p - lr * (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + eps)
//! ```

use std::collections::{BTreeMap, HashMap};

use candle_core::{Tensor, Var};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::{Error, Gradients, Result, slices};

/// The `[optimizer]` table of a recipe.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AdamWConfig {
    /// Learning rate after warm-up.
    pub lr: f64,
    /// Learning rate at the end, as a share of `lr`.
    pub final_lr: f64,
    /// Share of all steps that warm up.
    pub warmup: f64,
    /// Decoupled weight decay.
    pub weight_decay: f64,
    /// Whether norms, biases, layer scales and learnt tokens and positions decay too.
    pub decay_norms_and_biases: bool,
    /// The largest norm of all gradients together; longer ones are scaled down to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clip: Option<f64>,
    /// Decay of the mean and of the mean square of the gradient.
    pub betas: [f64; 2],
    /// Added to the denominator.
    pub eps: f64,
}

impl Default for AdamWConfig {
    fn default() -> Self {
        Self {
            lr: 5e-4,
            final_lr: 1e-3,
            warmup: 0.1,
            weight_decay: 5e-2,
            decay_norms_and_biases: true,
            clip: None,
            betas: [0.9, 0.999],
            eps: 1e-8,
        }
    }
}

impl AdamWConfig {
    /// Refuses values out of range.
    pub fn check(&self) -> Result<()> {
        let refuse = |field, expected: &str, got: f64| {
            Err(Error::Setting { field, expected: expected.into(), got: got.to_string() })
        };
        let finite_positive = |value: f64| value.is_finite() && value > 0.;
        if !finite_positive(self.lr) {
            return refuse("optimizer.lr", "a positive number", self.lr);
        }
        if !(self.eps > 0. && self.eps <= 1.) {
            return refuse("optimizer.eps", "above 0 and at most 1", self.eps);
        }
        if let Some(clip) = self.clip.filter(|&clip| !finite_positive(clip)) {
            return refuse("optimizer.clip", "a positive number", clip);
        }
        if !(self.weight_decay.is_finite() && self.weight_decay >= 0.) {
            return refuse("optimizer.weight_decay", "zero or a positive number", self.weight_decay);
        }
        for (field, share) in [("optimizer.final_lr", self.final_lr), ("optimizer.warmup", self.warmup)] {
            if !(0. ..=1.).contains(&share) {
                return refuse(field, "between 0 and 1", share);
            }
        }
        for beta in self.betas {
            if !(0. ..1.).contains(&beta) {
                return refuse("optimizer.betas", "two numbers from 0 up to, but not including, 1", beta);
            }
        }
        Ok(())
    }
}

/// The optimiser with its moments.
#[derive(Debug)]
pub struct AdamW {
    config: AdamWConfig,
    steps: u64,
    moments: BTreeMap<String, Moments>,
}

#[derive(Debug)]
struct Moments {
    mean: Tensor,
    square: Tensor,
}

const MEAN: &str = "exp_avg.";
const SQUARE: &str = "exp_avg_sq.";

impl AdamW {
    /// With no steps taken.
    pub fn new(config: &AdamWConfig) -> Self {
        Self { config: config.clone(), steps: 0, moments: BTreeMap::new() }
    }

    /// Moves every parameter that has a gradient, at the given learning rate.
    pub fn step<'a>(
        &mut self,
        parameters: impl IntoIterator<Item = (String, &'a Var)>,
        gradients: &Gradients,
        lr: f64,
    ) -> Result<()> {
        self.steps += 1;
        let [beta1, beta2] = self.config.betas;
        let mean_correction = 1. - beta1.powf(self.steps as f64);
        let square_correction = 1. - beta2.powf(self.steps as f64);
        for (name, parameter) in parameters {
            let Some(gradient) = gradients.get(&name) else { continue };
            let is_weight = is_weight(&name, parameter);
            let moments = match self.moments.entry(name) {
                std::collections::btree_map::Entry::Occupied(entry) => entry.into_mut(),
                std::collections::btree_map::Entry::Vacant(entry) => {
                    // Not `zeros_like`: it keeps strides, and a moment is saved as it lies.
                    let zeros = || Tensor::zeros(gradient.shape(), gradient.dtype(), gradient.device());
                    entry.insert(Moments { mean: zeros()?, square: zeros()? })
                }
            };
            let is_decayed = self.config.decay_norms_and_biases || is_weight;
            let decay = if is_decayed { self.config.weight_decay } else { 0. };
            let update = Update {
                betas: self.config.betas,
                eps: self.config.eps,
                square_correction,
                rate: lr / mean_correction,
                kept: 1. - lr * decay,
            };
            if slices::can_lend([parameter.as_tensor(), gradient, &moments.mean, &moments.square]) {
                update.fused(parameter, gradient, moments)?;
            } else {
                update.composed(parameter, gradient, moments)?;
            }
        }
        Ok(())
    }

    /// The state by name, for a checkpoint.
    pub fn state(&self) -> impl Iterator<Item = (String, &Tensor)> {
        self.moments.iter().flat_map(|(name, moments)| {
            [(format!("{MEAN}{name}"), &moments.mean), (format!("{SQUARE}{name}"), &moments.square)]
        })
    }

    /// Goes on from the state of an optimiser that had taken `steps` steps. Returns the names that it
    /// does not know or whose other half is missing.
    pub fn restore(&mut self, steps: u64, state: &HashMap<String, Tensor>) -> Vec<String> {
        self.steps = steps;
        self.moments.clear();
        let mut unknown = Vec::new();
        for (key, tensor) in state {
            let partner = key.strip_prefix(MEAN).map(|name| (name, state.get(&format!("{SQUARE}{name}"))));
            match partner {
                Some((name, Some(square))) if square.dims() == tensor.dims() => {
                    let moments = Moments { mean: tensor.clone(), square: square.clone() };
                    self.moments.insert(name.to_string(), moments);
                }
                Some(_) => unknown.push(key.clone()),
                None if !key.starts_with(SQUARE) => unknown.push(key.clone()),
                None => {}
            }
        }
        unknown
    }
}

/// Whether a parameter is multiplied with what passes, as matrices and kernels are. Others are added or scale:
/// norms and biases, which are vectors, and the tokens and positions of a vision transformer.
fn is_weight(name: &str, parameter: &Var) -> bool {
    const ADDED: [&str; 3] = ["cls_token", "reg_token", "pos_embed"];
    parameter.rank() > 1 && !ADDED.iter().any(|added| name.rsplit('.').next() == Some(*added))
}

/// The numbers of a step.
#[derive(Debug, Clone, Copy)]
struct Update {
    betas: [f64; 2],
    eps: f64,
    /// `1 - beta2^t`.
    square_correction: f64,
    /// `lr / (1 - beta1^t)`.
    rate: f64,
    /// `1 - lr * weight_decay`.
    kept: f64,
}

impl Update {
    /// With elementary operations, on any device.
    fn composed(&self, parameter: &Var, gradient: &Tensor, moments: &mut Moments) -> Result<()> {
        let [beta1, beta2] = self.betas;
        moments.mean = ((&moments.mean * beta1)? + (gradient * (1. - beta1))?)?;
        moments.square = ((&moments.square * beta2)? + (gradient.sqr()? * (1. - beta2))?)?;
        let denominator = ((&moments.square / self.square_correction)?.sqrt()? + self.eps)?;
        let update = ((&moments.mean / denominator)? * self.rate)?;
        let decayed = (parameter.as_tensor().detach() * self.kept)?;
        Ok(parameter.set(&(decayed - update)?)?)
    }

    /// In one pass over everything, on all cores.
    fn fused(&self, parameter: &Var, gradient: &Tensor, moments: &Moments) -> Result<()> {
        let work = |gradient: &[f32]| {
            slices::change(parameter.as_tensor(), |parameter| {
                slices::change(&moments.mean, |mean| {
                    slices::change(&moments.square, |square| {
                        self.update(parameter, mean, square, gradient);
                        Ok(())
                    })
                })
            })
        };
        Ok(slices::read(gradient, work)??)
    }

    fn update(&self, parameter: &mut [f32], mean: &mut [f32], square: &mut [f32], gradient: &[f32]) {
        let [beta1, beta2] = self.betas.map(|beta| beta as f32);
        let [other1, other2] = self.betas.map(|beta| (1. - beta) as f32);
        let (eps, rate, kept) = (self.eps as f32, self.rate as f32, self.kept as f32);
        let correction = (1. / self.square_correction) as f32;
        let state = parameter.par_chunks_mut(slices::CHUNK).zip(mean.par_chunks_mut(slices::CHUNK));
        let state = state.zip(square.par_chunks_mut(slices::CHUNK)).zip(gradient.par_chunks(slices::CHUNK));
        state.for_each(|(((parameter, mean), square), gradient)| {
            let state = parameter.iter_mut().zip(mean).zip(square).zip(gradient);
            for (((parameter, mean), square), gradient) in state {
                *mean = *mean * beta1 + gradient * other1;
                *square = *square * beta2 + gradient * gradient * other2;
                let step = *mean / ((*square * correction).sqrt() + eps) * rate;
                *parameter = *parameter * kept - step;
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use candle_core::{DType, Device};

    use super::*;
    use crate::Schedule;

    /// Both sides compute in f64, in the same order but for the bias corrections.
    const TOLERANCE: f64 = 1e-9;

    #[test]
    fn twenty_steps_with_their_schedule_agree_with_pytorch() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/adamw.safetensors");
        let golden = candle_core::safetensors::load(path, &Device::Cpu).unwrap();
        let parameter = Var::from_tensor(&golden["initial"]).unwrap();
        let rates: Vec<f64> = golden["lr"].to_vec1().unwrap();
        let schedule = Schedule { peak: 5e-3, last: 5e-6, warmup: 5, total: 20 };
        let config = AdamWConfig { weight_decay: 5e-2, ..AdamWConfig::default() };
        let mut optimizer = AdamW::new(&config);
        for step in 0..20 {
            let lr = schedule.at(step);
            assert!((lr - rates[step as usize]).abs() < 1e-12, "rate of step {step}: {lr}");
            let loss = (parameter.as_tensor() - &golden["target"]).unwrap();
            let loss = loss.abs().unwrap().powf(1.5).unwrap().sum_all().unwrap();
            let mut gradients = Gradients::default();
            gradients.add([("p".into(), &parameter)], &loss.backward().unwrap()).unwrap();
            optimizer.step([("p".into(), &parameter)], &gradients, lr).unwrap();
            if step == 9 {
                // A restored optimiser goes on as the original would.
                let state = optimizer.state().map(|(name, tensor)| (name, tensor.clone())).collect();
                optimizer = AdamW::new(&config);
                assert!(optimizer.restore(10, &state).is_empty());
            }
            let expected = golden["trace"].get(step as usize).unwrap();
            let difference = (parameter.as_tensor() - expected).unwrap().abs().unwrap();
            let worst: f64 = difference.flatten_all().unwrap().max(0).unwrap().to_scalar().unwrap();
            assert!(worst < TOLERANCE, "step {step}: {worst:e}");
        }
    }

    #[test]
    fn the_fused_form_agrees_with_the_composed_one() {
        let count = 3 * slices::CHUNK / 2;
        let run = |dtype: DType| -> Vec<f64> {
            let values = |factor: usize| -> Vec<f64> {
                (0..count).map(|index| (index * factor % 1009) as f64 / 500. - 1.).collect()
            };
            let tensor = |factor| Tensor::new(values(factor), &Device::Cpu).unwrap().to_dtype(dtype).unwrap();
            let parameter = Var::from_tensor(&tensor(31)).unwrap();
            let mut optimizer = AdamW::new(&AdamWConfig { weight_decay: 0.1, ..AdamWConfig::default() });
            for factor in [7, 11, 13] {
                let mut gradients = Gradients::default();
                let loss = (parameter.as_tensor() * tensor(factor)).unwrap().sum_all().unwrap();
                gradients.add([("p".into(), &parameter)], &loss.backward().unwrap()).unwrap();
                optimizer.step([("p".into(), &parameter)], &gradients, 0.01).unwrap();
            }
            let state = optimizer.state().map(|(_, tensor)| tensor.clone());
            let all: Vec<Tensor> = std::iter::once(parameter.as_tensor().clone()).chain(state).collect();
            Tensor::cat(&all, 0).unwrap().to_dtype(DType::F64).unwrap().to_vec1().unwrap()
        };
        for (fused, composed) in run(DType::F32).iter().zip(run(DType::F64)) {
            // f32 against f64; all values are of order one.
            assert!((fused - composed).abs() < 1e-6, "{fused} {composed}");
        }
    }

    #[test]
    fn norms_biases_tokens_and_positions_decay_only_if_they_are_to() {
        let after = |decay_norms_and_biases| {
            let config = AdamWConfig { weight_decay: 0.5, decay_norms_and_biases, ..AdamWConfig::default() };
            let ones = |shape: &[usize]| {
                Var::from_tensor(&Tensor::ones(shape, candle_core::DType::F64, &Device::Cpu).unwrap())
                    .unwrap()
            };
            let shapes: [(&str, &[usize]); 5] = [
                ("encoder.blocks.0.attn.qkv.weight", &[1, 1]),
                ("encoder.blocks.0.norm1.weight", &[1]),
                ("encoder.cls_token", &[1, 1, 1]),
                ("encoder.reg_token", &[1, 1, 1]),
                ("encoder.pos_embed", &[1, 1, 1]),
            ];
            let variables = shapes.map(|(name, shape)| (name, ones(shape)));
            let parameters = || variables.iter().map(|(name, variable)| (name.to_string(), variable));
            // A gradient of zero leaves the decay alone.
            let nothing = |variable: &Var| {
                (variable.as_tensor() * variable.zeros_like().unwrap()).unwrap().sum_all().unwrap()
            };
            let loss =
                parameters().map(|(_, variable)| nothing(variable)).reduce(|all, one| (all + one).unwrap());
            let loss = loss.unwrap();
            let mut gradients = Gradients::default();
            gradients.add(parameters(), &loss.backward().unwrap()).unwrap();
            AdamW::new(&config).step(parameters(), &gradients, 0.1).unwrap();
            variables.each_ref().map(|(_, variable)| variable.sum_all().unwrap().to_scalar::<f64>().unwrap())
        };
        assert_eq!(after(true), [0.95; 5]);
        assert_eq!(after(false), [0.95, 1., 1., 1., 1.]);
    }
}
