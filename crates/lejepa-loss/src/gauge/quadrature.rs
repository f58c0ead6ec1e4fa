//! The knots of the Epps-Pulley statistic, as the theory of its null distribution needs them.

use crate::statistic::Knot;
use crate::{EppsPulley, Error, Result};

/// Positive knots; each stands for itself and its mirror image.
#[derive(Debug, Clone)]
pub(super) struct Quadrature {
    pub(super) knots: Vec<Knot>,
}

impl Quadrature {
    /// The rule of [`EppsPulley::new`] with the same settings, of which a reading takes fewer.
    pub(super) fn new(t_max: f64, knots: usize) -> Result<Self> {
        let statistic = EppsPulley::new(t_max, knots)?;
        // Where the rule sees next to nothing of a distribution, only rounding is left of the floor.
        if !(0.5..=20.).contains(&t_max) {
            let expected = "between 0.5 and 20 for a reading";
            return Err(Error::Setting { field: "t_max", expected, got: t_max.to_string() });
        }
        Ok(Self { knots: statistic.knots().to_vec() })
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
    fn floor_and_point_mass_are_those_of_the_statistic() {
        for (t_max, knots) in [(5., 17), (3., 33), (1., 3)] {
            let (rule, statistic) =
                (Quadrature::new(t_max, knots).unwrap(), EppsPulley::new(t_max, knots).unwrap());
            let floor = rule.integrate(|knot| 1. - knot.target.powi(2));
            assert_eq!(floor, statistic.floor(1).unwrap());
            assert!((rule.point_mass() - statistic.value(&[0.])).abs() < 1e-15);
        }
    }
}
