//! Shows how two lists of lines differ, for the message of a failed test.

/// Lines of context around a difference.
const CONTEXT: usize = 3;
/// Characters shown of a line.
const WIDTH: usize = 240;
/// Lines shown of a thread.
const MOST: usize = 60;

/// The difference, `-` expected and `+` recorded; empty where there is none.
pub fn difference(expected: &[String], recorded: &[String]) -> String {
    let same = expected.iter().zip(recorded).take_while(|(a, b)| a == b).count();
    if same == expected.len() && same == recorded.len() {
        return String::new();
    }
    let tail = |lines: &[String]| lines.len() - same;
    let equal_end = expected
        .iter()
        .rev()
        .zip(recorded.iter().rev())
        .take(tail(expected).min(tail(recorded)))
        .take_while(|(a, b)| a == b)
        .count();
    let first = same.saturating_sub(CONTEXT);
    let mut out = format!("  … {first} equal lines\n");
    let mut show = |mark: char, lines: &[String]| {
        for line in lines.iter().take(MOST) {
            let line: String = line.chars().take(WIDTH).collect();
            out.push_str(&format!("{mark} {line}\n"));
        }
        if lines.len() > MOST {
            out.push_str(&format!("{mark} … {} more lines\n", lines.len() - MOST));
        }
    };
    show(' ', &expected[first..same]);
    // Lines at the same position are shown in pairs.
    let (old, new) =
        (&expected[same..expected.len() - equal_end], &recorded[same..recorded.len() - equal_end]);
    if old.len() == new.len() {
        for (old, new) in old.iter().zip(new) {
            match old == new {
                true => show(' ', std::slice::from_ref(old)),
                false => {
                    show('-', std::slice::from_ref(old));
                    show('+', std::slice::from_ref(new));
                }
            }
        }
    } else {
        show('-', old);
        show('+', new);
    }
    let after = expected.len() - equal_end;
    show(' ', &expected[after..(after + CONTEXT).min(expected.len())]);
    out
}
