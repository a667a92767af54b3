//! `gammachi export`: writes a run in another format.

use std::ffi::OsString;
use std::fs;
use std::io::IsTerminal;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use clap::{Args, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};

use super::error::{CommandError, Context, eprint_message, print};
use super::observed::{Observed, observe};
use super::output_rights::OutputRights;
use super::selection_arguments;
use super::several_processes::agreed;
use super::unfinished_output::UnfinishedOutput;
use crate::export::content::{Choice, Content, Export};
use crate::export::parts::PART_CALLS;
use crate::export::{Progress, Written, check_plausible, remarks, tables};
use crate::formats::paraver::names as paraver;
use crate::formats::{self, Format};
use crate::processes::Processes;
use crate::timeline::GlobalTimeline;
use crate::timeline::communicators::CommunicatorTable;
use crate::trace::Run;
use crate::whole_file::directory_of;

/// Writes runs for other tools: tables, traces and timelines.
///
/// On failure, PATH is not created.
///
/// `--to table` prints, or writes, one CSV table of several runs or a study: a row per run with p,
/// tau_s (elapsed time), sum_gamma_s (computing time, summed over the ranks), chi_s (lost time, mean
/// over the ranks) with the minimum and maximum over the ranks, flops if BLAS calls were counted, one
/// column for each --param, rep (repetition) and run. Runs that failed or did not finish are left out
/// and named on standard error.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  gammachi export hpl-20260131-120000.gammachi --to parquet --out hpl\n  \
                  gammachi export hpl-20260131-120000.gammachi --to csv --out hpl-4 --ranks 0-3 \
                  --window 1.5,2\n  gammachi export STUDY --to table > study.csv\n  \
                  gammachi export p1.gammachi p2.gammachi --to table --region solve\n\nWhat each format contains: docs/reference/export.md."
)]
pub struct ExportArguments {
    /// Run directory printed by `gammachi run`; with --to table also several, or a study
    #[arg(value_name = "RUN|STUDY", required = true)]
    pub runs: Vec<PathBuf>,

    /// Format
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub to: To,

    /// Where to write: a file, or for csv, parquet and otf2 a directory; must not exist yet. Only
    /// --to table is printed without it
    #[arg(long, value_name = "PATH")]
    pub out: Option<PathBuf>,

    /// Only these ranks (`0-3,8`); messages between them
    #[arg(long, value_name = "LIST")]
    pub ranks: Option<String>,

    /// Only what begins in this window, in seconds since the first rank left MPI_Init (`1.5,1.6`)
    #[arg(long, value_name = "FROM,TO", allow_hyphen_values = true)]
    pub window: Option<String>,

    /// With table: restrict every figure to a region that the program marked with gammachi.h
    #[arg(long, value_name = "NAME")]
    pub region: Option<String>,

    /// With parquet: approximate number of calls in each part of a larger run [default: 4194304];
    /// a rank is never divided
    #[arg(long, value_name = "CALLS", value_parser = clap::value_parser!(u64).range(1..))]
    pub part_calls: Option<u64>,

    /// Leave out what identifies the run: names of programs, hosts, regions, communicators and
    /// files, arguments, parameters, the date
    #[arg(long)]
    pub anonymise: bool,

    /// Who may read what is written
    #[command(flatten)]
    pub rights: OutputRights,
}

/// A format to write, as the command line names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum To {
    /// Comma-separated tables, one file each
    Csv,
    /// Parquet tables, one file each, or one directory where a large one is in parts: DuckDB, pandas,
    /// Polars, Spark
    Parquet,
    /// An archive that follows the conventions of Score-P, for Vampir, Scalasca, TAU (needs the
    /// OTF2 library)
    Otf2,
    /// One file for <https://ui.perfetto.dev>, with an arrow per message
    Perfetto,
    /// One text file for ViTE and pajeng
    Paje,
    /// PATH.prv, PATH.pcf and PATH.row for Paraver
    Paraver,
    /// One text file with the stacks of sampled code, for flame graphs (flamegraph.pl, inferno,
    /// speedscope)
    Folded,
    /// One JSON file with these stacks on the timeline, for <https://www.speedscope.app>
    Speedscope,
    /// One JSON file with these stacks on the timeline, for <https://profiler.firefox.com>
    Firefox,
    /// One CSV table with a row per run, for scaling, model and spreadsheets
    Table,
}

/// A run to write, and where.
struct Job<'a> {
    run: &'a Path,
    out: &'a Path,
    format: Format,
}

impl ExportArguments {
    /// The run to write; `None` for a table of several.
    ///
    /// # Errors
    /// Wrong usage: no place to write to, several runs, or an option of other formats.
    fn job(&self) -> Result<Option<Job<'_>>, CommandError> {
        let format = match self.to {
            To::Table => return self.check_table().map(|()| None),
            To::Csv => Format::Csv,
            To::Parquet => Format::Parquet { part_calls: self.part_calls.unwrap_or(PART_CALLS) },
            To::Otf2 => Format::Otf2,
            To::Perfetto => Format::Perfetto,
            To::Paje => Format::Paje,
            To::Paraver => Format::Paraver,
            To::Folded => Format::Folded,
            To::Speedscope => Format::Speedscope,
            To::Firefox => Format::Firefox,
        };
        if self.part_calls.is_some() && self.to != To::Parquet {
            return Err(CommandError::usage(
                "--part-calls is for --to parquet: other formats have no parts",
            ));
        }
        if self.region.is_some() {
            return Err(CommandError::usage("--region is for --to table; --window selects time"));
        }
        match (&self.runs[..], &self.out) {
            ([run], Some(out)) => Ok(Some(Job { run, out, format })),
            (_, None) => Err(CommandError::usage(
                "--out PATH is missing: only --to table is printed without it",
            )),
            _ => Err(CommandError::usage("name one run: only --to table takes several")),
        }
    }

    /// Refuses options that make no sense for a table of runs.
    fn check_table(&self) -> Result<(), CommandError> {
        let for_events = [
            ("--ranks", self.ranks.is_some()),
            ("--window", self.window.is_some()),
            ("--part-calls", self.part_calls.is_some()),
            ("--anonymise", self.anonymise),
        ];
        match for_events.iter().find(|(_, given)| *given) {
            Some((option, _)) => Err(CommandError::usage(format!(
                "{option} is for the events of one run, not for --to table"
            ))),
            None => Ok(()),
        }
    }

    /// Refuses what is not divided among processes.
    fn check_divisible(&self) -> Result<(), CommandError> {
        match self.to {
            To::Parquet => Ok(()),
            to => Err(CommandError::usage(format!(
                "--to {} is not divided among processes: use gammachi export, or one process",
                to.to_possible_value()
                    .map_or_else(String::new, |value| value.get_name().to_owned())
            ))),
        }
    }

    /// The selected part of a run.
    fn choice(&self, run: &Run) -> Result<Choice, CommandError> {
        let ranks = self.ranks.as_deref();
        let ranks = ranks.map(|text| selection_arguments::ranks("--ranks", text, run.world_size));
        let window = self.window.as_deref();
        let window = window.map(|text| selection_arguments::seconds("--window", text));
        Ok(Choice { ranks: ranks.transpose()?, window_s: window.transpose()? })
    }
}

impl Job<'_> {
    /// Refuses files of Paraver's that exist already.
    fn check_paraver_files(&self) -> Result<(), CommandError> {
        let files = paraver::ENDINGS.iter().map(|ending| paraver_file(self.out, ending));
        match files.into_iter().find(|file| fs::symlink_metadata(file).is_ok()) {
            Some(file) => Err(CommandError::usage(format!(
                "--out {}: exists already; name another place, or remove it first",
                file.display()
            ))),
            None => Ok(()),
        }
    }

    /// What is moved where in the end.
    fn moves(&self, part: &Path) -> Vec<(PathBuf, PathBuf)> {
        let of = |ending: &&str| {
            let from = part.join(format!("{}.{ending}", paraver::STEM));
            (from, paraver_file(self.out, ending))
        };
        match self.format {
            Format::Paraver => paraver::ENDINGS.iter().map(of).collect(),
            _ => vec![(part.to_owned(), self.out.to_owned())],
        }
    }
}

/// A progress bar on a terminal, nothing elsewhere.
pub(super) struct Bar(Option<Mutex<ProgressBar>>);

impl Bar {
    pub(super) fn new() -> Self {
        Self(std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new_spinner();
            bar.enable_steady_tick(Duration::from_millis(200));
            Mutex::new(bar)
        }))
    }

    pub(super) fn finish(&self) {
        if let Some(Ok(bar)) = self.0.as_ref().map(Mutex::lock) {
            bar.finish_and_clear();
        }
    }
}

impl Progress for Bar {
    fn stage(&self, what: &str, steps: Option<u64>) {
        let Some(Ok(bar)) = self.0.as_ref().map(Mutex::lock) else { return };
        let template = match steps {
            Some(_) => "{bar:30} {percent:>3} %  {elapsed}  {msg}",
            None => "{spinner} {human_pos} {elapsed}  {msg}",
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.reset();
        match steps {
            Some(steps) => bar.set_length(steps),
            None => bar.unset_length(),
        }
        bar.set_message(what.to_owned());
    }

    fn advance(&self, steps: u64) {
        if let Some(Ok(bar)) = self.0.as_ref().map(Mutex::lock) {
            bar.inc(steps);
        }
    }
}

/// Writes a run in another format.
///
/// # Errors
/// Wrong usage for invalid ranks, an invalid window or path; failure if nothing can be read, or the
/// output does not fit on the disk.
pub fn export(arguments: &ExportArguments) -> Result<(), CommandError> {
    export_in(arguments, &Processes::alone())
}

/// Like [`export`], in several processes that all call this: each writes its own parts of the
/// tables, and the first what is not divided.
///
/// # Errors
/// As [`export`], on all processes; wrong usage also for formats that only one process can write.
pub fn export_in(arguments: &ExportArguments, processes: &Processes) -> Result<(), CommandError> {
    arguments.rights.apply();
    if !processes.is_alone() {
        arguments.check_divisible()?;
    }
    let Some(job) = arguments.job()? else { return write_table(arguments) };
    if job.format == Format::Paraver {
        job.check_paraver_files()?;
    }
    // Before threads are started, which must not receive the signals.
    let (output, part) = unfinished_output(job.out, processes)?;
    let mut run = Run::open_in(job.run, processes)?;
    if arguments.anonymise {
        run.anonymise();
    }
    let choice = arguments.choice(&run)?;
    let communicators = CommunicatorTable::new(&run);
    check_plausible(&run, &communicators).map_err(CommandError::Input)?;
    let timeline = GlobalTimeline::new(&run);
    let content = Content::new(&run, &timeline, &communicators, &choice);
    if content.head.ranks.is_empty() {
        return Err(CommandError::Input(format!(
            "{}: none of these ranks left a readable file",
            run.directory.display()
        )));
    }
    if processes.is_first() {
        remark(&content, arguments.to);
    }
    let bar = if processes.is_first() { Bar::new() } else { Bar(None) };
    let export = Export { content: &content, scratch: directory_of(job.out), progress: &bar };
    let written = formats::write(export, job.format, &part);
    bar.finish();
    let written = written.map_err(|error| {
        // The temporary path no longer exists when the message is read.
        let part = part.display().to_string();
        let shown = job.out.display().to_string();
        CommandError::Output(error.to_string().replace(&part, &shown))
    })?;
    run.check_readable_in_all()?;
    // Only the first process has it.
    let Some(output) = output else { return Ok(()) };
    output.finish(&job.moves(&part))?;
    let Written { calls, messages, collectives } = written;
    let counts = match job.format {
        Format::Folded | Format::Speedscope | Format::Firefox => {
            "stacks of sampled code".to_owned()
        }
        _ => format!("{calls} calls, {messages} messages, {collectives} collective operations"),
    };
    eprint_message(&format!("{}: {counts}", job.out.display()));
    Ok(())
}

/// Prints or writes the table of runs that models read.
fn write_table(arguments: &ExportArguments) -> Result<(), CommandError> {
    let out = arguments.out.as_deref();
    let output = out.map(|out| UnfinishedOutput::beside("--out", out)).transpose()?;
    let Observed { table, notes, .. } = observe(&arguments.runs, arguments.region.as_deref())?;
    notes.iter().for_each(|note| eprint_message(note));
    let mut text = Vec::new();
    table.write_csv(&mut text).map_err(|error| CommandError::Output(error.to_string()))?;
    let (Some(out), Some(output)) = (out, output) else {
        return print(&String::from_utf8_lossy(&text));
    };
    let part = output.path().to_owned();
    fs::write(&part, text).context(
        CommandError::Output,
        format_args!("--out {}: cannot be written", out.display()),
    )?;
    output.finish(&[(part, out.to_owned())])
}

/// The output, in the first process alone, and the temporary path, in all.
fn unfinished_output(
    out: &Path,
    processes: &Processes,
) -> Result<(Option<UnfinishedOutput>, PathBuf), CommandError> {
    let output = match processes.is_first() {
        true => UnfinishedOutput::beside("--out", out).map(Some),
        false => Ok(None),
    };
    let output = agreed(processes, output)?;
    let part = output.as_ref().map(|output| output.path().as_os_str().as_bytes().to_vec());
    let part = processes.share(part).swap_remove(0).unwrap_or_default();
    Ok((output, PathBuf::from(OsString::from_vec(part))))
}

/// Prints what a reader of the data should know.
fn remark(content: &Content, to: To) {
    remarks(content).iter().for_each(|remark| eprint_message(remark));
    if let (To::Csv | To::Parquet, Some(why)) = (to, tables::causes::left_out(content)) {
        eprint_message(&format!(
            "waits, causes, iterations, critical path and the report's tables are left out: {why}"
        ));
    }
}

/// `out.prv` beside `out.pcf` and `out.row`, whether `out` or `out.prv` was named.
fn paraver_file(out: &Path, ending: &str) -> PathBuf {
    let stem = match out.extension().is_some_and(|given| given == "prv") {
        true => out.with_extension(""),
        false => out.to_owned(),
    };
    let mut name = stem.into_os_string();
    name.push(format!(".{ending}"));
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic_trace::{RunDirectory, SyntheticRank};

    #[test]
    fn refuses_implausible_number_of_ranks() {
        let directory =
            RunDirectory::with_ranks(&[SyntheticRank::complete(0, u32::MAX, 1_000_000, 2_000_000)]);
        let arguments = ExportArguments {
            runs: vec![directory.path().to_owned()],
            to: To::Csv,
            out: Some(directory.path().join("out")),
            region: None,
            ranks: None,
            window: None,
            part_calls: None,
            anonymise: false,
            // The umask belongs to the whole process, in which other tests run.
            rights: OutputRights { share: true },
        };
        let error = export(&arguments).unwrap_err().to_string();
        assert!(error.contains("4294967295 ranks, and 1 left one"), "{error}");
        assert!(!directory.path().join("out").exists());
    }
}
