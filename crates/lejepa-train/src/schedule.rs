//! The learning rate as a pure function of the step: linear warm-up, then cosine.

use std::f64::consts::PI;

/// Warms up from 1 % of the rate, then falls along a cosine.
#[derive(Debug, Clone, PartialEq)]
pub struct Schedule {
    /// The rate after warm-up.
    pub peak: f64,
    /// The rate at the end.
    pub last: f64,
    /// Steps of warm-up.
    pub warmup: u64,
    /// All steps.
    pub total: u64,
}

impl Schedule {
    /// The rate of the very first step, as a share of the peak.
    const START: f64 = 0.01;

    /// The learning rate at a step.
    pub fn at(&self, step: u64) -> f64 {
        if step < self.warmup {
            let share = step as f64 / self.warmup as f64;
            return self.peak * (Self::START + (1. - Self::START) * share);
        }
        let length = self.total.saturating_sub(self.warmup).max(1);
        let share = (step - self.warmup).min(length) as f64 / length as f64;
        self.last + (self.peak - self.last) * (1. + (PI * share).cos()) / 2.
    }
}
