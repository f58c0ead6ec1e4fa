//! The running statistics of a model, as they were before a step: a forward pass moves them before anybody
//! knows whether the step is finite.

use candle_core::{Tensor, Var};

use crate::divergence::is_finite;
use crate::{Model, Result};

/// A copy of all running statistics.
pub(crate) struct Statistics<'a> {
    kept: Vec<(String, &'a Var, Tensor)>,
}

impl<'a> Statistics<'a> {
    /// Copies what is there now; a few thousand numbers.
    pub(crate) fn of(model: &'a Model) -> Result<Self> {
        let mut kept = Vec::new();
        for (part, parameters) in model.parts() {
            for (name, buffer) in parameters.buffers() {
                kept.push((format!("{part}.{name}"), buffer, buffer.as_tensor().copy()?));
            }
        }
        Ok(Self { kept })
    }

    /// The name of the first that is not finite now.
    pub(crate) fn first_not_finite(&self) -> Result<Option<&str>> {
        for (name, now, _) in &self.kept {
            if !is_finite(now.as_tensor())? {
                return Ok(Some(name));
            }
        }
        Ok(None)
    }

    /// Puts all of them back.
    pub(crate) fn restore(&self) -> Result<()> {
        for (_, now, before) in &self.kept {
            now.set(before)?;
        }
        Ok(())
    }
}
