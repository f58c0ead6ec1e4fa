//! What was typed.

/// What was typed, so that a shell reads it the same way.
pub(crate) fn command_line() -> String {
    let mut words = std::env::args().map(|word| quoted(&word));
    let program = words.next().unwrap_or_default();
    // The report outlives the folder that the program was called from.
    let program = program.rsplit('/').next().unwrap_or(&program).to_string();
    std::iter::once(program).chain(words).collect::<Vec<_>>().join(" ")
}

/// A word, so that a shell reads it as one.
pub(crate) fn quoted(word: &str) -> String {
    let plain = |character: char| character.is_alphanumeric() || "_-./=:,+@%".contains(character);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.into(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_survive_a_shell() {
        assert_eq!(quoted("runs/a-1.onnx"), "runs/a-1.onnx");
        assert_eq!(quoted("my data"), "'my data'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
    }
}
