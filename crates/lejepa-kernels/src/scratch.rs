//! Memory for a task that the next task of the same thread uses again.

use std::cell::RefCell;

thread_local! {
    static MEMORY: RefCell<Vec<f32>> = const { RefCell::new(Vec::new()) };
}

/// Gives `work` as many slices as there are lengths; what they hold is undefined.
pub(super) fn with_scratch<const N: usize, R>(
    lengths: [usize; N],
    work: impl FnOnce([&mut [f32]; N]) -> R,
) -> R {
    let mut memory = MEMORY.take();
    let padded = lengths.map(|length| length.next_multiple_of(16));
    let total = padded.iter().sum();
    if memory.len() < total {
        memory.resize(total, 0.);
    }
    let mut rest = &mut memory[..];
    let slices = std::array::from_fn(|index| {
        let (slice, after) = std::mem::take(&mut rest).split_at_mut(padded[index]);
        rest = after;
        &mut slice[..lengths[index]]
    });
    let result = work(slices);
    MEMORY.set(memory);
    result
}
