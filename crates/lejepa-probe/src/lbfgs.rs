//! Limited-memory BFGS with a diagonal preconditioner, for smooth convex functions.
//!
//! Each step goes along `-H g`, where `H` is the inverse Hessian as the last [`MEMORY`] steps show it, on
//! top of a diagonal guess; a step is shortened until the function falls enough.

use std::collections::VecDeque;

use crate::Result;

/// Steps that are remembered.
pub(crate) const MEMORY: usize = 40;
/// The share of the promised fall that a step must bring (Armijo).
const SUFFICIENT: f64 = 1e-4;
/// How often a step is shortened before the search gives up: the minimum is as near as numbers allow.
const SHORTENINGS: usize = 25;

/// When to stop.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stop {
    /// Steps at most.
    pub(crate) steps: usize,
    /// Newton's decrement `g H g` relative to the value at which a point counts as the minimum: the value is
    /// about half as much above it.
    pub(crate) decrement: f64,
}

/// One remembered step.
struct Pair {
    step: Vec<f64>,
    change: Vec<f64>,
    /// `1 / (step . change)`
    curvature: f64,
}

/// What is known of a function's curvature.
#[derive(Default)]
pub(crate) struct Lbfgs {
    memory: VecDeque<Pair>,
}

impl Lbfgs {
    /// The function has got `sum curvatures x^2 / 2` more: what is remembered stays true.
    pub(crate) fn add_quadratic(&mut self, curvatures: &[f64]) {
        self.memory.retain_mut(|pair| {
            let terms = pair.change.iter_mut().zip(&pair.step).zip(curvatures);
            terms.for_each(|((change, step), curvature)| *change += curvature * step);
            let curvature = dot(&pair.step, &pair.change);
            pair.curvature = 1. / curvature;
            curvature > least_curvature(&pair.step, &pair.change)
        });
    }

    /// Moves `point` to the minimum. `evaluate` writes the gradient and returns the value, or an error that ends
    /// the search; `inverse` is a guess of the inverse Hessian's diagonal. Returns the number of evaluations.
    pub(crate) fn minimise(
        &mut self,
        point: &mut Vec<f64>,
        inverse: &[f64],
        stop: Stop,
        mut evaluate: impl FnMut(&[f64], &mut [f64]) -> Result<f64>,
    ) -> Result<usize> {
        let memory = &mut self.memory;
        let mut gradient = vec![0.; point.len()];
        let mut value = evaluate(point, &mut gradient)?;
        let mut evaluations = 1;
        let (mut next, mut next_gradient) = (point.clone(), gradient.clone());
        for _ in 0..stop.steps {
            let mut direction = direction(&gradient, inverse, memory);
            let mut slope = dot(&direction, &gradient);
            if slope >= 0. {
                // Rounding errors have spoilt the memory.
                memory.clear();
                direction = gradient.iter().zip(inverse).map(|(entry, scale)| -entry * scale).collect();
                slope = dot(&direction, &gradient);
            }
            if -slope <= stop.decrement * value.abs() {
                break;
            }
            let mut length = 1.;
            let mut found = false;
            for _ in 0..SHORTENINGS {
                for ((next, from), along) in next.iter_mut().zip(&*point).zip(&direction) {
                    *next = from + length * along;
                }
                let next_value = evaluate(&next, &mut next_gradient)?;
                evaluations += 1;
                if next_value <= value + SUFFICIENT * length * slope {
                    value = next_value;
                    found = true;
                    break;
                }
                // The minimum of the parabola through what is known, within reason.
                let parabola = -slope * length * length / (2. * (next_value - value - slope * length));
                length = if parabola.is_finite() {
                    parabola.clamp(0.1 * length, 0.5 * length)
                } else {
                    0.1 * length
                };
            }
            if !found {
                break;
            }
            let step: Vec<f64> = next.iter().zip(&*point).map(|(next, from)| next - from).collect();
            let change: Vec<f64> =
                next_gradient.iter().zip(&gradient).map(|(next, from)| next - from).collect();
            let curvature = dot(&step, &change);
            if curvature > least_curvature(&step, &change) {
                if memory.len() == MEMORY {
                    memory.pop_front();
                }
                memory.push_back(Pair { step, change, curvature: 1. / curvature });
            }
            std::mem::swap(point, &mut next);
            std::mem::swap(&mut gradient, &mut next_gradient);
        }
        Ok(evaluations)
    }
}

/// Below it rounding decides.
fn least_curvature(step: &[f64], change: &[f64]) -> f64 {
    1e-14 * dot(change, change).sqrt() * dot(step, step).sqrt()
}

/// `-H g` by the two-loop recursion.
fn direction(gradient: &[f64], inverse: &[f64], memory: &VecDeque<Pair>) -> Vec<f64> {
    let mut direction: Vec<f64> = gradient.iter().map(|entry| -entry).collect();
    let mut shares = Vec::with_capacity(memory.len());
    for pair in memory.iter().rev() {
        let share = pair.curvature * dot(&pair.step, &direction);
        add(&mut direction, -share, &pair.change);
        shares.push(share);
    }
    // How the guess of the diagonal compares with the last step.
    let scale = memory.back().map_or(1., |pair| {
        let guessed: f64 =
            pair.change.iter().zip(inverse).map(|(change, scale)| change * change * scale).sum();
        1. / (pair.curvature * guessed)
    });
    direction.iter_mut().zip(inverse).for_each(|(entry, inverse)| *entry *= scale * inverse);
    for (pair, share) in memory.iter().zip(shares.into_iter().rev()) {
        let correction = share - pair.curvature * dot(&pair.change, &direction);
        add(&mut direction, correction, &pair.step);
    }
    direction
}

fn dot(left: &[f64], right: &[f64]) -> f64 {
    // Several sums side by side, which a single one would wait for.
    let ((left, left_rest), (right, right_rest)) = (left.as_chunks::<8>(), right.as_chunks::<8>());
    let mut sums = [0.; 8];
    for (left, right) in left.iter().zip(right) {
        for lane in 0..8 {
            sums[lane] += left[lane] * right[lane];
        }
    }
    let rest = left_rest.iter().zip(right_rest).map(|(left, right)| left * right);
    sums.into_iter().chain(rest).sum()
}

fn add(target: &mut [f64], factor: f64, values: &[f64]) {
    target.iter_mut().zip(values).for_each(|(target, value)| *target += factor * value);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_minimum_of_rosenbrocks_valley_is_found() {
        let mut point = vec![-1.2, 1.];
        let stop = Stop { steps: 200, decrement: 1e-12 };
        Lbfgs::default()
            .minimise(&mut point, &[1.; 2], stop, |point, gradient| {
                let (x, y) = (point[0], point[1]);
                gradient[0] = -400. * x * (y - x * x) - 2. * (1. - x);
                gradient[1] = 200. * (y - x * x);
                Ok(100. * (y - x * x).powi(2) + (1. - x).powi(2))
            })
            .unwrap();
        assert!((point[0] - 1.).abs() < 1e-6 && (point[1] - 1.).abs() < 1e-6, "{point:?}");
    }

    #[test]
    fn the_right_diagonal_solves_a_quadratic_at_once() {
        let scales = [1e-4, 1., 1e4];
        let mut point = vec![3., -2., 1.];
        let stop = Stop { steps: 5, decrement: 1e-12 };
        let evaluations = Lbfgs::default().minimise(
            &mut point,
            &scales.map(|scale| 1. / scale),
            stop,
            |point, gradient| {
                let terms = point.iter().zip(scales).zip(gradient);
                // Its minimum is 1: decrements are relative to the value.
                let values = terms.map(|((x, scale), gradient)| {
                    *gradient = scale * x;
                    scale * x * x / 2.
                });
                Ok(1. + values.sum::<f64>())
            },
        );
        assert_eq!(evaluations.unwrap(), 2);
    }
}
