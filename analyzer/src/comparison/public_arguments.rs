//! The arguments of a program as a baseline keeps them.
//!
//! A baseline is made for a repository that others read, and a command line may contain a password
//! or a path that says whose it is. As with the environment of a trace, what is known to be harmless
//! is kept: numbers, and names of options. Of everything else a checksum remains that is too short
//! to guess the text from, but tells most other texts apart.

use trace_format::encoding::checksum;

/// How many digits of the checksum are kept: 16 bits.
const DIGITS: usize = 4;
/// Longest number or name of an option.
const MAX_CHARACTERS: usize = 32;
const HIDDEN: char = '…';

/// The arguments without what may be confidential. What was filtered before does not change.
pub fn public(arguments: &[String]) -> Vec<String> {
    arguments.iter().map(|word| public_word(word)).collect()
}

fn public_word(word: &str) -> String {
    if is_number(word) || is_option(word) || is_hidden(word) {
        return word.to_owned();
    }
    match word.split_once('=') {
        Some((name, value)) if is_name(name.trim_start_matches('-')) => {
            let value = match is_number(value) || is_hidden(value) {
                true => value.to_owned(),
                false => hidden(value),
            };
            format!("{name}={value}")
        }
        _ => hidden(word),
    }
}

fn hidden(text: &str) -> String {
    let digits = format!("{:08x}", checksum(text.as_bytes()));
    format!("{HIDDEN}{}", &digits[..DIGITS])
}

fn is_hidden(text: &str) -> bool {
    let digits = text.strip_prefix(HIDDEN);
    digits.is_some_and(|d| d.len() == DIGITS && d.chars().all(|c| c.is_ascii_hexdigit()))
}

/// `100`, `-1.5e-3`, `4x4x2`, `1:8`.
fn is_number(text: &str) -> bool {
    let separates = |c: char| "x,:".contains(c);
    text.len() <= MAX_CHARACTERS
        && text.split(separates).all(|part| part.parse::<f64>().is_ok_and(f64::is_finite))
}

/// `-n`, `--size`, `-ksp_type`.
fn is_option(word: &str) -> bool {
    word.starts_with('-') && is_name(word.trim_start_matches('-'))
}

fn is_name(text: &str) -> bool {
    let inner = |c: char| c.is_ascii_alphabetic() || c == '_' || c == '-';
    text.len() <= MAX_CHARACTERS && !text.is_empty() && text.chars().all(inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_numbers_and_options_and_tells_the_rest_apart() {
        let words =
            ["-n", "100", "4x4", "--eps=1e-6", "N=80", "--token=hunter2", "in.lj", "-phunter2"];
        let kept = public(&words.map(String::from));
        assert_eq!(kept[..5], words[..5]);
        assert!(kept[5].starts_with("--token=…") && kept[5].chars().count() == 13, "{kept:?}");
        assert!(kept[6].starts_with('…') && kept[7].starts_with('…'), "{kept:?}");
        assert!(!kept.join(" ").contains("hunter2"));
        assert_eq!(public(&kept), kept, "an old record does not change");
        assert_ne!(public(&["in.lj".into()]), public(&["in.eam".into()]));
    }
}
