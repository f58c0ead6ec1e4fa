//! Text of strangers on a terminal: names of files, cards of encoders and messages of their parts may hold
//! characters that move the cursor, change colours or set titles.

use std::borrow::Cow;
use std::fmt::Write;

/// The text with `\u001b` in place of control characters, but for tabs and line breaks, and of those that turn
/// the direction of writing. The replacement is what JSON has for them.
pub fn printable(text: &str) -> Cow<'_, str> {
    spelt_out(text, is_harmful)
}

/// The same for a name, which has no line breaks: it cannot look like another message.
pub fn printable_name(name: &str) -> Cow<'_, str> {
    spelt_out(name, |character| is_harmful(character) || character.is_control())
}

fn spelt_out(text: &str, is_harmful: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&is_harmful) {
        return Cow::Borrowed(text);
    }
    let mut printable = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        match is_harmful(character) {
            // Writing into a string does not fail.
            true => drop(write!(printable, "\\u{:04x}", u32::from(character))),
            false => printable.push(character),
        }
    }
    Cow::Owned(printable)
}

fn is_harmful(character: char) -> bool {
    let is_control = character.is_control() && !matches!(character, '\n' | '\t');
    is_control || matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_spelt_out() {
        assert_eq!(printable("K\u{f6}ln\t1\n"), "K\u{f6}ln\t1\n");
        assert_eq!(
            printable("a\u{1b}[31mb\u{9b}2Jc\r\u{7}\u{7f}"),
            "a\\u001b[31mb\\u009b2Jc\\u000d\\u0007\\u007f"
        );
        assert_eq!(printable_name("a\nerror: b"), "a\\u000aerror: b");
        assert_eq!(printable("gpj.\u{202e}exe"), "gpj.\\u202eexe");
        let json = serde_json::to_string("\u{9b}31m").unwrap();
        assert_eq!(serde_json::from_str::<String>(&printable(&json)).unwrap(), "\u{9b}31m");
    }
}
