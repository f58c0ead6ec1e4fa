//! How numbers and what goes with them are written in reports that people read.

use lejepa_page::number::{count, percent, significant};

use crate::report::{DrawResult, PairedTest, ProbeResult, Source};
use crate::sets::Shots;

/// What has not been measured yet.
pub(crate) const PENDING: &str = "…";

/// `81.2 ± 0.4`, or `81.2` of a single draw.
pub(crate) fn with_deviation(result: &ProbeResult) -> String {
    match result.deviation {
        Some(deviation) => format!("{} ± {}", percent(result.accuracy), percent(deviation)),
        None => percent(result.accuracy),
    }
}

/// The 95 % interval: `79.9 – 82.4`.
pub(crate) fn interval(result: &ProbeResult) -> String {
    format!("{} – {}", percent(result.interval.low), percent(result.interval.high))
}

/// `10 samples per class`, `all samples`.
pub(crate) fn shots(shots: Shots) -> String {
    match shots {
        Shots::Each(1) => "1 sample per class".into(),
        Shots::Each(number) => format!("{number} samples per class"),
        Shots::All => "all samples".into(),
    }
}

/// What an interval is over, in a word.
pub(crate) fn source(source: Source) -> &'static str {
    match source {
        Source::DrawsAndTestImages => "draws, images",
        Source::TestImages => "images",
    }
}

/// The name of a test.
pub(crate) fn test(test: PairedTest) -> &'static str {
    match test {
        PairedTest::TwoWayT => "t, draws and images",
        PairedTest::McNemar => "McNemar",
    }
}

/// Training samples of a draw; `1018 to 1020` where draws differ.
pub(crate) fn train(draws: &[DrawResult]) -> String {
    let sizes = || draws.iter().map(|draw| draw.train);
    match (sizes().min(), sizes().max()) {
        (Some(low), Some(high)) if low < high => format!("{} to {}", count(low), count(high)),
        (Some(size), _) => count(size),
        (None, _) => "–".into(),
    }
}

/// The setting that draws chose, and on how many samples: `0.1 (102 held out)`, `0.01 to 1 (102 held out)`.
pub(crate) fn choices(draws: &[DrawResult]) -> String {
    let choices = || draws.iter().filter_map(|draw| draw.choice);
    let values = || choices().map(|choice| choice.value);
    let (low, high) = (values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max));
    let Some(held_out) = choices().map(|choice| choice.held_out).max() else { return String::new() };
    let held_out = if held_out == 0 { "none".into() } else { count(held_out) };
    let value =
        if low < high { format!("{} to {}", significant(low), significant(high)) } else { significant(low) };
    format!("{value} ({held_out} held out)")
}
