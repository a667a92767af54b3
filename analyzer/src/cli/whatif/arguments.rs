//! The arguments of gammachi whatif.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::amount::{Amount, bandwidth, factor, time};
use super::ledger::LedgerOptions;

/// How threads work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Threads {
    /// All threads of a parallel region work equally long.
    Balanced,
}

/// Predicts how long a run would take if something were different.
///
/// --remember, also that of `gammachi scaling` and `gammachi model`, records predictions in the
/// folder that contains the run, the study or the table. --ledger compares them with later runs:
/// later runs and studies in that folder answer predictions of scaling and model if program,
/// parameters and rank count match. Use --answer to name the run that tests a prediction of whatif.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gammachi whatif hpl-20260131-120000.gammachi\n  \
                  gammachi whatif hpl-20260131-120000.gammachi --rank 3 --speed 1.2\n  \
                  gammachi whatif hpl-20260131-120000.gammachi --latency 20us --bandwidth x0.5\n  \
                  gammachi whatif hpl-20260131-120000.gammachi --rank 3 --speed 1.2 --remember\n  \
                  gammachi whatif --ledger\n  \
                  gammachi whatif --answer 3fa2c1 hpl-faster.gammachi\n\nWithout \
                  options the standard questions are answered. How a replay works, and how far to trust it: \
                  docs/guide/predict.md, docs/measurements/accuracy.md.")]
pub struct WhatIfArguments {
    /// Run directory printed by `gammachi run` (default: the newest one here)
    #[arg(value_name = "RUN|FOLDER")]
    pub run: Option<PathBuf>,

    /// Latency of a message: a time (20us), or a factor (x2)
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(super) latency: Option<Amount>,

    /// Bandwidth of a message: bytes per second (1G), or a factor (x0.5)
    #[arg(long, value_name = "BYTES", value_parser = bandwidth)]
    pub(super) bandwidth: Option<Amount>,

    /// CPU time of a send or receive: a time (500ns), or a factor (x2) that also scales copies
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(super) overhead: Option<Amount>,

    /// Largest message that is sent without waiting for its receiver: bytes (64K)
    #[arg(long, value_name = "BYTES", value_parser = trace_format::settings::values::bytes)]
    pub(super) eager: Option<u64>,

    /// Network of a machine measured by `gammachi calibrate`
    #[arg(long, value_name = "machine.json")]
    pub(super) machine: Option<PathBuf>,

    /// Rank placement to assume: block or cyclic over --hosts, or a file with one host name per
    /// rank
    #[arg(long, value_name = "block|cyclic|FILE")]
    pub(super) map: Option<String>,

    /// Number of hosts for --map block and --map cyclic
    #[arg(long, value_name = "NUMBER", requires = "map", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) hosts: Option<u32>,

    /// Rank whose computation --speed changes
    #[arg(long, value_name = "RANK", requires = "speed")]
    pub(super) rank: Vec<u32>,

    /// Host whose ranks compute at --speed
    #[arg(long, value_name = "HOST", requires = "speed")]
    pub(super) host: Vec<String>,

    /// Region that all ranks compute at --speed
    #[arg(long, value_name = "REGION", requires = "speed")]
    pub(super) region: Vec<String>,

    /// Speed factor (2: twice as fast)
    #[arg(long, value_name = "FACTOR", value_parser = factor)]
    pub(super) speed: Option<f64>,

    /// Balance this region, so that every rank spends the mean time in it (`all`: all computation)
    #[arg(long, value_name = "REGION")]
    pub(super) balance: Vec<String>,

    /// Divide the work of each parallel region evenly among its threads; needs a run recorded with
    /// --openmp
    #[arg(long, value_name = "balanced")]
    pub(super) threads: Option<Threads>,

    /// Speed factor of calls on files outside MPI (x2: twice as fast); needs a run recorded with
    /// --io
    #[arg(long, value_name = "FACTOR", value_parser = factor)]
    pub(super) io: Option<f64>,

    /// Record the answer in the ledger beside the run, for --ledger
    #[arg(long)]
    pub(super) remember: bool,

    #[command(flatten)]
    pub(super) ledger: LedgerOptions,

    /// Write the replay as a run directory that every command reads; must not exist yet
    #[arg(long, value_name = "RUN")]
    pub(super) out: Option<PathBuf>,

    /// Print a JSON document
    #[arg(long)]
    pub(super) json: bool,
}
