//! How sure a number is: intervals and paired tests.

use statrs::distribution::{Binomial, ContinuousCDF, DiscreteCDF, StudentsT};

use crate::{Interval, Source};

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

/// Where the accuracy lies: Student's t over draws if there are several, else Wilson's interval over test
/// images.
pub(crate) fn interval(accuracies: &[f64], test_images: usize) -> Interval {
    let mean = mean(accuracies);
    match deviation(accuracies).zip(student(accuracies.len())) {
        Some((deviation, law)) => {
            let half = law.inverse_cdf(0.975) * deviation / (accuracies.len() as f64).sqrt();
            Interval { low: (mean - half).max(0.), high: (mean + half).min(1.), over: Source::Draws }
        }
        None => wilson(mean, test_images),
    }
}

/// The law of a mean over so many values, in units of its estimated error.
fn student(values: usize) -> Option<StudentsT> {
    StudentsT::new(0., 1., values.checked_sub(1)? as f64).ok()
}

fn wilson(share: f64, images: usize) -> Interval {
    let (count, square) = (images.max(1) as f64, NORMAL_95 * NORMAL_95);
    let centre = (share + square / (2. * count)) / (1. + square / count);
    let half = NORMAL_95 / (1. + square / count)
        * (share * (1. - share) / count + square / (4. * count * count)).sqrt();
    Interval { low: (centre - half).max(0.), high: (centre + half).min(1.), over: Source::TestImages }
}

/// The two-sided p of Student's t on differences; none with fewer than two, or if all are the same.
pub(crate) fn paired_t(differences: &[f64]) -> Option<f64> {
    let error = deviation(differences)? / (differences.len() as f64).sqrt();
    let law = student(differences.len())?;
    let difference = mean(differences).abs();
    // Differences that are the same but for rounding.
    (error > 1e-12 * difference).then(|| 2. * law.cdf(-difference / error))
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
    use super::*;

    /// Of numbers that SciPy prints.
    const TOLERANCE: f64 = 1e-9;

    fn near(got: f64, expected: f64) {
        assert!((got - expected).abs() < TOLERANCE, "{got} is not {expected}");
    }

    /// `t.interval(0.95, 2, mean, sem)`, `ttest_1samp`, `binomtest(3, 15).pvalue` and
    /// `binomtest(80, 100).proportion_ci(method="wilson")` of SciPy 1.17.
    #[test]
    fn numbers_are_those_of_scipy() {
        let draws = interval(&[0.5, 0.54, 0.49], 1000);
        near(draws.low, 0.44427589392271566);
        near(draws.high, 0.5757241060772843);
        assert_eq!(draws.over, Source::Draws);
        near(paired_t(&[0.02, 0.05, 0.03, 0.01]).unwrap(), 0.048566856559801044);
        near(mcnemar(3, 12), 0.03515625);
        let images = interval(&[0.8], 100);
        near(images.low, 0.711170834406841);
        near(images.high, 0.8666330666689674);
        assert_eq!(images.over, Source::TestImages);
    }

    #[test]
    fn nothing_to_compare_gives_no_significance() {
        assert_eq!(mcnemar(0, 0), 1.);
        assert_eq!(mcnemar(4, 4), 1.);
        assert_eq!(paired_t(&[0.1]), None);
        assert_eq!(paired_t(&[0.1, 0.1, 0.1]), None);
        assert_eq!((deviation(&[0.3]), mean(&[])), (None, 0.));
    }

    #[test]
    fn intervals_stay_between_0_and_1() {
        let certain = interval(&[1.], 3);
        assert!(certain.low > 0. && certain.high <= 1.);
        assert_eq!(interval(&[0.99, 1., 0.9], 5).high, 1.);
        assert!(interval(&[0.], 0).low >= 0.);
    }
}
