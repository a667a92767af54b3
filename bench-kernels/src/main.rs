//! MPI programs that exercise and calibrate a machine, one subcommand each.
//!
//! They are ordinary MPI programs and know nothing about the recorder: tools that measure them are
//! applied from outside (`experiments/overhead/measure-overhead`). Rank 0 prints one JSON
//! document to standard output, which the command's `calibrate` and `roofline` show as tables.
//!
//! Exit codes: 0 success, 1 wrong result or unsuitable machine, 2 wrong usage.

mod blas;
mod blocking;
mod blocks;
mod buffer;
mod cannon;
mod ceilings;
mod clock;
mod collectives;
mod conditions;
mod counter;
mod failure;
mod floor;
mod lattice;
mod network;
mod output;
mod overhead;
mod pieces;
mod progress;
mod roofline;
mod sample;
mod world;

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand};

use crate::failure::Failure;

#[derive(Parser)]
#[command(
    name = "kernels",
    version,
    about = "MPI kernels that exercise and calibrate a machine",
    after_help = "Examples:\n  mpirun -n 2 kernels network\n  mpirun -n 2 kernels overhead --json"
)]
struct Cli {
    #[command(subcommand)]
    kernel: Kernel,
}

#[derive(Subcommand)]
enum Kernel {
    Overhead(overhead::Arguments),
    Network(network::Arguments),
    Ceilings(ceilings::Arguments),
    Roofline(roofline::Arguments),
    Blocking(blocking::Arguments),
    Collectives(collectives::Arguments),
    Lattice(lattice::Arguments),
    Cannon(cannon::Arguments),
    Clock(clock::Arguments),
}

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            if world::prints_for_all() {
                let _ = error.print();
            }
            return ExitCode::from(error.exit_code() as u8);
        }
    };
    match run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if world::prints_for_all() {
                if !failure.is_broken_pipe() {
                    // Written at once, because the launcher may end the job at any moment.
                    let line = format!("kernels: {failure}\n");
                    let _ = std::io::stderr().write_all(line.as_bytes());
                }
            } else {
                // A launcher ends the job when a rank leaves with an error, so give the rank that
                // prints the reason time to do so.
                std::thread::sleep(Duration::from_millis(300));
            }
            failure.exit_code()
        }
    }
}

fn run(cli: Cli) -> Result<(), Failure> {
    match cli.kernel {
        Kernel::Overhead(arguments) => overhead::run(&arguments),
        Kernel::Network(arguments) => network::run(&arguments),
        Kernel::Ceilings(arguments) => ceilings::run(&arguments),
        Kernel::Roofline(arguments) => roofline::run(&arguments),
        Kernel::Blocking(arguments) => blocking::run(&arguments),
        Kernel::Collectives(arguments) => collectives::run(&arguments),
        Kernel::Lattice(arguments) => lattice::run(&arguments),
        Kernel::Cannon(arguments) => cannon::run(&arguments),
        Kernel::Clock(arguments) => clock::run(&arguments),
    }
}
