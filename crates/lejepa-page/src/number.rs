//! How numbers are written.

/// A share as a percentage with one decimal, without the sign.
pub fn percent(share: f64) -> String {
    if share.is_finite() { format!("{:.1}", 100. * share) } else { "–".into() }
}

/// A difference of shares in points, always with a sign unless it rounds to zero.
pub fn points(difference: f64) -> String {
    let size = percent(difference.abs());
    match difference {
        _ if size == "0.0" || !difference.is_finite() => size,
        difference if difference < 0. => format!("−{size}"),
        _ => format!("+{size}"),
    }
}

/// A probability with three decimals.
pub fn probability(p: f64) -> String {
    match p {
        p if !p.is_finite() => "–".into(),
        p if p < 0.001 => "< 0.001".into(),
        p => format!("{p:.3}"),
    }
}

/// A count with thin gaps between thousands: `12 345`.
pub fn count(count: usize) -> String {
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
pub fn counted(number: usize, noun: &str) -> String {
    let plural = match noun {
        _ if number == 1 => "",
        noun if noun.ends_with('s') => "es",
        _ => "s",
    };
    format!("{} {noun}{plural}", count(number))
}

/// Four significant digits without zeros at the end, with an exponent outside 0.001 to 99,999.
pub fn significant(value: f64) -> String {
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
