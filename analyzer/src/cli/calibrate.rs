//! `gammachi calibrate`: runs the kernels that measure network, ceilings and clocks under a
//! launcher, and writes `machine.json`. Its subcommands measure clocks alone, and show what was
//! measured.

pub mod clock;
pub mod kernel_program;
pub mod kernels;
pub mod logpq;

use std::ffi::OsString;
use std::io::{BufRead, BufReader, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::{Args, Subcommand};
use serde::de::DeserializeOwned;

use self::kernel_program::{KernelOptions, kernel_program};
use super::error::{CommandError, eprint_message, print};
use super::figure_files::FigureOptions;
use super::program_search::{find_executable, split_command};
use super::run::cannot_start;
use crate::calibration::{Calibration, Stamps};
use crate::models::machine::difference::changes;
use crate::models::machine::{FORMAT, FORMAT_VERSION, MACHINE_JSON, Machine};
use crate::plain_text::printable;
use crate::present::figure::Figure;
use crate::present::machine::{change_lines, difference_sentence, pictures, screen};
use crate::trace::run_json::Instant;

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

    /// Where pictures of latency, bandwidth and queues go
    #[command(flatten)]
    pub figures: FigureOptions,

    /// Print machine.json instead of the screen
    #[arg(long)]
    pub json: bool,

    /// Path of the kernels.
    #[command(flatten)]
    pub kernels: KernelOptions,

    /// Launcher and its options, without a program
    #[arg(required = true, trailing_var_arg = true, value_name = "LAUNCHER ARGS")]
    pub launcher: Vec<OsString>,

    #[command(subcommand)]
    part: Option<Part>,
}

/// Parts of the measurement, and what shows it.
#[derive(Debug, Subcommand)]
enum Part {
    Clock(clock::ClockArguments),
    Logpq(logpq::LogpqArguments),
    #[command(alias = "tables")]
    Kernels(kernels::KernelsArguments),
}

/// Measures and writes the file.
///
/// # Errors
/// Wrong usage: a program after the launcher, no kernels. Failure: a kernel that fails, a file of
/// another version or another machine that would be overwritten.
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
        .map_err(|what| CommandError::failed(format!("kernels clock: {what}")))?;
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
    machine.write(&arguments.out).map_err(|error| cannot_write(&arguments.out, &error))?;
    let svg = |(name, figure): (_, Figure)| (name, figure.svg());
    arguments.figures.write(|| pictures::all(&machine).into_iter().map(svg).collect())?;
    if arguments.json {
        let text = serde_json::to_string_pretty(&machine);
        return print(&(text.map_err(CommandError::failed)? + "\n"));
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
        CommandError::failed(format!(
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
    now.write(&kept).map_err(|error| cannot_write(&kept, &error))?;
    Err(CommandError::failed(format!(
        "{}: belongs to another machine and is not overwritten ({}); this measurement is in {}",
        out.display(),
        differences.iter().map(difference_sentence).collect::<Vec<_>>().join("; "),
        kept.display()
    )))
}

fn cannot_write(path: &Path, error: &std::io::Error) -> CommandError {
    CommandError::failed(format!("{}: cannot be written: {error}", path.display()))
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

/// Runs a kernel under the launcher and returns its output.
fn run_kernel(
    launcher: &[OsString],
    kernels: &Path,
    kernel: &str,
    options: &[String],
) -> Result<String, CommandError> {
    let mut child = Command::new(&launcher[0])
        .args(&launcher[1..])
        .arg(kernels)
        .arg(kernel)
        .args(options)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| cannot_start(&launcher[0], &error))?;
    let errors = child.stderr.take();
    let watcher = std::thread::spawn(move || errors.map(show_progress).unwrap_or_default());
    let mut text = String::new();
    let read = child.stdout.take().map(|mut out| out.read_to_string(&mut text)).transpose();
    let status = child.wait();
    let lines = watcher.join().unwrap_or_default();
    let failed = |what: String| CommandError::failed(format!("kernels {kernel}: {what}"));
    read.map_err(|error| failed(format!("its output cannot be read: {error}")))?;
    let status = status.map_err(|error| failed(format!("cannot be waited for: {error}")))?;
    if status.success() {
        // Warnings of the launcher or the MPI library.
        lines.iter().for_each(|line| eprint_message(line));
        return Ok(text);
    }
    // The kernel's own messages, or those of the launcher if there are none.
    let own: Vec<&str> = lines.iter().filter_map(|line| line.strip_prefix("kernels: ")).collect();
    let words = if own.is_empty() { lines.join("\n") } else { own.join("; ") };
    match status.code() {
        Some(2) => Err(CommandError::usage(format!("kernels {kernel}: {words}"))),
        _ => Err(failed(format!("{words} ({status})"))),
    }
}

/// Shows progress lines on a terminal; returns all other lines.
fn show_progress(errors: impl Read) -> Vec<String> {
    let terminal = std::io::stderr().is_terminal();
    let mut others = Vec::new();
    for line in BufReader::new(errors).split(b'\n').map_while(Result::ok) {
        let line = String::from_utf8_lossy(&line).trim_end().to_owned();
        match line.strip_prefix("progress: ") {
            Some(progress) if terminal => {
                let (percent, what) = progress.split_once(' ').unwrap_or((progress, ""));
                let _ = write!(
                    std::io::stderr(),
                    "\r\x1b[K{:>3} %  {}",
                    printable(percent),
                    printable(what)
                );
            }
            Some(_) => {}
            None if line.is_empty() => {}
            None => others.push(line),
        }
    }
    if terminal {
        let _ = write!(std::io::stderr(), "\r\x1b[K");
    }
    others
}

/// Reads the JSON document in the output of launcher and kernel.
fn read_document<T: DeserializeOwned>(text: &str, kernel: &str) -> Result<T, CommandError> {
    let document = text.lines().find(|line| line.starts_with('{')).unwrap_or_default();
    serde_json::from_str(document).map_err(|error| {
        CommandError::failed(format!(
            "kernels {kernel}: its output cannot be read ({error}): the kernels are of another version; \
             build them again with scripts/build-kernels"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(launcher: &[&str]) -> CalibrateArguments {
        CalibrateArguments {
            out: std::env::temp_dir().join(format!("calibrate-{}.json", std::process::id())),
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
        let arguments = CalibrateArguments {
            out: std::env::temp_dir().join(format!("calibrate-other-{}.json", std::process::id())),
            ..arguments(&["mpirun", "-n", "2"])
        };
        std::fs::write(&arguments.out, "{\"format\":\"gammachi-machine\",\"format_version\":99}")
            .unwrap();
        let error = calibrate(&arguments).unwrap_err();
        assert_eq!(error.exit_code(), 1);
        assert!(error.to_string().contains("version 99"), "{error}");
        std::fs::remove_file(&arguments.out).unwrap();
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
