//! Work that needs more memory than there is.

/// What is said of work that needs more memory than there is.
pub(crate) fn lack(needed: u64, available: Option<u64>) -> Option<String> {
    let available = available.filter(|available| needed > *available)?;
    Some(format!(
        "needs about {} of memory, more than is available: {}",
        gigabytes(needed),
        gigabytes(available)
    ))
}

/// `13.4 GB`
fn gigabytes(bytes: u64) -> String {
    format!("{:.1} GB", bytes as f64 / 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_does_not_fit_lacks_something() {
        assert_eq!(lack(5_000_000_000, None), None);
        assert_eq!(lack(5_000_000_000, Some(5_000_000_000)), None);
        let sentence = lack(21_000_000_000, Some(12_340_000_000)).unwrap();
        assert_eq!(sentence, "needs about 21.0 GB of memory, more than is available: 12.3 GB");
    }
}
