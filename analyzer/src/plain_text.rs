//! Makes text from elsewhere safe for a terminal or for a line of a file.
//!
//! Names in a trace, file names, arguments and program output may contain escape sequences, which a
//! terminal obeys, line feeds, which forge lines, and characters that reverse the direction of
//! writing. There are two lines of defence:
//!
//! - [`for_terminal`] is the last gate: everything that the command writes goes through it
//!   (`cli::error`), so text that was not cleaned elsewhere cannot control a terminal either;
//! - [`printable`] makes one line of a text, for columns, titles and files that are read line by
//!   line.

use std::borrow::Cow;
use std::fmt::Write;

/// Replaces a character that is not shown.
const REPLACEMENT: char = '\u{fffd}';

/// Whether a character has an effect instead of being visible: control characters, line separators,
/// and characters that change the direction of writing (Unicode's Bidi_Control).
fn has_effect(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A text as one line that can be shown anywhere: every character with an effect is replaced.
pub fn printable(text: &str) -> String {
    text.chars().map(|c| if has_effect(c) { REPLACEMENT } else { c }).collect()
}

/// Output as it may reach a terminal. Line feeds and tabs are kept; other characters with an effect
/// are written as `\u001b`, which means the same character in a JSON document. With `colours`, the
/// sequences that set colours and bold type are kept, too.
pub fn for_terminal(text: &str, colours: bool) -> Cow<'_, str> {
    let is_safe = |c: char| matches!(c, '\n' | '\t') || !has_effect(c);
    if text.chars().all(is_safe) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let length = match colours.then(|| colour_length(rest)).flatten() {
            Some(length) => {
                shown.push_str(&rest[..length]);
                length
            }
            None => {
                if is_safe(c) {
                    shown.push(c);
                } else {
                    // Characters beyond 16 bits never have an effect; writing to a String cannot
                    // fail.
                    let _ = write!(shown, "\\u{:04x}", u32::from(c));
                }
                c.len_utf8()
            }
        };
        rest = &rest[length..];
    }
    Cow::Owned(shown)
}

/// Length in bytes of the sequence at the beginning that sets bold type (1) or a colour (30 to 37,
/// 38;5;N), or resets everything (0).
fn colour_length(text: &str) -> Option<usize> {
    let end = text.strip_prefix("\x1b[")?.find('m')? + 2;
    let number = text[2..end].strip_prefix("38;5;").unwrap_or(&text[2..end]);
    let of_palette = end - 2 != number.len();
    let digits = number.bytes().all(|byte| byte.is_ascii_digit());
    let number = number.parse::<u8>().ok().filter(|_| digits)?;
    (of_palette || matches!(number, 0 | 1 | 30..=37)).then_some(end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printable_text_is_one_line() {
        assert_eq!(printable("dgemm_ Größe 粒子 🙂"), "dgemm_ Größe 粒子 🙂");
        let hostile = "a\x1b[2Jb\nc\rd\u{9b}31me\u{7f}\u{202e}f\u{2028}";
        assert_eq!(printable(hostile), "a�[2Jb�c�d�31me��f�");
    }

    #[test]
    fn only_colours_reach_terminal() {
        let plain = "two\n\tlines, Größe\n";
        assert!(matches!(for_terminal(plain, true), Cow::Borrowed(_)));
        assert_eq!(
            for_terminal("a\x1b]0;x\x07\r\u{9b}m", true),
            "a\\u001b]0;x\\u0007\\u000d\\u009bm"
        );
        let coloured = "\x1b[1mCALLS\x1b[0m \x1b[38;5;208m█\x1b[0m \x1b[31mbad\x1b[0m";
        assert_eq!(for_terminal(coloured, true), coloured);
        assert_eq!(for_terminal("\x1b[1m", false), "\\u001b[1m");
        for other in
            ["\x1b[8m", "\x1b[m", "\x1b[38;5;m", "\x1b[2J", "\x1b[+1m", "\x1b[1", "\x1b[1;8m"]
        {
            assert!(for_terminal(other, true).starts_with("\\u001b"), "{other:?}");
        }
    }

    #[test]
    fn escaping_keeps_json_document() {
        let value = serde_json::json!({ "name": "a\x1b\u{9b}\u{7f}\n\u{202e}" });
        let text = serde_json::to_string(&value).unwrap();
        let shown = for_terminal(&text, false);
        assert!(shown.chars().all(|c| !has_effect(c)));
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), value);
    }
}
