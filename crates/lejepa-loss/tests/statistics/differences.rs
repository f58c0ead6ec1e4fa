//! Gradients against differences of values, and what the paper says about their size.

use lejepa_loss::{EppsPulley, Moments, Statistic};

use super::{gradient, largest, statistics};

/// Relative to the sample, or to 1 for small ones: less would leave few digits of the difference.
const STEP: f64 = 1e-4;
/// The square of the step times a third derivative, that of the highest moment being the largest.
const TRUNCATION: f64 = 2e-6;
/// Roundings of a value, of which the step makes more.
const ROUNDING: f64 = 1e-14;

/// Distinct samples in no order: a crooked grid over (-1.5, 1.5), or alternating signs with
/// magnitudes up to 1e4 in equal ratios. Neighbours are further apart than two steps.
fn slices(count: usize) -> [Vec<f64>; 2] {
    let shuffled = |index: usize| (index * 37 % count) as f64;
    let near = |index| {
        let place = (shuffled(index) + 0.5) / count as f64;
        3. * place - 1.2 + 0.3 * place * place
    };
    let far = |index| {
        let rank = shuffled(index);
        let sign = if rank % 2. == 0. { 1. } else { -1. };
        sign * 10f64.powf(4. * (rank + 1.) / count as f64)
    };
    [(0..count).map(near).collect(), (0..count).map(far).collect()]
}

#[test]
fn gradients_are_differences_of_values() {
    for count in [1, 2, 3, 7, 100] {
        for (samples, (name, statistic)) in
            slices(count).iter().flat_map(|slice| statistics().into_iter().map(move |named| (slice, named)))
        {
            if count < statistic.least_samples() {
                continue;
            }
            let exact = gradient(&*statistic, samples);
            let scale = largest(&exact);
            for index in 0..count {
                let step = STEP * samples[index].abs().max(1.);
                let moved = |by: f64| {
                    let mut moved = samples.clone();
                    moved[index] += by;
                    statistic.value(&moved)
                };
                let (above, below) = (moved(step), moved(-step));
                let difference = (above - below) / (2. * step);
                let rounding = ROUNDING * above.abs().max(1.) * count as f64 / step;
                let error = (difference - exact[index]).abs();
                assert!(
                    error <= TRUNCATION * scale + rounding,
                    "{name} of {count} samples at {}: {difference:e} against {:e}",
                    samples[index],
                    exact[index]
                );
            }
        }
    }
}

#[test]
fn a_sample_far_in_the_tail_is_pulled_back_by_anderson_and_darling_alone() {
    let samples = [1e4, 0.1, -0.3];
    for (name, statistic) in statistics() {
        let pull = gradient(&*statistic, &samples)[0];
        match name {
            // The slope of x^2 times its rank's share of the samples below, doubled.
            "anderson-darling" => assert!((pull / (2. * (1. / 6.) * 1e4) - 1.).abs() < 1e-7, "{pull}"),
            "cramer-von-mises" | "watson" => assert_eq!(pull, 0.),
            _ => {}
        }
    }
}

/// The paper's theorem on stability: (A) bounded gradients of characteristic functions, here by
/// `4 integral |t| exp(-t^2/2) dt = 8` for any number of samples; (B) unbounded ones of moments.
#[test]
fn moments_have_unbounded_gradients_and_epps_pulley_has_not() {
    const BOUND: f64 = 8.;
    let at = |statistic: &dyn Statistic, x: f64| gradient(statistic, &[x, 0.2, -0.7, 1.1])[0].abs();
    for up_to in 2..=8 {
        let moments = Moments::new(up_to).unwrap();
        let mut previous = at(&moments, 10.);
        for x in [1e2, 1e3, 1e4] {
            let now = at(&moments, x);
            // At least as x^(k-1), here tenfold each time.
            assert!(now >= 10f64.powi(up_to as i32 - 1) * previous, "{up_to} moments at {x}: {now:e}");
            previous = now;
        }
    }
    let epps_pulley = EppsPulley::new(5., 17).unwrap();
    for x in [10., 1e2, 1e3, 1e4] {
        assert!(at(&epps_pulley, x) <= BOUND);
    }
}
