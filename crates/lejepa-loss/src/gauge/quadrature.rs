//! The knots of the Epps-Pulley statistic, as the theory of its null distribution needs them.

use crate::{EppsPulley, Error, Result};

/// Positive knots; each stands for itself and its mirror image.
#[derive(Debug, Clone)]
pub(super) struct Quadrature {
    pub(super) knots: Vec<Knot>,
}

/// A quadrature point.
#[derive(Debug, Clone, Copy)]
pub(super) struct Knot {
    pub(super) t: f64,
    /// `phi(t) = exp(-t^2/2)`
    pub(super) target: f64,
    pub(super) weight: f64,
}

impl Quadrature {
    /// The rule of [`EppsPulley::new`] with the same settings, of which a reading takes fewer.
    pub(super) fn new(t_max: f64, knots: usize) -> Result<Self> {
        EppsPulley::new(t_max, knots)?;
        // Where the rule sees next to nothing of a distribution, only rounding is left of the floor.
        if !(0.5..=20.).contains(&t_max) {
            let expected = "between 0.5 and 20 for a reading";
            return Err(Error::Setting { field: "t_max", expected, got: t_max.to_string() });
        }
        let positive = knots / 2;
        let step = t_max / positive as f64;
        let knots = (1..=positive).map(|index| {
            let t = step * index as f64;
            let target = (-0.5 * t * t).exp();
            let both_ends = if index == positive { step } else { 2. * step };
            Knot { t, target, weight: both_ends * target }
        });
        Ok(Self { knots: knots.collect() })
    }

    /// `sum_t w_t f(t)`
    pub(super) fn integrate(&self, integrand: impl Fn(&Knot) -> f64) -> f64 {
        self.knots.iter().map(|knot| knot.weight * integrand(knot)).sum()
    }

    /// The population distance of a point mass at 0, where every embedding of a collapsed encoder
    /// lies: about 0.409.
    pub(super) fn point_mass(&self) -> f64 {
        self.integrate(|knot| (1. - knot.target).powi(2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Statistic;

    #[test]
    fn the_rule_is_that_of_the_statistic() {
        for (t_max, knots) in [(5., 17), (3., 33), (1., 3)] {
            let (rule, statistic) =
                (Quadrature::new(t_max, knots).unwrap(), EppsPulley::new(t_max, knots).unwrap());
            let floor = rule.integrate(|knot| 1. - knot.target.powi(2));
            assert_eq!(floor, statistic.floor(1).unwrap());
            assert!((rule.point_mass() - statistic.value(&[0.])).abs() < 1e-15);
        }
    }
}
