//! Breaks sentences into lines of a terminal.

use super::width;

/// Broken into lines, the later ones indented further.
pub(super) fn wrapped(indent: &str, text: &str) -> Vec<String> {
    broken(indent, &format!("{indent}  "), text, width::of_sentences())
}

/// Broken into lines that stand behind so many columns.
pub(super) fn wrapped_behind(columns: usize, text: &str) -> Vec<String> {
    broken("", "", text, width::of_sentences() - columns)
}

fn broken(first: &str, later: &str, text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![first.to_owned()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is a first line");
        let empty = line.trim().is_empty();
        // A number stays with its unit.
        let number = line.ends_with(|c: char| c.is_ascii_digit());
        if !empty && !number && line.chars().count() + 1 + word.chars().count() > width {
            lines.push(format!("{later}{word}"));
        } else {
            if !empty {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines
}
