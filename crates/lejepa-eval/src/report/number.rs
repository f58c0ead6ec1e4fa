//! How numbers and what goes with them are written in reports that people read.

use crate::report::{DrawResult, PairedTest, ProbeResult, Source};
use crate::sets::Shots;

/// What has not been measured yet.
pub(crate) const PENDING: &str = "…";

/// A share as a percentage with one decimal, without the sign.
pub(crate) fn percent(share: f64) -> String {
    if share.is_finite() { format!("{:.1}", 100. * share) } else { "–".into() }
}

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

/// A difference of shares in points, always with a sign unless it rounds to zero.
pub(crate) fn points(difference: f64) -> String {
    let size = percent(difference.abs());
    match difference {
        _ if size == "0.0" || !difference.is_finite() => size,
        difference if difference < 0. => format!("−{size}"),
        _ => format!("+{size}"),
    }
}

/// A probability with three decimals.
pub(crate) fn probability(p: f64) -> String {
    match p {
        p if !p.is_finite() => "–".into(),
        p if p < 0.001 => "< 0.001".into(),
        p => format!("{p:.3}"),
    }
}

/// A count with thin gaps between thousands: `12 345`.
pub(crate) fn count(count: usize) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) && digits.len() > 4 {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

/// `1 test image`, `3 test images`.
pub(crate) fn counted(number: usize, noun: &str) -> String {
    let plural = match noun {
        _ if number == 1 => "",
        noun if noun.ends_with('s') => "es",
        _ => "s",
    };
    format!("{} {noun}{plural}", count(number))
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

/// Four significant digits without zeros at the end, with an exponent outside 0.001 to 99,999.
pub(crate) fn significant(value: f64) -> String {
    if value == 0. {
        return "0".into();
    }
    if !value.is_finite() {
        return "–".into();
    }
    if !(1e-3..1e5).contains(&value.abs()) {
        let text = format!("{value:.3e}");
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        return format!("{}e{exponent}", without_zeros(mantissa));
    }
    let decimals = (3 - value.abs().log10().floor() as i32).max(0) as usize;
    without_zeros(&format!("{value:.decimals$}")).into()
}

fn without_zeros(number: &str) -> &str {
    if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { number }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_have_signs_unless_they_vanish() {
        assert_eq!([0.0123, -0.2, -0.0001].map(points), ["+1.2", "−20.0", "0.0"]);
    }

    #[test]
    fn settings_are_short_and_thousands_are_apart() {
        assert_eq!(
            [1e-6, 0.0177827941, 0.1, 1., 10000., 3.162277e7].map(significant),
            ["1e-6", "0.01778", "0.1", "1", "10000", "3.162e7"]
        );
        assert_eq!(
            [7, 1020, 50_000, 1_281_167].map(count),
            ["7", "1020", "50\u{202f}000", "1\u{202f}281\u{202f}167"]
        );
        assert_eq!(
            [counted(1, "class"), counted(2, "class"), counted(0, "draw")],
            ["1 class", "2 classes", "0 draws"]
        );
    }
}
