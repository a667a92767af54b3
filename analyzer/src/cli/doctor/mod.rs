//! `gammachi doctor`: examines the machine and reports what it can and cannot measure, and what
//! each finding means for a measurement.
//!
//! Each file of this folder examines one aspect and returns `Finding`s;
//! `docs/reference/doctor-json.md` explains every one.

use clap::Args;
use serde::Serialize;

use crate::trace::host_name;

use super::error::{CommandError, print};
use super::terminal::has_colours;

use finding::{Finding, Mark};

mod clocks;
mod finding;
mod host;
mod mpi;
mod recorder;
mod storage;
mod variables;

/// Reports what this machine can and cannot measure.
///
/// Takes about a second. Writes two temporary files of 4 MiB, in the current directory and in
/// /dev/shm, and removes them.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  gammachi doctor\n  gammachi doctor --variables\n  srun -N 16 --ntasks-per-node=1 gammachi \
    doctor --json > nodes.json"
)]
pub struct DoctorArguments {
    /// Print a JSON document on one line; docs/reference/doctor-json.md explains its keys
    #[arg(long)]
    json: bool,

    /// Examine nothing: print the table of environment variables that recorder and command read
    #[arg(long, conflicts_with = "json")]
    variables: bool,
}

/// Examines the machine and prints the findings. A limit is not a failure: it is what the user asked
/// for.
pub fn doctor(arguments: &DoctorArguments) -> Result<(), CommandError> {
    if arguments.variables {
        return print(&variables::table());
    }
    let groups = [
        ("recorder", recorder::findings()),
        ("mpi", mpi::findings()),
        ("counter", clocks::findings()),
        ("storage", storage::findings()),
        ("host", host::findings()),
    ];
    let of_group = |(group, findings): (_, Vec<Finding>)| {
        findings.into_iter().map(move |finding| finding.of_group(group))
    };
    let findings: Vec<Finding> = groups.into_iter().flat_map(of_group).collect();
    let text = if arguments.json {
        // These types always serialise.
        serde_json::to_string(&document(&findings)).unwrap_or_default() + "\n"
    } else {
        let title = format!("gammachi {} on {}", env!("CARGO_PKG_VERSION"), host_name());
        screen(&title, &findings, has_colours())
    };
    print(&text)
}

/// What was found out, in a document.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Document<'a> {
    /// `gammachi-doctor`.
    format: &'static str,
    /// 1.
    format_version: u32,
    /// Version of the command.
    gammachi_version: &'static str,
    /// Name of the host.
    host: String,
    /// Number of findings with the mark `limit`.
    limits: usize,
    /// Number of findings with the mark `note`.
    notes: usize,
    /// What was found.
    findings: &'a [Finding],
}

fn document(findings: &[Finding]) -> Document<'_> {
    Document {
        format: "gammachi-doctor",
        format_version: 1,
        gammachi_version: env!("CARGO_PKG_VERSION"),
        host: host_name(),
        limits: count(findings, Mark::Limit),
        notes: count(findings, Mark::Note),
        findings,
    }
}

fn count(findings: &[Finding], mark: Mark) -> usize {
    findings.iter().filter(|finding| finding.mark == mark).count()
}

const WIDTH: usize = 98;

fn screen(title: &str, findings: &[Finding], colour: bool) -> String {
    let name_width = findings.iter().map(|finding| finding.name.len()).max().unwrap_or(0);
    let indent = 2 + "limit".len() + 2 + name_width + 2;
    let mut text = format!("{title}: what this machine can and cannot measure\n");
    let mut group = "";
    for finding in findings {
        if finding.group != group {
            group = finding.group;
            text += &format!("\n{}\n", group.to_uppercase());
        }
        let mark = painted(finding.mark, colour);
        let mut lines = wrapped(&finding.value, WIDTH - indent);
        lines.extend(wrapped(&finding.meaning, WIDTH - indent));
        let first = lines.remove(0);
        text += &format!("  {mark}  {:name_width$}  {first}\n", finding.name);
        for line in lines {
            text += &format!("{:indent$}{line}\n", "");
        }
    }
    let (limits, notes) = (count(findings, Mark::Limit), count(findings, Mark::Note));
    text += &format!(
        "\n{limits} limit{} (something cannot be measured, or not well), {notes} note{} (worth \
         knowing)\n",
        plural(limits),
        plural(notes)
    );
    text
}

fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}

fn painted(mark: Mark, colour: bool) -> String {
    let (word, paint) = match mark {
        Mark::Ok => ("ok   ", "32"),
        Mark::Note => ("note ", "33"),
        Mark::Limit => ("limit", "31"),
    };
    if colour { format!("\x1b[{paint}m{word}\x1b[0m") } else { word.to_owned() }
}

/// Breaks a text at blanks into lines of at most `width` characters; a longer word gets its own
/// line.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("starts with one line");
        if line.is_empty() {
            line.push_str(word);
        } else if line.chars().count() + 1 + word.chars().count() <= width {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn screen_is_aligned() {
        let findings = [
            Finding::new("library", Mark::Ok, "/lib/x.so", "It loads.").of_group("recorder"),
            Finding::new("tsc", Mark::Limit, "not invariant", "Times may jump. ".repeat(8))
                .of_group("counter"),
        ];
        assert_eq!(
            screen("gammachi 1 on n1", &findings, false),
            "\
gammachi 1 on n1: what this machine can and cannot measure

RECORDER
  ok     library  /lib/x.so
                  It loads.

COUNTER
  limit  tsc      not invariant
                  Times may jump. Times may jump. Times may jump. Times may jump. Times may jump.
                  Times may jump. Times may jump. Times may jump.

1 limit (something cannot be measured, or not well), 0 notes (worth knowing)
"
        );
    }
}
