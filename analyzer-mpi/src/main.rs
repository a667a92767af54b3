//! `gammachi-mpi`: analyses one run with many MPI processes.
//!
//! ```text
//! mpirun -n 64 gammachi-mpi report app-20260131-120000.gammachi
//! ```
//!
//! The analysis itself is in the library, which knows no MPI: this program carries its bytes between
//! processes ([`transport`]). Process 0 prints, and its exit code is that of the command.

mod transport;

use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand};
use gammachi_analyzer::cli::CommandError;
use gammachi_analyzer::cli::error::{EXIT_FAILED, eprint_message, print, report_error};
use gammachi_analyzer::cli::export::{self, ExportArguments};
use gammachi_analyzer::cli::report::{self, ReportArguments};
use gammachi_analyzer::cli::view::{self, IndexArguments};
use gammachi_analyzer::cli::why::{self, WhyArguments};
use gammachi_analyzer::processes::Processes;
use mpi::Threading;

use transport::Mpi;

/// Analyses one run with many MPI processes, each of which reads a part of the rank files.
#[derive(Debug, Parser)]
#[command(
    name = "gammachi-mpi",
    version,
    max_term_width = 100,
    after_help = "Examples:\n  mpirun -n 64 gammachi-mpi report app-20260131-120000.gammachi\n  mpirun -n 64 \
                  gammachi-mpi why app-20260131-120000.gammachi --json\n  \
                  mpirun -n 64 gammachi-mpi export app-20260131-120000.gammachi --to parquet --out T\n  \
                  mpirun -n 64 gammachi-mpi index app-20260131-120000.gammachi\n\n\
                  Output and exit code are those of gammachi. docs/scale.md says what is divided \
                  among the\nprocesses; what is not is refused."
)]
struct CommandLine {
    /// How long a process waits for the others before it ends them all
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    deadline: u32,

    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Report(Box<ReportArguments>),
    Why(WhyArguments),
    Export(ExportArguments),
    Index(IndexArguments),
}

fn main() -> ExitCode {
    // Open MPI gives process 0 a terminal of its own, which is not the user's.
    // SAFETY: guaranteed here: no other thread exists yet.
    unsafe { std::env::set_var("NO_COLOR", "1") };
    keep_freed_memory();
    let Some((universe, _)) = mpi::initialize_with_threading(Threading::Funneled) else {
        eprint_message("MPI is initialised already");
        return ExitCode::from(EXIT_FAILED);
    };
    let world = Mpi::new(&universe);
    world.abort_on_panic();
    let result = run(&world);
    // While the first finishes, the others wait asleep.
    world.rest();
    match result {
        Err(error) if world.is_first() => report_error(&error),
        Err(error) => ExitCode::from(error.exit_code()),
        Ok(()) => ExitCode::SUCCESS,
    }
}

/// Each exchange has buffers of megabytes. Given back to the system and fetched again, page by page,
/// they took a tenth of the time.
fn keep_freed_memory() {
    const KEPT_BYTES: libc::c_int = 1 << 30;
    for parameter in [libc::M_MMAP_THRESHOLD, libc::M_TRIM_THRESHOLD] {
        // SAFETY: guaranteed here: no other thread exists yet.
        unsafe { libc::mallopt(parameter, KEPT_BYTES) };
    }
}

fn run(world: &Mpi) -> Result<(), CommandError> {
    let line = match CommandLine::try_parse() {
        Ok(line) => line,
        Err(error) if error.use_stderr() => {
            let text = error.render().to_string();
            let text = text.strip_prefix("error: ").unwrap_or(&text);
            return Err(CommandError::usage(text.trim_end()));
        }
        Err(_) if !world.is_first() => return Ok(()),
        Err(help) => return print(&help.render().to_string()),
    };
    let deadline = Duration::from_secs(line.deadline.into());
    let processes = Processes::new(world.transport(deadline));
    match &line.command {
        Command::Report(arguments) => report::report_in(arguments, &processes),
        Command::Why(arguments) => why::why_in(arguments, &processes),
        Command::Export(arguments) => export::export_in(arguments, &processes),
        Command::Index(arguments) => view::index_in(arguments, &processes),
    }
}
