//! Quotes words of the commands that are suggested to the user.

/// Quotes a text, where necessary, so that a shell reads it as one word.
pub fn shell_word(text: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "_-./+=:,@%".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    if text.chars().any(char::is_control) {
        let escaped = |c: char| match c {
            '\'' | '\\' => format!("\\{c}"),
            c if c.is_control() => format!("\\u{:04x}", u32::from(c)),
            c => c.to_string(),
        };
        return format!("$'{}'", text.chars().map(escaped).collect::<String>());
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_text_is_one_word() {
        assert_eq!(shell_word("runs/app-1.gammachi"), "runs/app-1.gammachi");
        assert_eq!(shell_word("my run"), "'my run'");
        assert_eq!(shell_word("a'b;c"), r"'a'\''b;c'");
        assert_eq!(shell_word(""), "''");
        assert_eq!(shell_word("a\nb"), r"$'a\u000ab'");
    }
}
