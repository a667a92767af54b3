//! Text that others wrote, on its way to a terminal or into a line of a file.
//!
//! Names in a trace, file names, arguments and what programs print may hold escape sequences, which a
//! terminal obeys, line feeds, which forge lines, and characters that turn the order of writing round.
//! There are two lines of defence:
//!
//! - [`for_terminal`] is the last gate: all that the command writes goes through it (`cli::error`), so what is
//!   forgotten elsewhere still cannot reach a terminal as a command to it;
//! - [`printable`] makes one line of a text: for columns, titles and files that are read by lines.

use std::borrow::Cow;
use std::fmt::Write;

/// What stands for a character that is not shown.
const REPLACEMENT: char = '\u{fffd}';

/// Whether a character does something instead of being seen: controls, separators of lines, and what
/// changes the direction of writing (Unicode's Bidi_Control).
fn acts(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// One line that can be shown anywhere: every character that acts is replaced.
pub fn printable(text: &str) -> String {
    text.chars().map(|c| if acts(c) { REPLACEMENT } else { c }).collect()
}

/// Whole output as it may reach a terminal. Line feeds and tabs stay; other characters that act are written
/// as `\u001b`, which in a JSON document is the same character. With `colours` the sequences that set
/// colours and bold type stay, too.
pub fn for_terminal(text: &str, colours: bool) -> Cow<'_, str> {
    let stays = |c: char| matches!(c, '\n' | '\t') || !acts(c);
    if text.chars().all(stays) {
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
                if stays(c) {
                    shown.push(c);
                } else {
                    // Characters beyond 16 bits never act; writing to a String cannot fail.
                    let _ = write!(shown, "\\u{:04x}", u32::from(c));
                }
                c.len_utf8()
            }
        };
        rest = &rest[length..];
    }
    Cow::Owned(shown)
}

/// Bytes of the sequence at the beginning that sets bold type (1), a colour (30 to 37, 38;5;N), or all back
/// (0).
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
    fn a_line_is_a_line() {
        assert_eq!(printable("dgemm_ Größe 粒子 🙂"), "dgemm_ Größe 粒子 🙂");
        let hostile = "a\x1b[2Jb\nc\rd\u{9b}31me\u{7f}\u{202e}f\u{2028}";
        assert_eq!(printable(hostile), "a�[2Jb�c�d�31me��f�");
    }

    #[test]
    fn a_terminal_is_told_nothing_but_colours() {
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
    fn json_stays_the_same_document() {
        let value = serde_json::json!({ "name": "a\x1b\u{9b}\u{7f}\n\u{202e}" });
        let text = serde_json::to_string(&value).unwrap();
        let shown = for_terminal(&text, false);
        assert!(shown.chars().all(|c| !acts(c)));
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), value);
    }
}
