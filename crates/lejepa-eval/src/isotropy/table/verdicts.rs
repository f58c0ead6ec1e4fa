//! What the paper says against what was measured.

use lejepa_page::number::significant;

use super::{Detail, PlainTable, optional};
use crate::isotropy::{Holds, Statement, Verdict};

/// A statement's name and what it is about.
pub(crate) fn statement(statement: Statement) -> &'static str {
    match statement {
        Statement::Lemma1 => "lemma 1: squared bias",
        Statement::Lemma2 => "lemma 2: variance of the coefficients",
        Statement::Theorem1 => "theorem 1: squared bias",
        Statement::FixedNumber => "not in the paper: squared bias",
    }
}

/// An answer in a word.
pub(crate) fn holds(holds: Holds) -> &'static str {
    match holds {
        Holds::Yes => "yes",
        Holds::No => "no",
        Holds::Undecided => "undecided",
    }
}

/// One row per statement, probe and shape; none without verdicts.
pub(super) fn table(title: &str, verdicts: &[Verdict]) -> Option<PlainTable> {
    let row = |verdict: &Verdict| {
        let Verdict {
            statement: said,
            probe,
            setting,
            shape,
            isotropic,
            anisotropic,
            ratio,
            standard_error,
            holds: answer,
            // The same in words.
            sentence: _,
        } = verdict;
        vec![
            statement(*said).to_owned(),
            probe.title(*setting),
            shape.clone(),
            significant(*isotropic),
            significant(*anisotropic),
            optional(*ratio),
            significant(*standard_error),
            holds(*answer).to_owned(),
        ]
    };
    let titles = ["statement", "probe", "features", "isotropic", "anisotropic", "ratio", "error", "holds"];
    (!verdicts.is_empty()).then(|| PlainTable {
        title: title.into(),
        caption:
            "Anisotropic features are worse (yes) or better (no) by more than two standard errors of the \
                  difference."
                .into(),
        detail: Detail::Main,
        names: 3,
        header: titles.map(str::to_owned).to_vec(),
        rows: verdicts.iter().map(row).collect(),
    })
}
