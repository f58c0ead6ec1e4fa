//! A slice without its mean.

/// The samples' mean and how far each is from it.
pub(super) struct Centred {
    pub(super) mean: f64,
    pub(super) deviations: Vec<f64>,
    /// The sum of the squared deviations.
    pub(super) squares: f64,
}

impl Centred {
    pub(super) fn new(samples: &[f64]) -> Self {
        // Summed from the first sample on, so that equal samples have exactly no deviations.
        let origin = samples.first().copied().unwrap_or(f64::NAN);
        let shift: f64 = samples.iter().map(|sample| sample - origin).sum();
        let mean = origin + shift / samples.len() as f64;
        let deviations: Vec<f64> = samples.iter().map(|sample| sample - mean).collect();
        let squares = deviations.iter().map(|deviation| deviation * deviation).sum();
        Self { mean, deviations, squares }
    }

    /// The unbiased variance.
    pub(super) fn variance(&self) -> f64 {
        self.squares / (self.deviations.len() as f64 - 1.)
    }
}
