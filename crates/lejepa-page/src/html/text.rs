//! What users wrote, such that a browser shows it as it is.

use std::fmt;

/// Text between tags or in a quoted attribute.
pub struct Text<'a>(pub &'a str);

impl fmt::Display for Text<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        use fmt::Write;
        for character in self.0.chars() {
            match character {
                '&' => formatter.write_str("&amp;")?,
                '<' => formatter.write_str("&lt;")?,
                '>' => formatter.write_str("&gt;")?,
                '"' => formatter.write_str("&quot;")?,
                '\'' => formatter.write_str("&#39;")?,
                '\n' | '\t' => formatter.write_char(character)?,
                // HTML has no place for them.
                control if control.is_control() => formatter.write_char(char::REPLACEMENT_CHARACTER)?,
                other => formatter.write_char(other)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_name_is_markup() {
        assert_eq!(
            Text("<script>alert(\"a\" & 'b')</script>\0").to_string(),
            "&lt;script&gt;alert(&quot;a&quot; &amp; &#39;b&#39;)&lt;/script&gt;\u{fffd}"
        );
    }
}
