//! How the program's memory is managed.

/// Keeps freed memory for the next tensor. Otherwise what a training step frees goes back to the system and is
/// taken again page by page, and clearing the pages anew takes up to a quarter of the next step. Whether the
/// system's allocator could be told; there is nothing to tell to any but glibc's.
#[allow(unsafe_code)]
pub(crate) fn keep_memory() -> bool {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        // No tensor by a mapping of its own, more than is needed from the system at a time, and nothing back.
        let options = [(libc::M_MMAP_MAX, 0), (libc::M_TOP_PAD, 64 << 20), (libc::M_TRIM_THRESHOLD, -1)];
        // SAFETY: the function stores a number in the allocator's own table, under the allocator's lock.
        options.into_iter().all(|(option, value)| unsafe { libc::mallopt(option, value) } == 1)
    }
    #[cfg(not(all(target_os = "linux", target_env = "gnu")))]
    false
}

/// Gives the memory back to the system that [`keep_memory`] keeps, so that what is needed next can be measured.
#[allow(unsafe_code)]
pub(crate) fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: frees pages that the allocator holds and nobody uses, under the allocator's locks.
    unsafe {
        libc::malloc_trim(0);
    }
}

#[cfg(all(test, target_os = "linux", target_env = "gnu"))]
mod tests {
    #[test]
    #[allow(unsafe_code)]
    fn a_tensor_is_not_mapped_by_itself() {
        // SAFETY: reads the allocator's counts.
        let mapped = || unsafe { libc::mallinfo2() }.hblks;
        assert!(super::keep_memory());
        let before = mapped();
        let tensor = std::hint::black_box(vec![1u8; 20 << 20]);
        assert_eq!(mapped(), before);
        drop(tensor);
    }
}
