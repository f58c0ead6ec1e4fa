//! The share of correct predictions.

/// The share of predictions that are the label; 0 if there are none.
pub fn accuracy(predicted: &[usize], labels: &[usize]) -> f64 {
    let correct = predicted.iter().zip(labels).filter(|(predicted, label)| predicted == label).count();
    correct as f64 / labels.len().max(1) as f64
}
