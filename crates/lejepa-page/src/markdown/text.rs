//! What users wrote, such that Markdown shows it as it is.

/// A name or sentence in which nothing is markup. Underscores within words are none and stay as they are.
pub fn plain(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    let mut before = ' ';
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        let within_a_word =
            before.is_alphanumeric() && characters.peek().is_some_and(|it| it.is_alphanumeric());
        match character {
            character if character.is_control() => escaped.push(' '),
            '\\' | '|' | '`' | '*' | '<' | '&' | '[' => escaped.extend(['\\', character]),
            '_' if !within_a_word => escaped.push_str("\\_"),
            character => escaped.push(character),
        }
        before = character;
    }
    escaped
}

/// A code span.
pub fn code(text: &str) -> String {
    let fence = "`".repeat(longest_run_of_backticks(text) + 1);
    let space = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    let text: String = text.chars().map(|it| if it.is_control() { ' ' } else { it }).collect();
    format!("{fence}{space}{text}{space}{fence}")
}

/// A block of shell.
pub fn code_block(text: &str) -> String {
    let fence = "`".repeat((longest_run_of_backticks(text) + 1).max(3));
    format!("{fence}sh\n{}\n{fence}\n", text.trim_end())
}

fn longest_run_of_backticks(text: &str) -> usize {
    text.split(|character| character != '`').map(str::len).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_no_markup() {
        assert_eq!(plain("a|b\nc <i> *d* e_f _g_"), "a\\|b c \\<i> \\*d\\* e_f \\_g\\_");
        assert_eq!([code("a`b"), code("`a``")], ["``a`b``", "``` `a`` ```"]);
        assert_eq!(code_block("echo '```'\n"), "````sh\necho '```'\n````\n");
    }
}
