//! Breaks sentences into lines of a terminal.

use super::width;

/// Breaks a text into lines and indents all but the first further.
pub(super) fn wrapped(indent: &str, text: &str) -> Vec<String> {
    break_lines(indent, &format!("{indent}  "), text, width::for_sentences())
}

/// Breaks a text into lines that begin after `columns` columns.
pub(super) fn wrapped_after(columns: usize, text: &str) -> Vec<String> {
    break_lines("", "", text, width::for_sentences() - columns)
}

fn break_lines(first: &str, later: &str, text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![first.to_owned()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is a first line");
        let empty = line.trim().is_empty();
        if !empty && line.chars().count() + 1 + word.chars().count() > width {
            // A number stays with its unit.
            let number =
                line.rfind(' ').filter(|at| line[at + 1..].ends_with(|c: char| c.is_ascii_digit()));
            let number = number.filter(|at| !line[..*at].trim().is_empty());
            let number =
                number.map_or(String::new(), |at| line.split_off(at).trim().to_owned() + " ");
            lines.push(format!("{later}{number}{word}"));
        } else {
            if !empty {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stay_with_their_units() {
        let lines = break_lines("", "  ", "the ranks wait for 84.0 ms each", 22);
        assert_eq!(lines, ["the ranks wait for", "  84.0 ms each"]);
        assert_eq!(break_lines("", "", "123 milliseconds", 8), ["123", "milliseconds"]);
    }
}
