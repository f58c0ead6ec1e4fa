//! Loops over slices with the widest vectors of the processor.

use pulp::{Arch, NullaryFnOnce};

/// Runs `work`, which has to be marked `#[inline(always)]`: what is not part of the function that a processor's
/// instructions are switched on for does without them. Loops must be free of branches to be vectorised.
pub(super) fn wide<R>(work: impl FnMut() -> R) -> R {
    Arch::new().dispatch(Wide(work))
}

struct Wide<F>(F);

impl<R, F: FnMut() -> R> NullaryFnOnce for Wide<F> {
    type Output = R;

    #[inline(always)]
    fn call(mut self) -> R {
        // Not by value, as Pulp's own form for closures does it: that call is not inlined.
        (self.0)()
    }
}
