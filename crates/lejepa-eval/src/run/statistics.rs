//! How sure a number is: intervals and paired tests over the test images, and over the draws of training
//! images where there are several.
//!
//! A mean over `D` draws and `N` test images would be another one with other draws, and with other images.
//! Both are taken for random effects that cross (every draw meets every image), with the estimates of a two-way
//! analysis of variance:
//!
//! ```text
//! error of draws^2  = max(variance over draws of their means / D - variance of what is left / (D N), 0)
//! error of images^2 = variance over images of their means / N
//! half an interval  = root of (t(D - 1) error of draws)^2 + (t(N - 1) error of images)^2
//! ```
//!
//! Each error has the quantile of its own degrees of freedom (Howe; MOVER of Zou and Donner): of three draws
//! little is known, whatever the number of images.

use statrs::distribution::{Binomial, ContinuousCDF, DiscreteCDF, Normal, StudentsT};

use crate::report::{Interval, Source};

/// Of a normal law, two-sided 95 %.
const NORMAL_95: f64 = 1.959_963_984_540_054;

/// The mean of values; 0 of none.
pub(crate) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// The standard deviation of a sample (divided by one less than its size); none with fewer than two values.
pub(crate) fn deviation(values: &[f64]) -> Option<f64> {
    let mean = mean(values);
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (values.len() > 1).then(|| (squares / (values.len() - 1) as f64).sqrt())
}

/// A mean over draws and images, with the squared standard error of each.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TwoWay {
    mean: f64,
    draws: Part,
    images: Part,
}

/// What one kind of sample says of the error.
#[derive(Debug, Clone, Copy)]
struct Part {
    count: usize,
    square: f64,
}

impl TwoWay {
    /// From the values of every draw, one per image.
    pub(crate) fn new(draws: &[Vec<f64>]) -> Self {
        let count = draws.first().map_or(0, Vec::len);
        let means: Vec<f64> = draws.iter().map(|values| mean(values)).collect();
        let mean_of =
            |image: usize| draws.iter().map(|values| values[image]).sum::<f64>() / draws.len() as f64;
        let images: Vec<f64> = (0..count).map(mean_of).collect();
        let whole = mean(&means);
        let left = |(values, of_draw): (&Vec<f64>, &f64)| -> f64 {
            values.iter().zip(&images).map(|(value, image)| (value - of_draw - image + whole).powi(2)).sum()
        };
        let freedom = (draws.len().saturating_sub(1) * count.saturating_sub(1)).max(1);
        let left = draws.iter().zip(&means).map(left).sum::<f64>() / freedom as f64;
        let square = |values: &[f64]| deviation(values).unwrap_or(0.).powi(2) / values.len().max(1) as f64;
        let shared = left / (draws.len() * count).max(1) as f64;
        Self {
            mean: whole,
            draws: Part { count: draws.len(), square: (square(&means) - shared).max(0.) },
            images: Part { count, square: square(&images) },
        }
    }

    /// Where a share lies: Wilson's interval over test images for a single draw. For several the same with
    /// the number of images that would give the same error (the modified Wilson interval of surveys).
    pub(crate) fn interval(&self) -> Interval {
        let images = self.images.count.max(1) as f64;
        if self.draws.count < 2 {
            let [low, high] = wilson(self.mean, images, NORMAL_95);
            return Interval { low, high, over: Source::TestImages };
        }
        let square = self.draws.square + self.images.square;
        let spread = self.mean * (1. - self.mean);
        // All right or all wrong, as far as one can see.
        let (count, quantile) = match spread > 0. && square > 0. {
            true => {
                ((spread / square).min(images * self.draws.count as f64), self.half(0.05) / square.sqrt())
            }
            false => (images, NORMAL_95),
        };
        let [low, high] = wilson(self.mean, count, quantile);
        Interval { low, high, over: Source::DrawsAndTestImages }
    }

    /// The two-sided p of the mean being 0: that of the widest interval around the mean without it. None where
    /// nothing varies, so that there is no error to go by.
    pub(crate) fn p(&self) -> Option<f64> {
        let size = self.mean.abs();
        if size == 0. {
            return Some(1.);
        }
        // Differences that are the same but for rounding.
        if (self.draws.square + self.images.square).sqrt() <= 1e-12 * size {
            return None;
        }
        let (mut low, mut high) = (LEAST_P.ln(), 0f64);
        for _ in 0..60 {
            let middle = (low + high) / 2.;
            if self.half(middle.exp()) > size { low = middle } else { high = middle }
        }
        Some(high.exp())
    }

    /// Half of the interval that misses the truth with a probability of `p`.
    fn half(&self, p: f64) -> f64 {
        let [draws, images] = [self.draws, self.images].map(|part| part.quantile(p).powi(2) * part.square);
        (draws + images).sqrt()
    }
}

/// The two-sided p of Student's t on the differences of draws; none where they do not vary.
pub(crate) fn paired_t(differences: &[f64]) -> Option<f64> {
    let size = mean(differences).abs();
    let error = deviation(differences)? / (differences.len() as f64).sqrt();
    let law = StudentsT::new(0., 1., (differences.len() - 1) as f64).ok()?;
    // Differences that are the same but for rounding.
    (error > 1e-12 * size).then(|| 2. * law.cdf(-size / error))
}

/// Smaller probabilities are all the same.
const LEAST_P: f64 = 1e-12;
/// Degrees of freedom from which on Student's law is taken for the normal one: they differ by less than 0.001.
const NORMAL_FROM: usize = 2000;

impl Part {
    /// Two-sided.
    fn quantile(&self, p: f64) -> f64 {
        match self.count.saturating_sub(1) {
            _ if self.square == 0. => 0.,
            freedom @ 1..NORMAL_FROM => {
                StudentsT::new(0., 1., freedom as f64).map_or(f64::INFINITY, |law| -law.inverse_cdf(p / 2.))
            }
            _ => -Normal::standard().inverse_cdf(p / 2.),
        }
    }
}

fn wilson(share: f64, count: f64, quantile: f64) -> [f64; 2] {
    let square = quantile * quantile;
    let centre = (share + square / (2. * count)) / (1. + square / count);
    let half = quantile / (1. + square / count)
        * (share * (1. - share) / count + square / (4. * count * count)).sqrt();
    [(centre - half).max(0.), (centre + half).min(1.)]
}

/// McNemar's exact two-sided p, from the images that only the first and only the second gets right.
pub(crate) fn mcnemar(only_first: usize, only_second: usize) -> f64 {
    let total = (only_first + only_second) as u64;
    match Binomial::new(0.5, total) {
        Ok(law) if total > 0 => (2. * law.cdf(only_first.min(only_second) as u64)).min(1.),
        _ => 1.,
    }
}

#[cfg(test)]
mod tests {
    use rand::{Rng, SeedableRng, rngs::StdRng};
    use rand_distr::StandardNormal;

    use super::*;

    /// Of numbers that SciPy prints.
    const TOLERANCE: f64 = 1e-9;

    fn near(got: f64, expected: f64) {
        assert!((got - expected).abs() < TOLERANCE, "{got} is not {expected}");
    }

    /// The same for every image.
    fn alike(draws: &[f64], images: usize) -> Vec<Vec<f64>> {
        draws.iter().map(|&value| vec![value; images]).collect()
    }

    /// `ttest_1samp`, `binomtest(3, 15).pvalue` and `binomtest(80, 100).proportion_ci(method="wilson")` of
    /// SciPy 1.17.
    #[test]
    fn numbers_are_those_of_scipy() {
        // Images that are all alike leave the draws alone: Student's t.
        let values = [0.02, 0.05, 0.03, 0.01];
        near(TwoWay::new(&alike(&values, 50)).p().unwrap(), 0.048566856559801044);
        // Draws that are all alike leave the images alone.
        near(
            TwoWay::new(&[values.to_vec(), values.to_vec(), values.to_vec()]).p().unwrap(),
            0.048566856559801044,
        );
        near(mcnemar(3, 12), 0.03515625);
        let right: Vec<f64> = (0..100).map(|image| f64::from(u8::from(image < 80))).collect();
        let images = TwoWay::new(&[right]).interval();
        near(images.low, 0.711170834406841);
        near(images.high, 0.8666330666689674);
        assert_eq!(images.over, Source::TestImages);
    }

    /// `ttest_1samp([0.02, 0.05, 0.03, 0.01], 0)` of SciPy 1.17.
    #[test]
    fn draws_alone_are_tested_as_scipy_does() {
        near(paired_t(&[0.02, 0.05, 0.03, 0.01]).unwrap(), 0.048566856559801044);
        assert_eq!((paired_t(&[0.1]), paired_t(&[0.1, 0.1, 0.1])), (None, None));
    }

    #[test]
    fn nothing_to_compare_gives_no_significance() {
        assert_eq!(mcnemar(0, 0), 1.);
        assert_eq!(mcnemar(4, 4), 1.);
        assert_eq!(TwoWay::new(&alike(&[0.; 3], 9)).p(), Some(1.));
        assert_eq!(TwoWay::new(&alike(&[0.1; 3], 9)).p(), None);
        assert_eq!((deviation(&[0.3]), mean(&[])), (None, 0.));
    }

    #[test]
    fn intervals_stay_between_0_and_1() {
        let certain = TwoWay::new(&alike(&[1.; 3], 30)).interval();
        assert!(certain.low > 0.8 && certain.low < 1. && certain.high <= 1., "{certain:?}");
        let once = TwoWay::new(&alike(&[1.], 3)).interval();
        assert!(once.low > 0. && once.high <= 1.);
        let wild = TwoWay::new(&[vec![1., 1., 1.], vec![1., 1., 0.], vec![0., 0., 1.]]).interval();
        assert!(wild.low >= 0. && wild.high <= 1. && wild.high - wild.low > 0.5, "{wild:?}");
        let nothing = TwoWay::new(&[Vec::new()]).interval();
        assert!(nothing.low >= 0. && nothing.high <= 1.);
    }

    #[test]
    fn three_equal_differences_on_few_images_are_not_significant() {
        // 1000 images; in every draw the first gets 30 right that the second does not, and the second 27.
        let difference = |image: usize| match image {
            0..30 => 1.,
            30..57 => -1.,
            _ => 0.,
        };
        let draws = vec![(0..1000).map(difference).collect::<Vec<f64>>(); 3];
        let p = TwoWay::new(&draws).p().unwrap();
        assert!(p > 0.6 && mcnemar(27, 30) > 0.6, "{p}");
    }

    #[test]
    fn many_images_and_a_large_difference_are_significant() {
        let draw = |share: usize| (0..5000).map(|image| f64::from(u8::from(image % 100 < share))).collect();
        let p = TwoWay::new(&[draw(20), draw(21), draw(22)]).p().unwrap();
        assert!(p < 0.01, "{p}");
    }

    /// How much draws, images and both together decide whether an answer is right.
    struct World {
        draws: f64,
        images: f64,
        both: f64,
    }

    impl World {
        /// Whether 3 draws get 200 images right, by columns; `skill` shifts all of them.
        fn sample(&self, skill: f64, generator: &mut StdRng) -> Vec<Vec<f64>> {
            let normal = |generator: &mut StdRng| generator.sample::<f64, _>(StandardNormal);
            let draws: Vec<f64> = (0..3).map(|_| self.draws * normal(generator)).collect();
            let image = |_| {
                let easy = skill + self.images * normal(generator);
                let right = |draw: &f64| easy + draw + self.both * normal(generator) > 0.;
                draws.iter().map(right).map(|right| f64::from(u8::from(right))).collect()
            };
            (0..200).map(image).collect()
        }

        /// The share that endless draws and images would give.
        fn truth(&self, skill: f64) -> f64 {
            let deviation = (self.draws.powi(2) + self.images.powi(2) + self.both.powi(2)).sqrt();
            Normal::new(0., deviation).unwrap().cdf(skill)
        }
    }

    const WORLDS: [World; 5] = [
        // As probes are: an image is easy or hard for every draw.
        World { draws: 0.05, images: 1., both: 0.3 },
        World { draws: 0.15, images: 1., both: 0.5 },
        World { draws: 0.3, images: 1., both: 0.3 },
        World { draws: 0., images: 1., both: 0. },
        World { draws: 0., images: 0., both: 1. },
    ];

    fn two_way(columns: &[Vec<f64>]) -> TwoWay {
        let draw = |draw: usize| columns.iter().map(|image| image[draw]).collect();
        TwoWay::new(&[draw(0), draw(1), draw(2)])
    }

    /// NumPy with 4000 samples of each: 93.8 to 96.9 %.
    #[test]
    fn intervals_of_three_draws_and_200_images_hold_the_truth_95_times_in_100() {
        let mut generator = StdRng::seed_from_u64(0);
        for (number, world) in WORLDS.iter().enumerate() {
            for skill in [0., 1.2] {
                let truth = world.truth(skill);
                let hits = (0..1000).filter(|_| {
                    let Interval { low, high, .. } = two_way(&world.sample(skill, &mut generator)).interval();
                    (low..=high).contains(&truth)
                });
                let hits = hits.count();
                assert!((925..=985).contains(&hits), "world {number}, skill {skill}: {hits}");
            }
        }
    }

    #[test]
    fn encoders_that_are_equally_good_differ_significantly_one_time_in_twenty_at_most() {
        let mut generator = StdRng::seed_from_u64(1);
        for (number, world) in WORLDS.iter().enumerate() {
            let significant = (0..1000).filter(|_| {
                let (first, second) = (world.sample(0.5, &mut generator), world.sample(0.5, &mut generator));
                let difference = |(first, second): (&Vec<f64>, &Vec<f64>)| {
                    first.iter().zip(second).map(|(first, second)| first - second).collect()
                };
                let differences: Vec<Vec<f64>> = first.iter().zip(&second).map(difference).collect();
                two_way(&differences).p().is_some_and(|p| p < 0.05)
            });
            let significant = significant.count();
            assert!(significant <= 65, "world {number}: {significant}");
        }
    }
}
