//! The gradient audit: before the first step every parameter must receive a finite gradient that is
//! not zero. Candle drops gradients of some operations without an error, and a model trains on with
//! frozen layers.

use candle_core::DType;

use lejepa_data::Batch;

use crate::{Error, Gradients, Objective, Purpose, Result};

/// What is said of a gradient that is no number.
pub(crate) const NOT_FINITE: &str = "a gradient that is not finite";

/// Enough that a gradient which is zero is no coincidence.
const SAMPLES: usize = 16;

/// Fails with the names of all parameters that would not learn from such a batch. The model stays as it is; blocks
/// that a step would pass over are not, for what is not used in one step is no fault.
pub fn audit(objective: &Objective<'_>, batch: &Batch) -> Result<()> {
    let few = batch.clone().first_samples(SAMPLES);
    let (_terms, gradients) = Objective { purpose: Purpose::Audit, ..*objective }.gradients(&few)?;
    audit_gradients(objective.model.trainable().map(|(name, _)| name), &gradients)
}

/// Fails with the names of all parameters that would not learn.
pub fn audit_gradients(names: impl IntoIterator<Item = String>, gradients: &Gradients) -> Result<()> {
    let (mut missing, mut zero, mut not_finite) = (Vec::new(), Vec::new(), Vec::new());
    for name in names {
        let Some(gradient) = gradients.get(&name) else {
            missing.push(name);
            continue;
        };
        let largest: f64 = gradient.abs()?.flatten_all()?.max(0)?.to_dtype(DType::F64)?.to_scalar()?;
        // `max` may pass over a NaN; a sum does not.
        let sum: f64 = gradient.sum_all()?.to_dtype(DType::F64)?.to_scalar()?;
        if !(largest.is_finite() && sum.is_finite()) {
            not_finite.push(name);
        } else if largest == 0. {
            zero.push(name);
        }
    }
    for (problem, names) in [("no gradient", missing), (NOT_FINITE, not_finite), ("a zero gradient", zero)] {
        if !names.is_empty() {
            return Err(Error::Audit { problem, names });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use candle_core::{Device, Tensor, Var};

    use super::*;

    fn variable(values: &[f32]) -> Var {
        Var::from_tensor(&Tensor::new(values, &Device::Cpu).unwrap()).unwrap()
    }

    fn audit(loss: Tensor, names: [(&str, &Var); 2]) -> String {
        let mut gradients = Gradients::default();
        let parameters = || names.map(|(name, variable)| (name.to_string(), variable));
        gradients.add(parameters(), &loss.sum_all().unwrap().backward().unwrap()).unwrap();
        audit_gradients(parameters().map(|(name, _)| name), &gradients)
            .map_or_else(|error| error.to_string(), |()| "passed".into())
    }

    #[test]
    fn a_healthy_graph_passes() {
        let (left, right) = (variable(&[1., 2.]), variable(&[3., 4.]));
        assert_eq!(audit((&*left * &*right).unwrap(), [("left", &left), ("right", &right)]), "passed");
    }

    #[test]
    fn each_way_not_to_learn_is_named() {
        let (left, right) = (variable(&[1., 2.]), variable(&[3., 4.]));
        let names = [("left", &left), ("right", &right)];
        assert_eq!(audit(left.sqr().unwrap(), names), "gradient audit failed: no gradient for: right");

        let silenced = (right.as_tensor() * right.zeros_like().unwrap()).unwrap();
        let message = audit((left.sqr().unwrap() + silenced).unwrap(), names);
        assert_eq!(message, "gradient audit failed: a zero gradient for: right");

        let infinite = (right.as_tensor() * f64::NAN).unwrap();
        let message = audit((left.sqr().unwrap() + infinite).unwrap(), names);
        assert_eq!(message, "gradient audit failed: a gradient that is not finite for: right");
    }

    #[test]
    fn candles_fused_softmax_is_caught() {
        let (left, right) = (variable(&[1., 2.]), variable(&[3., 4.]));
        let frozen = candle_nn::ops::softmax_last_dim(&right).unwrap();
        let message = audit((left.sqr().unwrap() + frozen).unwrap(), [("left", &left), ("right", &right)]);
        assert_eq!(message, "gradient audit failed: no gradient for: right");
    }
}
