//! `gammachi export`: writes a run in another format.

use std::fs;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use clap::{Args, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};

use super::error::{CommandError, notify};
use super::output_rights::OutputRights;
use super::selection_arguments;
use super::unfinished_output::{UnfinishedOutput, directory_of};
use crate::export::content::{Choice, Content};
use crate::export::{Progress, check_plausible, remarks, tables};
use crate::formats::paraver::names as paraver;
use crate::formats::{self, Format};
use crate::timeline::GlobalTimeline;
use crate::timeline::communicators::CommunicatorTable;
use crate::trace::Run;

/// Writes a run for other tools: tables, traces and timelines.
///
/// If it cannot be completed, nothing is left under the name PATH.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  gammachi export hpl-20260131-120000.gammachi --to parquet --out hpl\n  \
                  gammachi export hpl-20260131-120000.gammachi --to csv --out hpl-4 --ranks 0-3 \
                  --window 1.5,2\n\nWhat each format contains: docs/reference/export.md."
)]
pub struct ExportArguments {
    /// Run directory printed by `gammachi run`
    #[arg(value_name = "RUN")]
    pub run: PathBuf,

    /// Format
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub to: To,

    /// Where to write: a file, or for csv, parquet and otf2 a directory; must not exist yet
    #[arg(long, value_name = "PATH")]
    pub out: PathBuf,

    /// Only these ranks (`0-3,8`); messages between them
    #[arg(long, value_name = "LIST")]
    pub ranks: Option<String>,

    /// Only what begins in this stretch, in seconds since the first rank left MPI_Init (`1.5,1.6`)
    #[arg(long, value_name = "FROM,TO", allow_hyphen_values = true)]
    pub window: Option<String>,

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
    /// Parquet tables, one file each: DuckDB, pandas, Polars, Spark
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
}

impl To {
    fn format(self) -> Format {
        match self {
            Self::Csv => Format::Csv,
            Self::Parquet => Format::Parquet,
            Self::Otf2 => Format::Otf2,
            Self::Perfetto => Format::Perfetto,
            Self::Paje => Format::Paje,
            Self::Paraver => Format::Paraver,
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
    arguments.rights.apply();
    if arguments.to == To::Paraver {
        for ending in paraver::ENDINGS {
            let file = paraver_file(&arguments.out, ending);
            if fs::symlink_metadata(&file).is_ok() {
                let shown = file.display();
                return Err(CommandError::usage(format!(
                    "--out {shown}: exists already; name another place, or remove it first"
                )));
            }
        }
    }
    // Before threads are started, which must not receive the signals.
    let output = UnfinishedOutput::beside("--out", &arguments.out)?;
    let mut run =
        Run::open(&arguments.run).map_err(|error| CommandError::failed(error.to_string()))?;
    if arguments.anonymise {
        run.anonymise();
    }
    let ranks = arguments.ranks.as_deref();
    let ranks = ranks.map(|text| selection_arguments::ranks("--ranks", text, run.world_size));
    let window = arguments.window.as_deref();
    let window = window.map(|text| selection_arguments::seconds("--window", text));
    let choice = Choice { ranks: ranks.transpose()?, window_s: window.transpose()? };
    let communicators = CommunicatorTable::new(&run);
    check_plausible(&run, &communicators).map_err(CommandError::failed)?;
    let timeline = GlobalTimeline::new(&run);
    let content = Content::new(&run, &timeline, &communicators, &choice);
    if content.head.ranks.is_empty() {
        return Err(CommandError::failed(format!(
            "{}: none of these ranks left a readable file",
            run.directory.display()
        )));
    }
    remarks(&content).iter().for_each(|remark| notify(remark));
    if let (To::Csv | To::Parquet, Some(why)) = (arguments.to, tables::causes::left_out(&content)) {
        notify(&format!("waits, causes, iterations and the critical path are left out: {why}"));
    }
    let bar = Bar::new();
    let scratch = directory_of(&arguments.out);
    let written = formats::write(&content, arguments.to.format(), output.path(), scratch, &bar);
    bar.finish();
    let written = written.map_err(|error| {
        // The temporary path no longer exists when the message is read.
        let part = output.path().display().to_string();
        let shown = arguments.out.display().to_string();
        CommandError::failed(error.to_string().replace(&part, &shown))
    })?;
    run.check_readable().map_err(CommandError::unreadable_run)?;
    let moves = match arguments.to {
        To::Paraver => {
            let of = |ending: &&str| {
                let from = output.path().join(format!("{}.{ending}", paraver::STEM));
                (from, paraver_file(&arguments.out, ending))
            };
            paraver::ENDINGS.iter().map(of).collect()
        }
        _ => vec![(output.path().to_owned(), arguments.out.clone())],
    };
    output.finish(&moves)?;
    notify(&format!(
        "{}: {} calls, {} messages, {} collective operations",
        arguments.out.display(),
        written.calls,
        written.messages,
        written.collectives
    ));
    Ok(())
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
            RunDirectory::of(&[SyntheticRank::complete(0, u32::MAX, 1_000_000, 2_000_000)]);
        let arguments = ExportArguments {
            run: directory.path().to_owned(),
            to: To::Csv,
            out: directory.path().join("out"),
            ranks: None,
            window: None,
            anonymise: false,
            // The umask belongs to the whole process, in which other tests run.
            rights: OutputRights { share: true },
        };
        let error = export(&arguments).unwrap_err().to_string();
        assert!(error.contains("4294967295 ranks, and 1 left one"), "{error}");
        assert!(!directory.path().join("out").exists());
    }
}
