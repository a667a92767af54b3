//! `gammachi compare`: shows what differs between two sets of runs, and why.

mod timelines;

use std::path::{Path, PathBuf};

use clap::Args;

use super::error::{CommandError, eprint_message, print_result};
use super::output_file;
use super::output_rights::OutputRights;
use super::records::RunFilter;
use crate::comparison::configurations::{pair, split};
use crate::comparison::subject::Difference;
use crate::comparison::{Comparison, Relation, RunRecord};
use crate::present::comparison::several::{Several, configuration, several_json, several_screen};
use crate::present::comparison::{json, page, screen};

/// Compares runs before and after a change: what changed and why.
///
/// First compares what does not vary (calls, bytes, messages, partners), then times, per iteration
/// and of the whole run, and where they went, with intervals. Each side may be runs, studies or
/// baselines; with three or more runs per side, a change can be distinguished from noise. Each
/// configuration is compared with its counterpart.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gammachi compare before.gammachi after.gammachi\n  \
                  gammachi compare old-1.gammachi old-2.gammachi old-3.gammachi -- new-*.gammachi\n  \
                  gammachi compare old-study new-study --only p=4 --html compare.html\n\nHow differences are distinguished from noise: docs/guide/compare.md. Keys of --json:\ndocs/reference/compare-json.md.")]
pub struct CompareArguments {
    /// One run, study or baseline before and one after; or any number before, followed by `--`
    #[arg(value_name = "BEFORE", required = true)]
    before: Vec<PathBuf>,

    /// Runs, studies or baselines after the change
    #[arg(value_name = "AFTER", last = true)]
    after: Vec<PathBuf>,

    #[command(flatten)]
    only: RunFilter,

    /// Write a page with both timelines
    #[arg(long, value_name = "FILE.html")]
    html: Option<PathBuf>,

    /// Iteration that the timelines of the page show, counted from 0 [default: a typical one]
    #[arg(long, value_name = "NUMBER", requires = "html")]
    iteration: Option<usize>,

    #[command(flatten)]
    rights: OutputRights,

    /// Print a JSON document
    #[arg(long)]
    json: bool,
}

pub fn compare(arguments: &CompareArguments) -> Result<(), CommandError> {
    arguments.rights.apply();
    let (before, after) = sides(arguments)?;
    let records = [before, after].map(|side| arguments.only.read(side));
    let [before, after] = records;
    let (before, after) = (before?, after?);
    if let Some(run) = before.iter().find(|one| after.iter().any(|other| one.is_same_run(other))) {
        return Err(CommandError::usage(format!("{}: is named on both sides", run.run)));
    }
    let (before, after) = (split(before)?, split(after)?);
    match (&before[..], &after[..]) {
        ([before], [after]) => compare_one(arguments, before, after),
        _ => compare_several(arguments, before, after),
    }
}

fn compare_one(
    arguments: &CompareArguments,
    before: &[RunRecord],
    after: &[RunRecord],
) -> Result<(), CommandError> {
    let relation = relation(before, after)?;
    let comparison = Comparison::new(before, after, relation);
    if let Some(path) = &arguments.html {
        write_page(arguments, &comparison, path)?;
    }
    print_result(arguments.json, || json(&comparison), |colour| screen(&comparison, colour))
}

/// Compares runs of several configurations, each with its like.
fn compare_several(
    arguments: &CompareArguments,
    before: Vec<Vec<RunRecord>>,
    after: Vec<Vec<RunRecord>>,
) -> Result<(), CommandError> {
    if arguments.html.is_some() {
        let first = before.first().or(after.first()).map(|side| configuration(&side[0]));
        return Err(CommandError::usage(format!(
            "--html: a page shows one configuration of several; choose it with --only, such as {}",
            first.unwrap_or_default()
        )));
    }
    let all = pair(before, after);
    let mut compared = Vec::new();
    let mut alone = Vec::new();
    for of in &all {
        match (&of.before[..], &of.after[..]) {
            ([], runs) => alone.push(format!("Only after: {}.", configuration(&runs[0]))),
            (runs, []) => alone.push(format!("Only before: {}.", configuration(&runs[0]))),
            (before, after) => {
                compared.push(Comparison::new(before, after, relation(before, after)?));
            }
        }
    }
    if compared.is_empty() {
        return Err(CommandError::usage(format!(
            "no configuration was run before and after the change: {} Choose one of each side with --only, or name \
             its runs, to compare what each rank does with its time.",
            alone.join(" ")
        )));
    }
    let several = Several { compared: &compared, alone: &alone, checks: None };
    print_result(
        arguments.json,
        || several_json(&several),
        |colour| several_screen(&several, colour),
    )
}

fn sides(arguments: &CompareArguments) -> Result<(&[PathBuf], &[PathBuf]), CommandError> {
    match (&arguments.before[..], &arguments.after[..]) {
        ([before, after], []) => Ok((std::slice::from_ref(before), std::slice::from_ref(after))),
        (_, after) if after.iter().any(|name| name.to_string_lossy().starts_with("--")) => {
            Err(CommandError::usage(
                "options must stand before the `--` that ends the runs before the change",
            ))
        }
        (_, []) => Err(CommandError::usage(
            "name one run before and one after, or several with `--` between: gammachi compare BEFORE… -- AFTER…",
        )),
        (before, after) => Ok((before, after)),
    }
}

fn relation(before: &[RunRecord], after: &[RunRecord]) -> Result<Relation, CommandError> {
    let relation = Relation::between(before, after)?;
    if relation.differences.contains(&Difference::Program) {
        return Err(CommandError::usage(format!(
            "{} ran before, {} after: different programs do different work; name runs of one program",
            before[0].program, after[0].program
        )));
    }
    Ok(relation)
}

fn write_page(
    arguments: &CompareArguments,
    of: &Comparison,
    path: &Path,
) -> Result<(), CommandError> {
    let (before, after) = sides(arguments)?;
    let timelines = match timelines::draw([&before[0], &after[0]], arguments.iteration) {
        Ok(timelines) => Some(timelines),
        Err(why) if arguments.iteration.is_some() => {
            return Err(CommandError::usage(format!("--iteration: {why}")));
        }
        Err(why) => {
            eprint_message(&format!("--html: the page has no timelines: {why}"));
            None
        }
    };
    let text = page(of, timelines.as_ref())?;
    output_file::write(path, &text)
}
