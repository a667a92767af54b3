//! `gammachi calibrate`: runs the kernels that measure network, ceilings and clocks under a
//! launcher, and writes `machine.json`. Its subcommands measure clocks alone, and show what was
//! measured.

pub mod clock;
pub mod kernel_program;
pub mod kernels;
pub mod logpq;
mod measurement;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};

use crate::calibration::{Calibration, Stamps};
use crate::models::machine::difference::changes;
use crate::models::machine::{FORMAT, FORMAT_VERSION, MACHINE_JSON, Machine};
use crate::present::figure::Figure;
use crate::present::machine::{change_lines, difference_sentence, pictures, screen};
use crate::trace::run_json::Instant;

use self::kernel_program::{KernelOptions, kernel_program};
use super::error::{CommandError, Context, print};
use super::figure_files::FigureOptions;
use super::program_search::{find_executable, split_command};

use measurement::{read_document, run_kernel};

/// Measures network, processors, memory and clocks, and writes machine.json.
///
/// Starts the kernels (built by scripts/build-kernels) under the given launcher, shows the results,
/// and writes machine.json, which `gammachi roofline` and `gammachi calibrate logpq` read. If the
/// file exists already, changes beyond noise are reported. Start it on a quiet machine, with as many
/// ranks per host as programs will have; two are enough for the network.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(disable_help_subcommand = true)]
#[command(after_help = "Examples:\n  \
    gammachi calibrate -- mpirun -n 2\n  \
    gammachi calibrate --out cluster.json --figures plots -- mpirun -n 8 --host n1:4,n2:4\n  \
    gammachi calibrate --quick --kernels ./kernels -- mpiexec -n 2\n  \
    gammachi calibrate clock -- mpirun -n 2\n\nThe keys of machine.json are \
    explained in docs/reference/machine-json.md.")]
pub struct CalibrateArguments {
    /// File to write
    #[arg(long, value_name = "FILE", default_value = MACHINE_JSON)]
    pub out: PathBuf,

    /// Take only a few seconds: fewer repetitions, small messages, small arrays. Figures are rough
    #[arg(long)]
    pub quick: bool,

    /// Timed rounds of the network kernel
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(3..))]
    pub repetitions: Option<u32>,

    /// Largest message
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_bytes: Option<u64>,

    #[command(flatten)]
    pub figures: FigureOptions,

    /// Print machine.json instead of the screen
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub kernels: KernelOptions,

    /// Launcher and its options, without a program
    #[arg(required = true, trailing_var_arg = true, value_name = "LAUNCHER ARGS")]
    pub launcher: Vec<OsString>,

    #[command(subcommand)]
    part: Option<Part>,
}

#[derive(Debug, Subcommand)]
enum Part {
    Clock(clock::ClockArguments),
    Logpq(logpq::LogpqArguments),
    Kernels(kernels::KernelsArguments),
}

pub fn calibrate(arguments: &CalibrateArguments) -> Result<(), CommandError> {
    match &arguments.part {
        Some(Part::Clock(arguments)) => return clock::clock(arguments),
        Some(Part::Logpq(arguments)) => return logpq::logpq(arguments),
        Some(Part::Kernels(arguments)) => return kernels::kernels(arguments),
        None => {}
    }
    let words = &arguments.launcher;
    let parts = split_command(words, |word| find_executable(word).is_ok());
    let Some(launcher) = parts.launcher else {
        return Err(CommandError::usage(format!(
            "{}: not a known launcher; calibrate starts its own kernels, so name the \
             launcher and its options only: gammachi calibrate -- mpirun -n 2",
            words[0].to_string_lossy()
        )));
    };
    if let Some(program) = parts.program {
        return Err(CommandError::usage(format!(
            "{}: calibrate starts its own kernels; name the launcher and its options only: gammachi \
             calibrate -- mpirun -n 2",
            words[program].to_string_lossy()
        )));
    }
    let before = existing_machine(&arguments.out)?;
    let kernels = kernel_program(&arguments.kernels, &words[launcher])?;

    let start = Instant::now();
    let run = |kernel: &str, options: &[String]| run_kernel(words, &kernels, kernel, options);
    let network = read_document(&run("network", &network_options(arguments))?, "network")?;
    let ceilings = read_document(&run("ceilings", &ceiling_options(arguments))?, "ceilings")?;
    let stamps = Stamps::parse(&run("clock", &clock_options(arguments))?)
        .context(CommandError::Program, "kernels clock")?;
    let machine = Machine {
        format: FORMAT.into(),
        format_version: FORMAT_VERSION,
        gammachi_version: env!("CARGO_PKG_VERSION").into(),
        measured: start,
        launcher: words.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
        quick: arguments.quick,
        network,
        ceilings,
        clock: Some(Calibration::new(&stamps)),
    };
    if let Some(before) = &before {
        refuse_other_machine(before, &machine, &arguments.out)?;
    }
    write(&machine, &arguments.out)?;
    let svg = |(name, figure): (_, Figure)| (name, figure.svg());
    arguments.figures.write(|| pictures::all(&machine).into_iter().map(svg).collect())?;
    if arguments.json {
        return print(&(serde_json::to_string_pretty(&machine)? + "\n"));
    }
    let mut text = screen(&machine);
    if let Some(before) = &before {
        let (changes, compared) = changes(before, &machine);
        text += &format!("\nagainst {}\n", before.measured.utc);
        text += &(change_lines(&changes, compared).join("\n") + "\n");
        text += noise_line(before, &machine);
    }
    text += &format!("\nwritten to {}\n", arguments.out.display());
    print(&text)
}

/// How noise affects the changes.
fn noise_line(before: &Machine, now: &Machine) -> &'static str {
    match (before.noise().is_empty(), now.noise().is_empty()) {
        (true, true) => "",
        (false, true) => "the previous measurement was NOISY: changes may be due to that\n",
        (true, false) => "this measurement was NOISY: changes may be due to that\n",
        (false, false) => "both measurements were NOISY: changes may be due to that\n",
    }
}

/// The machine in the file that would be replaced.
fn existing_machine(out: &Path) -> Result<Option<Machine>, CommandError> {
    if !out.exists() {
        let folder = out.parent().filter(|folder| !folder.as_os_str().is_empty());
        if folder.is_some_and(|folder| !folder.is_dir()) {
            return Err(CommandError::usage(format!(
                "--out {}: its folder does not exist",
                out.display()
            )));
        }
        return Ok(None);
    }
    // Checked before minutes are spent on measuring.
    Machine::read(out).map(Some).map_err(|error| {
        CommandError::Output(format!(
            "{error}; it is not overwritten: name another file with --out"
        ))
    })
}

fn refuse_other_machine(before: &Machine, now: &Machine, out: &Path) -> Result<(), CommandError> {
    let differences = now.differs_from(before);
    if differences.is_empty() {
        return Ok(());
    }
    let kept = PathBuf::from(format!("{}.new", out.display()));
    write(now, &kept)?;
    Err(CommandError::Output(format!(
        "{}: belongs to another machine and is not overwritten ({}); this measurement is in {}",
        out.display(),
        differences.iter().map(difference_sentence).collect::<Vec<_>>().join("; "),
        kept.display()
    )))
}

fn write(machine: &Machine, path: &Path) -> Result<(), CommandError> {
    machine
        .write(path)
        .context(CommandError::Output, format_args!("{}: cannot be written", path.display()))
}

/// Options that make a kernel print its document, and its progress for this command to show.
const DOCUMENT: [&str; 3] = ["--json", "--progress", "lines"];

fn network_options(arguments: &CalibrateArguments) -> Vec<String> {
    let repetitions = arguments.repetitions.or(arguments.quick.then_some(5));
    let max_bytes = arguments.max_bytes.or(arguments.quick.then_some(1 << 16));
    let option = |name: &str, value: Option<u64>| {
        value.map(|value| vec![name.to_owned(), value.to_string()]).unwrap_or_default()
    };
    let options =
        [option("--repetitions", repetitions.map(u64::from)), option("--max-bytes", max_bytes)];
    [DOCUMENT.map(str::to_owned).to_vec(), options.concat()].concat()
}

fn ceiling_options(arguments: &CalibrateArguments) -> Vec<String> {
    let quick = ["--repetitions", "3", "--n", "200", "--triad-bytes", "4194304"];
    let quick = if arguments.quick { &quick[..] } else { &[] };
    DOCUMENT.iter().chain(quick).map(|word| (*word).to_owned()).collect()
}

fn clock_options(arguments: &CalibrateArguments) -> Vec<String> {
    let trials = if arguments.quick { "3" } else { "10" };
    ["--trials", trials].map(str::to_owned).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(launcher: &[&str]) -> CalibrateArguments {
        CalibrateArguments {
            out: "/nowhere/machine.json".into(),
            quick: true,
            repetitions: None,
            max_bytes: Some(1024),
            figures: FigureOptions::default(),
            part: None,
            json: false,
            kernels: KernelOptions { kernels: Some("/bin/true".into()) },
            launcher: launcher.iter().map(OsString::from).collect(),
        }
    }

    #[test]
    fn program_after_launcher_and_unknown_launcher_are_wrong_usage() {
        for launcher in [&["mpirun", "-n", "2", "/bin/true"][..], &["/bin/true"], &["frobnicate"]] {
            let error = calibrate(&arguments(launcher)).unwrap_err();
            assert_eq!(error.exit_code(), 2, "{error}");
            assert!(error.to_string().contains("launcher and its options only"), "{error}");
        }
    }

    #[test]
    fn refuses_to_overwrite_file_of_other_version() {
        let out = tempfile::NamedTempFile::new().unwrap().into_temp_path();
        std::fs::write(&out, "{\"format\":\"gammachi-machine\",\"format_version\":99}").unwrap();
        let arguments = CalibrateArguments { out: out.to_path_buf(), ..arguments(&["mpirun"]) };
        let error = calibrate(&arguments).unwrap_err();
        assert_eq!(error.exit_code(), 1);
        assert!(error.to_string().contains("version 99"), "{error}");
    }

    #[test]
    fn warns_of_noisy_measurements() {
        let quiet = crate::models::machine::tests::machine();
        let mut noisy = quiet.clone();
        noisy.ceilings.conditions.reasons = vec!["something else runs here".into()];
        assert_eq!(noise_line(&quiet, &quiet), "");
        assert!(noise_line(&noisy, &quiet).contains("previous measurement was NOISY"));
        assert!(noise_line(&quiet, &noisy).contains("this measurement was NOISY"));
    }

    #[test]
    fn finds_document_among_other_lines() {
        let value: serde_json::Value =
            read_document("Warning: x\n{\"a\":1}\n", "network").expect("a document");
        assert_eq!(value["a"], 1);
        let error = read_document::<serde_json::Value>("nothing", "network").unwrap_err();
        assert!(error.to_string().contains("scripts/build-kernels"), "{error}");
    }

    #[test]
    fn options_override_quick() {
        let options = network_options(&arguments(&["mpirun"]));
        assert_eq!(options[3..], ["--repetitions", "5", "--max-bytes", "1024"]);
        assert!(ceiling_options(&arguments(&["mpirun"])).len() > DOCUMENT.len());
    }
}
