//! `gammachi exec`: sets the recorder's environment and replaces this process by the program.

use std::env;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;

use clap::Args;
use trace_format::settings::OUT;

use super::error::CommandError;
use super::flight;
use super::library_path::preloaded;
use super::program_search::cannot_start;
use super::recorder_environment::{LD_PRELOAD, preload};
use super::recording_options::{Recording, RecordingArguments};

/// Loads the recorder and becomes the program, for batch scripts.
///
/// For batch scripts, for launchers that clear the environment, and for hosts that `gammachi run`
/// does not reach. Options that are not given keep the values set by `gammachi run` or the
/// environment. If --out is set nowhere, the recorder writes ./NAME-DATE.gammachi. There is no
/// run.json, because only `gammachi run` sees a run begin and end.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    mpirun -n 4 gammachi exec -- ./app input.dat\n  \
    srun gammachi exec --out $SCRATCH/app-$SLURM_JOB_ID.gammachi -- ./app input.dat")]
pub struct ExecArguments {
    #[command(flatten)]
    options: RecordingArguments,

    /// Program and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM ARGS")]
    command: Vec<OsString>,
}

pub fn exec(arguments: &ExecArguments) -> Result<(), CommandError> {
    let words = &arguments.command;
    let Recording { given, watched_for, options } = arguments.options.decide()?;
    let preload = preload(&preloaded(options.io)?, env::var_os(LD_PRELOAD).as_deref())?;
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).envs(given).env(LD_PRELOAD, preload);
    let mut directory = env::var_os(OUT.name);
    if let Some(out) = &arguments.options.out {
        let path = std::path::absolute(out)
            .map_err(|error| CommandError::usage(format!("--out {}: {error}", out.display())))?;
        command.env(OUT.name, &path);
        directory = Some(path.into_os_string());
    }
    if let Some(triggers) = watched_for {
        flight::start_detached(directory, &triggers, arguments.options.metrics.as_ref());
    }
    let error = command.exec();
    Err(cannot_start(&words[0], &error))
}
