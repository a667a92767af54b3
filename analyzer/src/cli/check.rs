//! `gammachi check`: checks whether runs are slower than a baseline, for continuous integration.

use std::path::PathBuf;

use clap::Args;

use super::error::{CommandError, notify, print, print_beside};
use super::output_file;
use super::records::RunFilter;
use crate::cli::terminal::has_colours;
use crate::comparison::configurations::split;
use crate::comparison::guard::{Check, Matching, Verdict};
use crate::comparison::{Comparison, RunRecord, baseline};
use crate::present::comparison::checked::{
    Case, Checked, annotations, checked_json, checked_screen, junit, no_match,
};
use crate::present::comparison::mixed;
use crate::present::comparison::several::{Several, several_json, several_screen};

/// Exit code for slower runs.
pub const EXIT_SLOWER: u8 = 3;
/// Exit code if the result is undecided.
pub const EXIT_CANNOT_TELL: u8 = 4;

/// Checks whether runs are slower than a baseline; the exit code tells.
///
/// The exit code is 0 if they are not slower than --at-most allows, 3 if they are, 4 if this is
/// undecided: too few runs, or runs that vary too much. Each configuration, such as those of a study,
/// is compared with the runs of the baseline that have the same program, rank count, parameters and
/// machine.
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
/// cannot be read, which the JUnit report and the annotation tell, too.
pub fn check(arguments: &CheckArguments) -> Result<(), CommandError> {
    let outcome = judge(arguments);
    if let Err(error @ (CommandError::Failed(_) | CommandError::Usage(_))) = &outcome {
        let name = arguments.runs[0].display().to_string();
        let sentence = error.to_string();
        publish(arguments, &[Case { name, seconds: 0.0, verdict: None, sentence }])?;
    }
    outcome
}

fn judge(arguments: &CheckArguments) -> Result<(), CommandError> {
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
    let runs = split(runs).map_err(|found| CommandError::usage(mixed(&found)))?;
    let matched: Vec<Matching> = runs.iter().map(|runs| Matching::of(&kept, runs)).collect();
    let mut compared = Vec::new();
    let mut alone = Vec::new();
    for (runs, matching) in runs.iter().zip(&matched) {
        match matching.alike.is_empty() {
            true => alone.push((&runs[0], no_match(matching, runs, &arguments.baseline))),
            false => {
                let relation = matching.relation(runs);
                let relation = relation.map_err(|found| CommandError::usage(mixed(&found)))?;
                compared.push(Comparison::new(&matching.alike, runs, relation));
            }
        }
    }
    let checks = Check::all(&compared, arguments.at_most);
    let sentences: Vec<String> = alone.iter().map(|(_, sentence)| sentence.clone()).collect();
    let several = Several {
        compared: &compared,
        alone: &sentences,
        checks: Some((&checks, arguments.at_most)),
    };
    let checked: Vec<Checked> = (0..compared.len()).filter_map(|at| several.checked(at)).collect();
    let cases = checked
        .iter()
        .map(|of| Case::of(&of.comparison.after[0], of.check.verdict, of.sentences().join(" ")));
    let cases = cases.chain(
        alone.into_iter().map(|(run, sentence)| Case::of(run, Verdict::CannotTell, sentence)),
    );
    publish(arguments, &cases.collect::<Vec<_>>())?;
    let text = match (&checked[..], &matched[..]) {
        ([], _) => {
            sentences.iter().for_each(|sentence| notify(sentence));
            return Err(CommandError::Exit(EXIT_CANNOT_TELL));
        }
        ([one], [matching]) => {
            let one = Checked { others: &matching.others, ..*one };
            match arguments.json {
                true => checked_json(&one),
                false => Ok(checked_screen(&one, has_colours())),
            }
        }
        _ if arguments.json => several_json(&several),
        _ => Ok(several_screen(&several, has_colours())),
    };
    print(&text.map_err(|error| CommandError::failed(error.to_string()))?)?;
    match Check::worst(&checks) {
        Verdict::Regressed => Err(CommandError::Exit(EXIT_SLOWER)),
        Verdict::Fine if sentences.is_empty() => Ok(()),
        Verdict::Fine | Verdict::CannotTell => Err(CommandError::Exit(EXIT_CANNOT_TELL)),
    }
}

/// Writes the JUnit report and prints the annotations, beside a JSON document on standard error.
fn publish(arguments: &CheckArguments, cases: &[Case]) -> Result<(), CommandError> {
    if let Some(path) = &arguments.junit {
        output_file::write(path, &junit(cases))?;
    }
    match (arguments.github, arguments.json) {
        (false, _) => Ok(()),
        (true, false) => print(&annotations(cases)),
        (true, true) => {
            print_beside(&annotations(cases));
            Ok(())
        }
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
