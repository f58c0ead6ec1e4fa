//! New values, made chunk by chunk on all cores.
//!
//! `vec![0.; length]` has one thread write zeros through memory before the others begin. Here every task clears its own
//! chunk, which is then in its core's cache.

use std::mem::MaybeUninit;

use rayon::prelude::*;

/// As many values as `length`; every task is given the number of its chunk, and the chunk full of zeros.
#[allow(unsafe_code)]
pub(super) fn filled(length: usize, chunk: usize, task: impl Fn(usize, &mut [f32]) + Sync) -> Vec<f32> {
    let mut values: Vec<f32> = Vec::with_capacity(length);
    let room = &mut values.spare_capacity_mut()[..length];
    room.par_chunks_mut(chunk.max(1)).enumerate().for_each(|(index, room)| {
        room.fill(MaybeUninit::new(0.));
        // SAFETY: all of it was written in the line before.
        task(index, unsafe { room.assume_init_mut() });
    });
    // SAFETY: the chunks are all of the first `length` values, and each was written by its task.
    unsafe { values.set_len(length) };
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_chunk_is_given_once_and_empty() {
        for (length, chunk) in [(0, 3), (1, 3), (9, 3), (10, 3), (10, 100), (5, 0)] {
            let values = filled(length, chunk, |index, values| {
                assert!(values.iter().all(|value| *value == 0.));
                values.iter_mut().for_each(|value| *value += index as f32 + 1.);
            });
            let expected: Vec<f32> = (0..length).map(|place| (place / chunk.max(1)) as f32 + 1.).collect();
            assert_eq!(values, expected, "{length} {chunk}");
        }
    }
}
