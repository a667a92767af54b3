//! Words the one thing to do next.

use super::measurement;
use crate::diagnosis::{Diagnosis, Figures, Purpose, Step, Why};
use crate::plain_text::printable;
use crate::present::blocks::INDENT;
use crate::present::causes::places;
use crate::present::width;
use crate::shell_word::shell_word;

/// What to do next: a command and its purpose.
pub(crate) fn next_step(diagnosis: &Diagnosis) -> (String, String) {
    in_words(diagnosis, diagnosis.next())
}

/// What to do next once the waiting has been traced back, if that is worth anything.
pub(crate) fn after_causes(why: &Why, diagnosis: &Diagnosis) -> Option<(String, String)> {
    if diagnosis.invalidated_by(Figures::Predictions).is_some() {
        return Some(next_step(diagnosis));
    }
    if let Some(step) = diagnosis.names_function() {
        return Some(in_words(diagnosis, step));
    }
    let (command, _) = in_words(diagnosis, Step::WhatIf(Purpose::Savings));
    why.ideal.is_ok().then(|| (command, "what a change would save".to_owned()))
}

/// The lines of a command and its purpose.
pub(crate) fn next_lines((command, purpose): (String, String)) -> Vec<String> {
    let both = format!("{command}      {purpose}");
    match width::fits(INDENT + both.chars().count()) {
        true => vec![both],
        false => vec![command, purpose],
    }
}

fn in_words(diagnosis: &Diagnosis, step: Step) -> (String, String) {
    let run = shell_word(&diagnosis.of.run.directory.display().to_string());
    let (command, purpose) = match step {
        Step::View(purpose) => (format!("gammachi view {run}"), words(purpose)),
        Step::Record { options, purpose } => (record(options), words(purpose)),
        Step::RecordBetter(found) => (record(found.better_options()), measurement::purpose(&found)),
        Step::RecordPaths { library } => {
            let library = printable(places::library_name(&library));
            let purpose = format!("shows which lines of your program call {library}");
            return (recorded_again(diagnosis, "--level 2"), purpose);
        }
        Step::RecordSamples { rank } => {
            let purpose = format!("names the function in which rank {rank} computes longer");
            return (recorded_again(diagnosis, "--sample"), purpose);
        }
        Step::Why(None) => (format!("gammachi why {run}"), "traces the waiting back to its causes"),
        Step::Why(Some(iteration)) => (
            format!("gammachi why {run} --iteration {iteration}"),
            "shows what made that iteration slow",
        ),
        Step::WhatIf(purpose) => (format!("gammachi whatif {run}"), words(purpose)),
        Step::Sweep(counts) => {
            let counts: Vec<String> = counts.iter().map(u32::to_string).collect();
            let command = format!("gammachi sweep --np {} -- …", counts.join(","));
            (command, "little time is lost: shows how far the program scales")
        }
        Step::Region(name) => (
            format!("gammachi report {run} --region {}", shell_word(&printable(&name))),
            "looks at one region",
        ),
    };
    (command, purpose.to_owned())
}

fn record(options: &[&str]) -> String {
    let options: String = options.iter().map(|option| format!("{option} ")).collect();
    format!("gammachi run {options}-- …")
}

/// The command that recorded the run, as far as it is known, with another option.
fn recorded_again(diagnosis: &Diagnosis, option: &str) -> String {
    let words = diagnosis.of.run.description.iter().flat_map(|description| &description.argv);
    let words: Vec<String> = words.map(|word| shell_word(word)).collect();
    let command = if words.is_empty() { "…".to_owned() } else { words.join(" ") };
    format!("gammachi run {option} -- {command}")
}

fn words(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::LastActions => "shows what every rank did last",
        Purpose::SingleCalls => {
            "without --profile-only, records single calls, which show who waits for whom"
        }
        Purpose::Partners => "shows who waits for whom",
        Purpose::Surroundings => "shows this part within the whole run",
        Purpose::FewerRanks => "with no more ranks than cores, so that times are reliable",
        Purpose::FewerRanksAlone => {
            "with no more ranks than cores, and nothing else on these, so that times are reliable"
        }
        Purpose::FreeCores => "with a free core for every thread, so that times are reliable",
        Purpose::Transfer => "shows what depends on latency and what on bandwidth",
        Purpose::Savings => "predicts what changes would save",
        Purpose::WhenLost => "shows when the time was lost",
    }
}
