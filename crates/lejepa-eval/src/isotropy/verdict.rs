//! Whether what the paper says holds on what was measured.

use serde::{Deserialize, Serialize};

use super::ProbeKind;
use super::moments::{mean, standard_error};

/// Standard errors beyond which a difference counts.
const DECISIVE: f64 = 2.;

/// What the paper says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Statement {
    /// There are tasks on which ridge has more bias if features are anisotropic.
    Lemma1,
    /// The coefficients of OLS have more variance if features are anisotropic.
    Lemma2,
    /// Averages within a small radius or bandwidth have more integrated squared bias if features are
    /// anisotropic.
    Theorem1,
    /// Not of the paper: the same for a fixed number of neighbours, whose radius adapts.
    FixedNumber,
}

/// The answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Holds {
    /// Anisotropic features are worse, by more than two standard errors.
    Yes,
    /// They are better, by more than two standard errors.
    No,
    /// Neither.
    Undecided,
}

/// A statement put to the test.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// What is said.
    pub statement: Statement,
    /// The probe.
    pub probe: ProbeKind,
    /// Its setting, the same for both.
    pub setting: f64,
    /// The features that isotropic ones are compared with.
    pub shape: String,
    /// Bias or variance with isotropic features.
    pub isotropic: f64,
    /// The same with the others.
    pub anisotropic: f64,
    /// Anisotropic over isotropic; none if the latter is not above 0.
    pub ratio: Option<f64>,
    /// Of the difference: over test points for bias, over draws for variance.
    pub standard_error: f64,
    /// Whether anisotropic features are worse.
    pub holds: Holds,
    /// The same in words.
    pub sentence: String,
}

/// What is compared.
pub(crate) struct Comparison<'a> {
    pub(crate) statement: Statement,
    pub(crate) probe: ProbeKind,
    pub(crate) setting: f64,
    pub(crate) shape: String,
    /// One number per test point or draw.
    pub(crate) isotropic: &'a [f64],
    /// In the same order.
    pub(crate) anisotropic: &'a [f64],
}

impl Statement {
    /// What is said of the bias of a probe.
    pub(crate) fn of_bias(probe: ProbeKind) -> Self {
        match probe {
            ProbeKind::Ridge => Self::Lemma1,
            ProbeKind::Knn => Self::FixedNumber,
            ProbeKind::Radius | ProbeKind::Kernel => Self::Theorem1,
        }
    }

    fn subject(self) -> (&'static str, &'static str) {
        match self {
            Self::Lemma1 => ("lemma 1", "squared bias"),
            Self::Lemma2 => ("lemma 2", "variance of the coefficients"),
            Self::Theorem1 => ("theorem 1", "squared bias"),
            Self::FixedNumber => ("what theorem 1 says of a fixed radius", "squared bias"),
        }
    }
}

impl Comparison<'_> {
    pub(crate) fn verdict(self) -> Verdict {
        let Self { statement, probe, setting, shape, isotropic, anisotropic } = self;
        let differences: Vec<f64> = anisotropic.iter().zip(isotropic).map(|(a, b)| a - b).collect();
        let (difference, standard_error) = (mean(&differences), standard_error(&differences));
        let holds = match difference {
            more if more > DECISIVE * standard_error => Holds::Yes,
            less if less < -DECISIVE * standard_error => Holds::No,
            _ => Holds::Undecided,
        };
        let (isotropic, anisotropic) = (mean(isotropic), mean(anisotropic));
        let ratio = (isotropic > 0.).then(|| anisotropic / isotropic);
        let (name, quantity) = statement.subject();
        let answer = match holds {
            Holds::Yes => "holds here",
            Holds::No => "does not hold here",
            Holds::Undecided => "is undecided here",
        };
        let compared = match ratio {
            Some(ratio) => format!("is {ratio:.3} times that of isotropic features"),
            None => format!("is {anisotropic:.3e}, that of isotropic features {isotropic:.3e}"),
        };
        let probe_title = probe.title(setting);
        let sentence = format!("{name} {answer}: the {quantity} of {probe_title} {compared} ({shape})");
        Verdict {
            statement,
            probe,
            setting,
            shape,
            isotropic,
            anisotropic,
            ratio,
            standard_error,
            holds,
            sentence,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(isotropic: &[f64], anisotropic: &[f64]) -> Verdict {
        let (statement, probe, shape) = (Statement::Lemma1, ProbeKind::Ridge, "stretched".to_string());
        Comparison { statement, probe, setting: 0.1, shape, isotropic, anisotropic }.verdict()
    }

    #[test]
    fn differences_count_beyond_two_standard_errors() {
        assert_eq!(verdict(&[1., 2., 3.], &[2., 3., 4.5]).holds, Holds::Yes);
        assert_eq!(verdict(&[2., 3., 4.5], &[1., 2., 3.]).holds, Holds::No);
        assert_eq!(verdict(&[1., 2., 3.], &[3., 2., 1.5]).holds, Holds::Undecided);
        let nothing = verdict(&[0., 0.], &[0., 0.]);
        assert_eq!((nothing.holds, nothing.ratio), (Holds::Undecided, None));
    }
}
