//! Values that a forward pass leaves to the backward pass.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Values that wait for the backward pass, which takes them: their memory is free while the rest of the graph goes
/// back. For those who go back a second time there are none.
pub(crate) struct Kept<T>(Mutex<Option<T>>);

impl<T> Default for Kept<T> {
    fn default() -> Self {
        Self(Mutex::new(None))
    }
}

impl<T> Kept<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(Mutex::new(Some(value)))
    }

    pub(crate) fn keep(&self, value: T) {
        *self.lock() = Some(value);
    }

    pub(crate) fn take(&self) -> Option<T> {
        self.lock().take()
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Option<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
