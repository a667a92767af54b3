//! Sentences on a terminal: text comes in, lines of at most 96 characters go out.

/// Broken into lines, the later ones indented further.
pub(super) fn wrapped(indent: &str, text: &str) -> Vec<String> {
    let mut lines = vec![indent.to_owned()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("there is a first line");
        let empty = line.trim().is_empty();
        // A number stays with its unit.
        let number = line.ends_with(|c: char| c.is_ascii_digit());
        if !empty && !number && line.chars().count() + 1 + word.chars().count() > 96 {
            lines.push(format!("{indent}  {word}"));
        } else {
            if !empty {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines
}
