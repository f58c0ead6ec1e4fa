//! The allocator of the program.

/// Training makes and drops large tensors all the time; this allocator keeps their memory, where the
/// system's gives it back and takes it again page by page.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Keeps it for good: otherwise what a step has freed for a few milliseconds goes back too, and clearing
/// pages anew takes up to a quarter of the next step.
#[allow(unsafe_code)]
pub(crate) fn keep_memory() {
    // SAFETY: the function stores a number in a table of options; the index is in its range.
    unsafe { libmimalloc_sys::mi_option_set(PURGE_DELAY, NEVER) }
}

/// `mi_option_purge_delay` of `mimalloc.h`, in milliseconds; the bindings have no name for it.
const PURGE_DELAY: libmimalloc_sys::mi_option_t = 15;
const NEVER: std::ffi::c_long = -1;

#[cfg(test)]
mod tests {
    #[test]
    #[allow(unsafe_code)]
    fn the_number_is_that_of_the_delay() {
        use super::*;
        // SAFETY: reads a number out of the same table.
        let delay = || unsafe { libmimalloc_sys::mi_option_get(PURGE_DELAY) };
        assert_eq!(delay(), 10, "what this version of mimalloc starts with");
        keep_memory();
        assert_eq!(delay(), NEVER);
    }
}
