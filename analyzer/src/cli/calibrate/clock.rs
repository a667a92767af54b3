//! `gammachi calibrate clock`: compares the clocks of ranks by running `kernels clock` under a launcher.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;

use crate::calibration::{Calibration, FORMAT, Stamps};
use crate::cli::error::{CommandError, Context, print};
use crate::cli::output_file;
use crate::present::clock::{figure, screen};
use crate::timeline::KnownRates;

use super::kernel_program::{KernelOptions, kernel_program};
use super::measurement::run_kernel;

/// Compares the clocks of ranks by two-way exchanges.
///
/// Starts the program `kernels` under the launcher. The ranks form the same tree as in recorded
/// runs. For each pair of the tree, the child asks and the parent answers (forward), then the other
/// way round (reverse). If two ranks run on the same kernel, the true offset is 0, and errors are
/// known.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    gammachi calibrate clock -- mpirun -n 2\n  \
    gammachi calibrate clock --drift 60 --out cluster-clocks.json --svg trials.svg -- mpirun -n 16 --map-by node\n  \
    gammachi report app.gammachi --clock cluster-clocks.json\n\n\
    The keys of --json are explained in docs/reference/machine-json.md.")]
pub struct ClockArguments {
    /// Exchanges in each trial
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub rounds: u64,

    /// Trials per pair and direction
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub trials: u64,

    /// Measure again after this many seconds and report how the clocks drift
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    pub drift: Option<f64>,

    /// Write the result (JSON) to a file, for `gammachi report --clock`
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,

    /// Draw the trials as a figure
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,

    /// Print the JSON document instead of tables
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    kernels: KernelOptions,

    /// Launcher and its options, without a program
    #[arg(required = true, trailing_var_arg = true, value_name = "LAUNCHER ARGS")]
    command: Vec<OsString>,
}

pub fn clock(arguments: &ClockArguments) -> Result<(), CommandError> {
    let words = &arguments.command;
    let kernels = kernel_program(&arguments.kernels, &words[0])?;
    let mut options: Vec<String> = [("--rounds", arguments.rounds), ("--trials", arguments.trials)]
        .iter()
        .flat_map(|(name, value)| [(*name).to_owned(), value.to_string()])
        .collect();
    if let Some(drift) = arguments.drift {
        options.extend(["--drift".to_owned(), drift.to_string()]);
    }
    let output = run_kernel(words, &kernels, "clock", &options)?;
    let stamps = Stamps::parse(&output).context(CommandError::Program, kernels.display())?;
    let calibration = Calibration::new(&stamps);
    let json = || serde_json::to_string_pretty(&calibration).map(|text| text + "\n");
    if let Some(path) = &arguments.out {
        output_file::write(path, &json()?)?;
    }
    if let Some(path) = &arguments.svg {
        output_file::write(path, &figure(&calibration))?;
    }
    print(&if arguments.json { json()? } else { screen(&calibration) })
}

fn parse_seconds(text: &str) -> Result<f64, &'static str> {
    match text.parse::<f64>() {
        Ok(seconds) if seconds > 0.0 && seconds < 1e9 => Ok(seconds),
        _ => Err("write a number of seconds above 0, such as 60"),
    }
}

/// Reads a saved result for `gammachi report --clock`: the measured rates between hosts.
pub fn known_rates(path: &Path) -> Result<KnownRates, CommandError> {
    let failed = |what: &str| CommandError::Input(format!("--clock {}: {what}", path.display()));
    let text = fs::read_to_string(path).map_err(|error| failed(&error.to_string()))?;
    let calibration: Calibration = serde_json::from_str(&text)
        .ok()
        .filter(|calibration: &Calibration| calibration.format == FORMAT)
        .ok_or_else(|| failed("it was not written by gammachi calibrate clock --out"))?;
    let mut rates = KnownRates::default();
    let host = |rank: usize| calibration.hosts.get(rank).cloned().unwrap_or_default();
    for pair in &calibration.pairs {
        if let (Some(ppm), Some(bound_ppm)) = (pair.drift_ppm, pair.drift_bound_ppm) {
            rates.add((host(pair.child), host(pair.parent)), ppm, bound_ppm);
        }
    }
    match rates.is_empty() {
        true => Err(failed(
            "it has no drift between hosts; measure with gammachi calibrate clock --drift SECONDS on \
             two or more hosts",
        )),
        false => Ok(rates),
    }
}
