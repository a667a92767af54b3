//! MPI programs that exercise and calibrate a machine, one subcommand each.
//!
//! They are ordinary MPI programs and know nothing of the recorder: whatever measures them is
//! put around them from outside (`scripts/measure-overhead`). What comes in is a command line,
//! what goes out is a table, or JSON with `--json`, on the standard output of rank 0.
//!
//! Exit codes: 0 success, 1 a wrong result or a machine that refuses, 2 wrong usage.

mod blocks;
mod counter;
mod failure;
mod floor;
mod overhead;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::failure::Failure;

#[derive(Parser)]
#[command(
    name = "kernels",
    version,
    about = "MPI kernels that exercise and calibrate a machine",
    after_help = "Example:\n  mpirun -n 2 kernels overhead --json"
)]
struct Cli {
    #[command(subcommand)]
    kernel: Kernel,
}

#[derive(Subcommand)]
enum Kernel {
    Overhead(overhead::Arguments),
}

fn main() -> ExitCode {
    match run(Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if !failure.is_broken_pipe() {
                eprintln!("kernels: {failure}");
            }
            failure.exit_code()
        }
    }
}

fn run(cli: Cli) -> Result<(), Failure> {
    match cli.kernel {
        Kernel::Overhead(arguments) => overhead::run(&arguments),
    }
}
