//! `gammachi check`: checks whether runs are slower than a baseline, for continuous integration, and
//! keeps the baseline.

use std::path::{Path, PathBuf};

use clap::Args;

use super::error::{CommandError, eprint_message, print, print_result, print_to_stderr};
use super::output_file;
use super::output_rights::OutputRights;
use super::records::RunFilter;
use crate::comparison::baseline::{self, Added};
use crate::comparison::configurations::split;
use crate::comparison::guard::{Check, Matching, Verdict};
use crate::comparison::history::Series;
use crate::comparison::{Comparison, RunRecord};
use crate::present::comparison::checked::{
    Case, Checked, annotations, checked_json, checked_screen, junit, no_match,
};
use crate::present::comparison::several::{Several, several_json, several_screen};
use crate::present::comparison::{baseline_json, baseline_screen, history};
use crate::present::quantity::count;

/// Exit code for slower runs.
pub const EXIT_SLOWER: u8 = 3;
/// Exit code if the result is undecided.
pub const EXIT_CANNOT_TELL: u8 = 4;

/// Checks runs against a baseline; the exit code reports a slowdown.
///
/// The exit code is 0 if they are not slower than --at-most allows, 3 if they are, 4 if this is
/// undecided: too few runs, or runs that vary too much. Each configuration, such as those of a study,
/// is compared with the runs of the baseline that have the same program, rank count, parameters and
/// machine.
///
/// A baseline is a folder of small files, one of a few kilobytes per run: times, iterations and
/// counts, but no events. It can be kept in git. --add, --show, --trim and --history fill, list,
/// shorten and draw it and check nothing.
#[derive(Debug, Args)]
#[command(mut_arg("share", |share| share.requires("history").conflicts_with_all(["add", "show", "trim"])))]
#[command(after_help = "Examples:\n  gammachi check --add old-*.gammachi --baseline perf\n  \
                  gammachi check new-*.gammachi --baseline perf --at-most 1% --junit perf.xml\n  \
                  gammachi check new-*.gammachi --baseline perf --github\n  \
                  gammachi check --trim 20 --baseline perf\n  \
                  gammachi check --history perf.html --baseline perf\n\nA run's parameter `commit` is \
                  shown beside its point in --history:\n  \
                  gammachi run --param commit=$(git rev-parse --short HEAD) -- mpirun -n 4 ./app\n\nReady \
                  workflows: docs/ci. How it decides and how changes are found: docs/guide/compare.md. Files \
                  of a baseline: docs/reference/compare-json.md.")]
pub struct CheckArguments {
    /// Runs or studies to check; with three or more, a change can be distinguished from noise
    #[arg(value_name = "RUN|STUDY", required_unless_present_any = ["show", "trim", "history"])]
    runs: Vec<PathBuf>,

    /// Folder of the baseline; --add creates it
    #[arg(long, value_name = "DIR", required_unless_present = "history")]
    baseline: Option<PathBuf>,

    /// How much slower they may be
    #[arg(long, value_name = "PERCENT", default_value = "2%", value_parser = fraction,
          conflicts_with = "instead")]
    at_most: f64,

    #[command(flatten)]
    only: RunFilter,

    /// Add the runs to the baseline
    #[arg(long, group = "instead")]
    add: bool,

    /// Show the runs of the baseline
    #[arg(long, group = "instead", conflicts_with_all = ["runs", "pairs"])]
    show: bool,

    /// Keep only the N newest runs of each program, parameters and machine in the baseline
    #[arg(long, value_name = "N", group = "instead", conflicts_with_all = ["runs", "pairs"],
          value_parser = clap::value_parser!(u32).range(1..))]
    trim: Option<u32>,

    /// Write a page that draws time and efficiency of the baseline, runs and studies over time and
    /// marks changes
    #[arg(long, value_name = "FILE.html", group = "instead")]
    history: Option<PathBuf>,

    #[command(flatten)]
    rights: OutputRights,

    /// Write the result as a JUnit test report
    #[arg(long, value_name = "FILE.xml", conflicts_with = "instead")]
    junit: Option<PathBuf>,

    /// Print the result as an annotation for GitHub workflows
    #[arg(long, conflicts_with = "instead")]
    github: bool,

    /// Print a JSON document
    #[arg(long, conflicts_with_all = ["add", "trim", "history"])]
    json: bool,
}

impl CheckArguments {
    /// The folder of the baseline, which only --history does not need.
    fn folder(&self) -> &Path {
        self.baseline.as_deref().unwrap_or(Path::new("."))
    }
}

/// Parses `3%` or `3` as a fraction.
fn fraction(text: &str) -> Result<f64, String> {
    let number = text.trim().trim_end_matches('%').trim();
    match number.parse::<f64>() {
        Ok(percent) if (0.1..=1_000.0).contains(&percent) => Ok(percent / 100.0),
        _ => Err("not a percentage between 0.1% and 1000%".to_owned()),
    }
}

/// Checks runs and prints the result, or does what is asked instead.
///
/// # Errors
/// The exit code, if they are slower or this is undecided; failure for runs or a baseline that
/// cannot be read, which the JUnit report and the annotation tell, too.
pub fn check(arguments: &CheckArguments) -> Result<(), CommandError> {
    let CheckArguments { runs, only, .. } = arguments;
    match (&arguments.history, arguments.trim) {
        (Some(page), _) => {
            arguments.rights.apply();
            let sources: Vec<PathBuf> = arguments.baseline.iter().chain(runs).cloned().collect();
            return draw(&sources, only, page);
        }
        (None, Some(number)) => return trim(arguments.folder(), number),
        (None, None) if arguments.show => return show(arguments.folder(), arguments.json),
        (None, None) if arguments.add => return add(arguments.folder(), runs, only),
        (None, None) => {}
    }
    let outcome = judge(arguments);
    if let Err(error) = &outcome
        && error.has_message()
    {
        let name = arguments.runs[0].display().to_string();
        let sentence = error.to_string();
        publish(arguments, &[Case { name, seconds: 0.0, verdict: None, sentence }])?;
    }
    outcome
}

fn judge(arguments: &CheckArguments) -> Result<(), CommandError> {
    let kept = baseline::read(arguments.folder())?;
    let runs = arguments.only.read(&arguments.runs)?;
    let mut kept: Vec<RunRecord> = kept.into_iter().map(|kept| kept.record).collect();
    let all = kept.len();
    kept.retain(|record| !runs.iter().any(|run| run.is_same_run(record)));
    if kept.len() < all {
        let (same, name) = (all - kept.len(), arguments.folder().display());
        eprint_message(&format!(
            "{name}: {same} of its runs are those to check, and are left out of it"
        ));
    }
    let runs = split(runs)?;
    let matched: Vec<Matching> = runs.iter().map(|runs| Matching::new(&kept, runs)).collect();
    let mut compared = Vec::new();
    let mut alone = Vec::new();
    for (runs, matching) in runs.iter().zip(&matched) {
        match matching.alike.is_empty() {
            true => alone.push((&runs[0], no_match(matching, runs, arguments.folder()))),
            false => {
                compared.push(Comparison::new(&matching.alike, runs, matching.relation(runs)?));
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
        .map(|of| Case::new(&of.comparison.after[0], of.check.verdict, of.sentences().join(" ")));
    let cases = cases.chain(
        alone.into_iter().map(|(run, sentence)| Case::new(run, Verdict::CannotTell, sentence)),
    );
    publish(arguments, &cases.collect::<Vec<_>>())?;
    match (&checked[..], &matched[..]) {
        ([], _) => {
            sentences.iter().for_each(|sentence| eprint_message(sentence));
            return Err(CommandError::Exit(EXIT_CANNOT_TELL));
        }
        ([one], [matching]) => {
            let one = Checked { others: &matching.others, ..*one };
            print_result(
                arguments.json,
                || checked_json(&one),
                |colour| checked_screen(&one, colour),
            )
        }
        _ => print_result(
            arguments.json,
            || several_json(&several),
            |colour| several_screen(&several, colour),
        ),
    }?;
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
            print_to_stderr(&annotations(cases));
            Ok(())
        }
    }
}

fn add(folder: &Path, runs: &[PathBuf], only: &RunFilter) -> Result<(), CommandError> {
    let records = only.read(runs)?;
    if let Some(simulated) = records.iter().find(|record| record.simulated) {
        return Err(CommandError::usage(format!(
            "{}: was written by `gammachi whatif`; only measured runs belong in a baseline",
            simulated.run
        )));
    }
    let added = records.iter().map(|record| baseline::add(folder, record));
    let added = added.collect::<Result<Vec<Added>, _>>()?;
    let new = added.iter().filter(|added| matches!(added, Added::New(_))).count();
    let known = match added.len() - new {
        0 => String::new(),
        known => format!("; {} had been added before", count(known as u64)),
    };
    eprint_message(&format!("{}: {} added{known}", folder.display(), count(new as u64)));
    Ok(())
}

fn show(folder: &Path, as_json: bool) -> Result<(), CommandError> {
    let all = baseline::read(folder)?;
    print_result(as_json, || baseline_json(&all), |_| baseline_screen(&all, folder))
}

/// Removes all but the newest runs of each program, parameters and machine.
fn trim(folder: &Path, keep: u32) -> Result<(), CommandError> {
    let all = baseline::read(folder)?;
    let surplus = baseline::surplus(&all, keep as usize);
    baseline::remove(&surplus)?;
    let (removed, left) = (surplus.len() as u64, (all.len() - surplus.len()) as u64);
    let (removed, left) = (count(removed), count(left));
    eprint_message(&format!("{}: {removed} removed, {left} left", folder.display()));
    Ok(())
}

/// Writes a page that draws runs over time.
fn draw(sources: &[PathBuf], only: &RunFilter, page: &Path) -> Result<(), CommandError> {
    let mut runs = only.read(sources)?;
    runs.sort_by(|a, b| (a.begun_ns, &a.run).cmp(&(b.begun_ns, &b.run)));
    let text = history::page(&Series::all(&runs))?;
    output_file::write(page, &text)?;
    eprint_message(&format!("wrote {}", page.display()));
    Ok(())
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
