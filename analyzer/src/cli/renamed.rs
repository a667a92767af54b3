//! Answers old names of commands with the new ones.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::shell_word::shell_word;

/// A command that has another name now.
struct Renamed {
    old: &'static str,
    new: &'static str,
    /// Options that have another name, too.
    options: &'static [(&'static str, &'static str)],
}

const RENAMED: [Renamed; 13] = [
    Renamed { old: "timeline", new: "view --text", options: &[] },
    Renamed { old: "plot", new: "view", options: &[("--out", "--svg")] },
    Renamed { old: "baseline add", new: "check --add", options: &[] },
    Renamed { old: "baseline show", new: "check --show", options: &[] },
    Renamed { old: "baseline trim", new: "check", options: &[("--keep", "--trim")] },
    Renamed { old: "baseline", new: "check", options: &[] },
    Renamed { old: "history", new: "check", options: &[("--html", "--history")] },
    Renamed { old: "table", new: "export --to table", options: &[] },
    Renamed { old: "ledger", new: "whatif --ledger", options: &[] },
    Renamed { old: "clock", new: "calibrate clock", options: &[] },
    Renamed { old: "logpq", new: "calibrate logpq", options: &[("--svg", "--figures")] },
    Renamed { old: "kernels", new: "calibrate kernels", options: &[] },
    Renamed { old: "tables", new: "calibrate kernels", options: &[] },
];

/// What the user could have typed instead of an old name; `None` if the error is another one.
pub fn answer(error: &clap::Error, line: impl IntoIterator<Item = OsString>) -> Option<String> {
    let (ErrorKind::InvalidSubcommand, Some(ContextValue::String(name))) =
        (error.kind(), error.get(ContextKind::InvalidSubcommand))
    else {
        return None;
    };
    let words = line.into_iter().map(|word| word.to_string_lossy().into_owned());
    let words: Vec<String> = words.skip_while(|word| word != name).collect();
    let is_old = |one: &&Renamed| {
        let old: Vec<&str> = one.old.split(' ').collect();
        words.len() >= old.len() && old.iter().zip(&words).all(|(old, word)| old == word)
    };
    let found = RENAMED.iter().find(is_old)?;
    let rest = &words[found.old.split(' ').count()..];
    let own = rest.iter().position(|word| word == "--").unwrap_or(rest.len());
    let own_words = rest[..own].iter().map(|word| found.option(word));
    let after = rest[own..].iter().cloned();
    let rest = own_words.chain(after).map(|word| format!(" {}", shell_word(&word)));
    Some(format!("{} is now: gammachi {}{}", found.old, found.new, rest.collect::<String>()))
}

/// Whether a command had this name.
#[cfg(test)]
pub fn is_old(name: &str) -> bool {
    RENAMED.iter().any(|one| one.old.split(' ').next() == Some(name))
}

impl Renamed {
    /// A word of the old command line under its new name.
    fn option(&self, word: &str) -> String {
        let (name, value) = word.find('=').map_or((word, ""), |at| word.split_at(at));
        let new = self.options.iter().find(|(old, _)| *old == name);
        new.map_or_else(|| word.to_owned(), |(_, new)| format!("{new}{value}"))
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::CommandLine;

    /// Old command lines and new ones.
    const LINES: [(&str, &str); 15] = [
        ("timeline", "view --text"),
        ("timeline r --ranks 0-3 --width 90", "view --text r --ranks 0-3 --width 90"),
        ("plot r --kind tau-chi --out f.svg", "view r --kind tau-chi --svg f.svg"),
        ("plot --out=- --kind sizes -- r", "view --svg=- --kind sizes -- r"),
        ("baseline add r s --baseline perf", "check --add r s --baseline perf"),
        ("baseline show --baseline perf --json", "check --show --baseline perf --json"),
        ("baseline trim --baseline perf --keep 20", "check --baseline perf --trim 20"),
        ("history perf --html=h.html --share", "check perf --history=h.html --share"),
        ("table --region solve p1 p2", "export --to table --region solve p1 p2"),
        ("ledger folder --json", "whatif --ledger folder --json"),
        ("ledger --answer 3fa2c1 r", "whatif --ledger --answer 3fa2c1 r"),
        ("clock --drift 60 -- mpirun --out x", "calibrate clock --drift 60 -- mpirun --out x"),
        ("logpq machine.json --svg plots", "calibrate logpq machine.json --figures plots"),
        ("kernels r", "calibrate kernels r"),
        ("tables lattice.json --figures plots", "calibrate kernels lattice.json --figures plots"),
    ];

    #[test]
    fn old_command_lines_are_answered_with_new_ones_that_parse() {
        for (old, new) in LINES {
            let line = format!("gammachi {old}");
            let error = CommandLine::try_parse_from(line.split(' ')).expect_err(old);
            let sentence = answer(&error, line.split(' ').map(OsString::from)).expect(old);
            let (_, suggested) = sentence.split_once(" is now: ").expect(old);
            assert_eq!(suggested, format!("gammachi {new}"));
            if let Err(error) = CommandLine::try_parse_from(suggested.split(' ')) {
                panic!("{suggested}: {error}");
            }
        }
        for Renamed { old, .. } in RENAMED {
            assert!(LINES.iter().any(|(line, _)| line.starts_with(old)), "{old} is not tested");
        }
    }

    #[test]
    fn other_unknown_commands_have_no_new_name() {
        let error = CommandLine::try_parse_from(["gammachi", "frobnicate"]).expect_err("unknown");
        assert_eq!(answer(&error, ["gammachi", "frobnicate"].map(OsString::from)), None);
    }
}
