//! Breaks sentences into lines of a terminal.

use super::width;

/// Words that a reader takes in at once.
const AT_ONCE: usize = 35;

/// The first sentences, as many as a reader takes in at once but at least one, and the others.
pub(super) fn headline(sentences: &str) -> (String, String) {
    let (mut first, mut words) = (0, 0);
    for sentence in sentences.split_inclusive(". ") {
        words += sentence.split_whitespace().count();
        if first > 0 && words > AT_ONCE {
            break;
        }
        first += sentence.len();
    }
    let (first, rest) = sentences.split_at(first);
    (first.trim_end().to_owned(), rest.to_owned())
}

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
    fn headline_ends_with_a_sentence() {
        let long = |words: usize| "x.c:1 ".repeat(words - 1) + "end. ";
        let (first, rest) = headline(&(long(20) + &long(15) + &long(1)));
        assert_eq!((first.split(' ').count(), rest.as_str()), (35, "end. "));
        let (first, rest) = headline(&(long(36) + &long(1)));
        assert_eq!((first.split(' ').count(), rest.as_str()), (36, "end. "));
        assert_eq!(headline(""), Default::default());
    }

    #[test]
    fn numbers_stay_with_their_units() {
        let lines = break_lines("", "  ", "the ranks wait for 84.0 ms each", 22);
        assert_eq!(lines, ["the ranks wait for", "  84.0 ms each"]);
        assert_eq!(break_lines("", "", "123 milliseconds", 8), ["123", "milliseconds"]);
    }
}
