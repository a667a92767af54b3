//! `gammachi check`: checks whether runs are slower than a baseline, for continuous integration.

use std::path::PathBuf;

use clap::Args;

use super::error::{CommandError, notify, print, print_beside};
use super::output_file;
use super::records::RunFilter;
use crate::cli::terminal::has_colours;
use crate::comparison::guard::{Check, Matching, Verdict};
use crate::comparison::{Comparison, RunRecord, baseline};
use crate::present::comparison::checked::{
    Checked, annotations, checked_json, checked_screen, junit, no_match,
};
use crate::present::comparison::mixed;

/// Exit code for slower runs.
pub const EXIT_SLOWER: u8 = 3;
/// Exit code if the result is undecided.
pub const EXIT_CANNOT_TELL: u8 = 4;

/// Checks whether runs are slower than a baseline; the exit code tells.
///
/// The exit code is 0 if they are not slower than --at-most allows, 3 if they are, 4 if this is
/// undecided: too few runs, or runs that vary too much. Only runs of the baseline with the same
/// program, rank count, parameters and machine are considered.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gammachi check new-*.gammachi --baseline perf\n  \
                  gammachi check new-*.gammachi --baseline perf --at-most 1% --junit perf.xml\n  \
                  gammachi check new-*.gammachi --baseline perf --github\n\nReady workflows: docs/ci. How it \
                  decides: docs/guide/compare.md.")]
pub struct CheckArguments {
    /// Runs or studies to check; with three or more, a change can be told from chance
    #[arg(value_name = "RUN|STUDY", required = true)]
    runs: Vec<PathBuf>,

    /// Folder filled by `gammachi baseline add`
    #[arg(long, value_name = "DIR")]
    baseline: PathBuf,

    /// How much slower they may be
    #[arg(long, value_name = "PERCENT", default_value = "2%", value_parser = fraction)]
    at_most: f64,

    #[command(flatten)]
    only: RunFilter,

    /// Write the result as a JUnit test report
    #[arg(long, value_name = "FILE.xml")]
    junit: Option<PathBuf>,

    /// Print the result as an annotation for GitHub workflows
    #[arg(long)]
    github: bool,

    /// Print a JSON document
    #[arg(long)]
    json: bool,
}

/// Parses `3%` or `3` as a fraction.
fn fraction(text: &str) -> Result<f64, String> {
    let number = text.trim().trim_end_matches('%').trim();
    match number.parse::<f64>() {
        Ok(percent) if (0.1..=1_000.0).contains(&percent) => Ok(percent / 100.0),
        _ => Err("not a percentage between 0.1% and 1000%".to_owned()),
    }
}

/// Checks runs and prints the result.
///
/// # Errors
/// The exit code, if they are slower or this is undecided; failure for runs or a baseline that
/// cannot be read.
pub fn check(arguments: &CheckArguments) -> Result<(), CommandError> {
    let kept = baseline::read(&arguments.baseline);
    let kept = kept.map_err(|error| CommandError::failed(error.to_string()))?;
    let runs = arguments.only.read(&arguments.runs)?;
    let mut kept: Vec<RunRecord> = kept.into_iter().map(|kept| kept.record).collect();
    let all = kept.len();
    kept.retain(|record| !runs.iter().any(|run| run.is_same_run(record)));
    if kept.len() < all {
        let (same, name) = (all - kept.len(), arguments.baseline.display());
        notify(&format!("{name}: {same} of its runs are those to check, and are left out of it"));
    }
    let matching = Matching::of(kept, &runs);
    let relation = match matching.alike.is_empty() {
        true => None,
        false => {
            let relation = matching.relation(&runs);
            Some(relation.map_err(|found| CommandError::usage(mixed(&found)))?)
        }
    };
    let Some(relation) = relation else {
        let sentence = no_match(&matching, &runs, &arguments.baseline);
        if let Some(path) = &arguments.junit {
            output_file::write(path, &junit(&sentence, Verdict::CannotTell, &runs[0]))?;
        }
        if arguments.github {
            annotate(arguments, &sentence, Verdict::CannotTell)?;
        }
        notify(&sentence);
        return Err(CommandError::Exit(EXIT_CANNOT_TELL));
    };
    let comparison = Comparison::new(&matching.alike, &runs, relation);
    let check = Check::new(&comparison, arguments.at_most);
    let checked = Checked {
        comparison: &comparison,
        check: &check,
        at_most: arguments.at_most,
        others: &matching.others,
    };
    let sentence = checked.sentences().join(" ");
    if let Some(path) = &arguments.junit {
        output_file::write(path, &junit(&sentence, check.verdict, &runs[0]))?;
    }
    if arguments.github {
        annotate(arguments, &sentence, check.verdict)?;
    }
    let text = match arguments.json {
        true => checked_json(&checked).map_err(|error| CommandError::failed(error.to_string()))?,
        false => {
            let colour = has_colours();
            checked_screen(&checked, colour)
        }
    };
    print(&text)?;
    match check.verdict {
        Verdict::Fine => Ok(()),
        Verdict::Regressed => Err(CommandError::Exit(EXIT_SLOWER)),
        Verdict::CannotTell => Err(CommandError::Exit(EXIT_CANNOT_TELL)),
    }
}

/// Prints the annotation, beside a JSON document on standard error.
fn annotate(
    arguments: &CheckArguments,
    sentence: &str,
    verdict: Verdict,
) -> Result<(), CommandError> {
    let text = annotations(sentence, verdict);
    match arguments.json {
        true => {
            print_beside(&text);
            Ok(())
        }
        false => print(&text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_percentages() {
        for (text, expected) in [("3%", 0.03), ("3", 0.03), ("2.5 %", 0.025), ("100%", 1.0)] {
            assert!((fraction(text).unwrap() - expected).abs() < 1e-12, "{text}");
        }
        for text in ["", "%", "0", "-1%", "x", "nan"] {
            assert!(fraction(text).is_err(), "{text}");
        }
    }
}
