//! Which taps of a kernel meet a place, along each axis.
//!
//! Forward, the taps that meet an output lie on consecutive inputs. Backward, an input is met by every `stride`-th tap,
//! the last one first, and the outputs that they belong to are consecutive. Kernels are therefore packed in an order in
//! which the taps of either are consecutive too.

use crate::{MapSize, Windows};

/// The taps that meet a target: `count` of them from `tap` on, in the order of packing; the first meets `source`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Reach {
    pub(super) source: usize,
    pub(super) tap: usize,
    pub(super) count: usize,
    /// Targets of a kind are met by the same taps.
    pub(super) kind: usize,
}

/// For every target place.
#[derive(Debug)]
pub(super) struct Reaches {
    pub(super) source: MapSize,
    pub(super) target: MapSize,
    pub(super) rows: Vec<Reach>,
    pub(super) columns: Vec<Reach>,
    /// Along one axis, in the order of packing.
    pub(super) taps: Vec<usize>,
}

impl Reaches {
    /// Outputs from inputs.
    pub(super) fn forward(windows: &Windows) -> Self {
        let Windows { window, input, output, .. } = *windows;
        let along = |targets: usize, sources: usize| {
            by_kind((0..targets).map(|target| {
                let (taps, source) = windows.clip(target, sources);
                [source, taps.start, taps.len()]
            }))
        };
        Self {
            source: input,
            target: output,
            rows: along(output.height, input.height),
            columns: along(output.width, input.width),
            taps: (0..window.kernel).collect(),
        }
    }

    /// Inputs from outputs.
    pub(super) fn backward(windows: &Windows) -> Self {
        let Windows { window, input, output, .. } = *windows;
        let (kernel, stride) = (window.kernel, window.stride);
        let taps: Vec<usize> = (0..stride).flat_map(|rest| (rest..kernel).step_by(stride).rev()).collect();
        let along = |targets: usize, sources: usize| {
            by_kind((0..targets).map(|target| {
                let place = target + window.padding;
                let meets = |tap: usize| {
                    tap <= place && (place - tap).is_multiple_of(stride) && (place - tap) / stride < sources
                };
                let mut met = taps.iter().enumerate().filter(|(_, tap)| meets(**tap));
                let Some((first, &tap)) = met.next() else { return [0; 3] };
                [(place - tap) / stride, first, 1 + met.count()]
            }))
        };
        Self {
            source: output,
            target: input,
            rows: along(input.height, output.height),
            columns: along(input.width, output.width),
            taps,
        }
    }

    /// Along one axis: one more than the largest kind.
    pub(super) fn kinds(reaches: &[Reach]) -> usize {
        reaches.iter().map(|reach| reach.kind + 1).max().unwrap_or(0)
    }
}

fn by_kind(reaches: impl Iterator<Item = [usize; 3]>) -> Vec<Reach> {
    let mut kinds = Vec::new();
    reaches
        .map(|[source, tap, count]| {
            let kind = kinds.iter().position(|known| *known == (tap, count)).unwrap_or_else(|| {
                kinds.push((tap, count));
                kinds.len() - 1
            });
            Reach { source, tap, count, kind }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Window;

    #[test]
    fn both_ways_have_the_same_pairs_of_places() {
        for (kernel, stride, padding, length) in
            [(3, 1, 1, 5), (3, 2, 1, 6), (7, 2, 3, 9), (1, 2, 0, 5), (2, 3, 2, 8), (5, 3, 1, 11)]
        {
            let size = MapSize { height: length, width: length };
            let windows = Windows::new(Window { kernel, stride, padding }, 1, size).unwrap();
            let (forward, backward) = (Reaches::forward(&windows), Reaches::backward(&windows));
            let triples = |reaches: &Reaches| -> Vec<[usize; 3]> {
                let targets = reaches.rows.iter().enumerate();
                targets
                    .flat_map(|(target, reach)| {
                        (0..reach.count)
                            .map(move |step| [target, reach.source + step, reaches.taps[reach.tap + step]])
                    })
                    .collect()
            };
            let mut turned: Vec<_> =
                triples(&backward).into_iter().map(|[to, from, tap]| [from, to, tap]).collect();
            turned.sort_unstable();
            assert_eq!(triples(&forward), turned, "{windows:?}");
            for (output, input, tap) in
                triples(&forward).iter().map(|[output, input, tap]| (output, input, tap))
            {
                assert_eq!(output * stride + tap, input + padding);
            }
        }
    }
}
