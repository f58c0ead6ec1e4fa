//! Parameters after linfa's conventions: unchecked ones become valid ones, and those fit.

use linfa::ParamGuard;

use crate::{Error, Estimator};

/// Settings of a probe that were not checked yet: `Knn::params(20).temperature(0.1)`.
///
/// linfa's `Fit` checks and fits at once; `check` gives [`ValidParams`], which only fit.
#[derive(Debug, Clone, PartialEq)]
pub struct Params<P>(ValidParams<P>);

/// Settings of a probe that were checked.
#[derive(Debug, Clone, PartialEq)]
pub struct ValidParams<P>(P);

impl<P> From<P> for Params<P> {
    fn from(settings: P) -> Self {
        Self(ValidParams(settings))
    }
}

impl<P> Params<P> {
    /// The same parameters with one of them changed.
    pub(crate) fn with(mut self, change: impl FnOnce(&mut P)) -> Self {
        change(&mut self.0.0);
        self
    }
}

impl<P> ValidParams<P> {
    /// The settings.
    pub fn settings(&self) -> &P {
        &self.0
    }
}

impl<P: Estimator> ParamGuard for Params<P> {
    type Checked = ValidParams<P>;
    type Error = Error;

    fn check_ref(&self) -> Result<&Self::Checked, Error> {
        self.0.0.check()?;
        Ok(&self.0)
    }

    fn check(self) -> Result<Self::Checked, Error> {
        self.0.0.check()?;
        Ok(self.0)
    }
}
