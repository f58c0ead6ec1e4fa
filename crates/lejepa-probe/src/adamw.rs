//! AdamW, with a learning rate that rises and then falls along a cosine.

use std::f64::consts::PI;

const BETAS: [f64; 2] = [0.9, 0.999];
const EPSILON: f64 = 1e-8;

/// The state of an optimisation.
pub(crate) struct AdamW {
    weight_decay: f64,
    step: i32,
    first: Vec<f64>,
    second: Vec<f64>,
}

impl AdamW {
    pub(crate) fn new(parameters: usize, weight_decay: f64) -> Self {
        Self { weight_decay, step: 0, first: vec![0.; parameters], second: vec![0.; parameters] }
    }

    /// One step along the gradient.
    pub(crate) fn step(&mut self, parameters: &mut [f64], gradient: &[f64], rate: f64) {
        self.step += 1;
        let [one, two] = BETAS;
        let corrections = BETAS.map(|beta| 1. - beta.powi(self.step));
        let moments = self.first.iter_mut().zip(&mut self.second);
        for ((parameter, gradient), (first, second)) in parameters.iter_mut().zip(gradient).zip(moments) {
            *first = one * *first + (1. - one) * gradient;
            *second = two * *second + (1. - two) * gradient * gradient;
            let direction = *first / corrections[0] / ((*second / corrections[1]).sqrt() + EPSILON);
            *parameter -= rate * (self.weight_decay * *parameter + direction);
        }
    }
}

/// The share of the learning rate at a step: linear up to 1 over `warmup` steps, then a cosine to 0.
pub(crate) fn schedule(step: usize, warmup: usize, steps: usize) -> f64 {
    match step < warmup {
        true => (step + 1) as f64 / warmup as f64,
        false => {
            let done = (step - warmup) as f64 / steps.saturating_sub(warmup).max(1) as f64;
            0.5 * (1. + (PI * done).cos())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// PyTorch's first step is `rate * sign(gradient)` after the decay.
    #[test]
    fn the_first_step_has_the_length_of_the_rate() {
        let mut parameters = vec![2., -1.];
        AdamW::new(2, 0.1).step(&mut parameters, &[3., -0.5], 0.01);
        assert!((parameters[0] - (2. - 0.01 * 0.2 - 0.01)).abs() < 1e-8);
        assert!((parameters[1] - (-1. + 0.01 * 0.1 + 0.01)).abs() < 1e-8);
    }

    #[test]
    fn the_rate_rises_and_falls() {
        let rates: Vec<f64> = (0..10).map(|step| schedule(step, 2, 10)).collect();
        assert_eq!(rates[..3], [0.5, 1., 1.]);
        assert!(rates[2..].is_sorted_by(|left, right| left >= right));
        assert!(rates[9] < 0.1);
    }
}
