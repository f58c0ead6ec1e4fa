//! The largest of many products, as they come.

use crate::real::Real;
use crate::tiles::Visitor;

/// Products that are looked at together: nearly always none of them is large enough.
pub(crate) const LANES: usize = 16;

/// Finds the rows with the largest products; of equals the first.
pub(crate) struct Nearest {
    /// How many; at least 1.
    pub(crate) count: usize,
}

/// Rows with large products, among them the largest.
pub(crate) struct Found<T> {
    count: usize,
    /// What a product must exceed.
    threshold: T,
    rows: Vec<(u32, T)>,
}

impl<T: Real> Visitor<T> for Nearest {
    type State = Found<T>;

    fn start(&self, _query: usize) -> Found<T> {
        Found { count: self.count, threshold: T::LOWEST, rows: Vec::new() }
    }

    #[inline(always)]
    fn visit(&self, found: &mut Found<T>, first: usize, products: &[T]) {
        for (lanes, first) in products.chunks(LANES).zip((first..).step_by(LANES)) {
            if any_from(found.threshold, lanes) {
                for (row, &product) in (first..).zip(lanes) {
                    if product > found.threshold {
                        found.rows.push((row as u32, product));
                    }
                }
                if found.rows.len() >= 2 * found.count + LANES {
                    found.prune();
                }
            }
        }
    }
}

impl<T: Real> Found<T> {
    /// Forgets all but the largest. What comes later must exceed the least of them: of equals the first stay.
    fn prune(&mut self) {
        if self.rows.len() >= self.count {
            self.rows.select_nth_unstable_by(self.count - 1, before);
            self.rows.truncate(self.count);
            self.threshold = self.rows[self.count - 1].1;
        }
    }

    /// The rows with the largest products, the largest first.
    pub(crate) fn rows(&mut self) -> Vec<(u32, T)> {
        self.prune();
        self.rows.sort_unstable_by(before);
        std::mem::take(&mut self.rows)
    }
}

/// Whether any is as large as that, or larger.
#[inline(always)]
pub(crate) fn any_from<T: Real>(least: T, products: &[T]) -> bool {
    // Without a way out in between, so that they are compared side by side.
    match products.first_chunk::<LANES>() {
        Some(lanes) => lanes.iter().fold(false, |any, product| any | (*product >= least)),
        None => products.iter().any(|product| *product >= least),
    }
}

/// The largest of all and of `least`.
#[inline(always)]
pub(crate) fn largest<T: Real>(least: T, products: &[T]) -> T {
    let larger = |left: T, right: T| if right > left { right } else { left };
    let (chunks, rest) = products.as_chunks::<LANES>();
    let mut lanes = [least; LANES];
    for chunk in chunks {
        lanes.iter_mut().zip(chunk).for_each(|(lane, next)| *lane = larger(*lane, *next));
    }
    lanes.into_iter().chain(rest.iter().copied()).fold(least, larger)
}

fn before<T: Real>(left: &(u32, T), right: &(u32, T)) -> std::cmp::Ordering {
    right.1.into().total_cmp(&left.1.into()).then(left.0.cmp(&right.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_are_found_and_of_equals_the_first() {
        let products: Vec<f32> = (0..1000).map(|row| ((row * 37) % 100) as f32).collect();
        let nearest = Nearest { count: 15 };
        let mut found: Found<f32> = nearest.start(0);
        for (first, tile) in products.chunks(300).enumerate().map(|(index, tile)| (index * 300, tile)) {
            nearest.visit(&mut found, first, tile);
        }
        let mut expected: Vec<(u32, f32)> = (0..).zip(products).collect();
        expected.sort_by(before);
        assert_eq!(found.rows(), expected[..15]);
    }
}
