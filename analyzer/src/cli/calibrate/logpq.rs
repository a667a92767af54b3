//! `gammachi calibrate logpq`: prints a machine's LogP and LogPQ parameters, and predicts the times of
//! Cannon's product and of the messages of recorded runs.

use std::fs;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use crate::analysis::Analysis;
use crate::cli::error::{CommandError, print_result};
use crate::cli::figure_files::FigureOptions;
use crate::cli::roofline::parts_of;
use crate::cli::selection_arguments::selection_sentence;
use crate::metrics::Selection;
use crate::metrics::exchanges::{Exchanges, Locality};
use crate::models::Machine;
use crate::models::logpq::cannon::BlockProduct;
use crate::models::logpq::messages::RunPrediction;
use crate::models::logpq::study::{self, CannonRun, ProductSource, Study, StudyNote};
use crate::models::logpq::{Findings, Parameters};
use crate::models::machine::{MACHINE_JSON, PairClass};
use crate::present::logpq::{figures, json, screen};
use crate::present::machine::doubt_sentence;
use crate::timeline::GlobalTimeline;
use crate::trace::Run;

/// Shows what messages cost under the LogP and LogPQ models.
///
/// Takes machine.json (written by `gammachi calibrate`), outputs of `kernels cannon --json` and run
/// directories, in any order. Prints the models' parameters in seconds and ticks of the counter;
/// predicted and measured times of Cannon's product, what each strategy hides, and the smallest
/// number of buffers that hides communication; for each run, the time of its messages predicted by
/// each model, compared with the measured time.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gammachi calibrate logpq machine.json\n  \
                  gammachi calibrate logpq machine.json --ranks 4 --n 64,256,1024 --figures plots\n  \
                  gammachi calibrate logpq machine.json cannon-256.json cannon-512.json\n  \
                  gammachi calibrate logpq machine.json hpl.gammachi --json\n  \
                  gammachi calibrate logpq --example cm5\n\nFormulas and figures: \
                  docs/guide/calibrate.md; JSON keys: docs/reference/predictions-json.md.")]
pub struct LogpqArguments {
    /// machine.json, outputs of `kernels cannon --json`, run directories
    #[arg(value_name = "MACHINE.json|CANNON.json|RUN", required_unless_present = "example")]
    sources: Vec<PathBuf>,

    /// The machine measured by `gammachi calibrate` [default: the one among the sources, else
    /// ./machine.json]
    #[arg(long, value_name = "FILE")]
    machine: Option<PathBuf>,

    /// Words m of the message at which the parameters are taken (Touyama and Horiguchi: 16)
    #[arg(long, value_name = "M", default_value_t = 16, value_parser = clap::value_parser!(u64).range(1..))]
    words: u64,

    /// Bytes per word
    #[arg(long, value_name = "BYTES", default_value_t = 8, value_parser = clap::value_parser!(u64).range(1..))]
    word_bytes: u64,

    /// Channel words per processor word, r of equation (1)
    #[arg(long, value_name = "R", default_value_t = 1.0, value_parser = parse_positive)]
    ratio: f64,

    /// Pairs whose parameters predict Cannon's product [default: other-host if measured]
    #[arg(long, value_name = "CLASS", value_enum)]
    class: Option<Class>,

    /// Orders N of the matrices to predict
    #[arg(long, value_name = "N,…", value_delimiter = ',', value_parser = clap::value_parser!(u64).range(1..))]
    n: Vec<u64>,

    /// Ranks of Cannon's product, a square [default: as measured, else 4]
    #[arg(long, value_name = "P", value_parser = clap::value_parser!(u64).range(1..))]
    ranks: Option<u64>,

    /// Time t_s of one multiplication and addition, seconds [default: from the products measured, else
    /// from machine.json's dgemm]
    #[arg(long, value_name = "SECONDS", value_parser = parse_positive)]
    t_s: Option<f64>,

    /// Fixed time t_f of a block product, seconds
    #[arg(long, value_name = "SECONDS", requires = "t_s", value_parser = parse_positive)]
    t_f: Option<f64>,

    /// Number of ranks that shared a processor when Cannon's product was measured: a block product
    /// then takes this many times as long
    #[arg(long, value_name = "S", default_value_t = 1.0, value_parser = parse_positive)]
    sharing: f64,

    /// Only this region of runs [default: the whole run and each region]
    #[arg(long, value_name = "NAME")]
    region: Option<String>,

    /// A published machine instead of a measured one
    #[arg(long, value_name = "NAME", value_enum, conflicts_with = "sources")]
    example: Option<Example>,

    #[command(flatten)]
    figures: FigureOptions,

    /// Print a JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Class {
    SameHost,
    OtherHost,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Example {
    /// The CM-5 of Touyama and Horiguchi, 64 processors
    Cm5,
}

fn parse_positive(text: &str) -> Result<f64, &'static str> {
    match text.parse::<f64>() {
        Ok(value) if value > 0.0 && value.is_finite() => Ok(value),
        _ => Err("a number above 0 is needed"),
    }
}

struct Sources {
    machine: (PathBuf, Machine),
    products: Vec<CannonRun>,
    runs: Vec<PathBuf>,
}

impl Sources {
    fn read(arguments: &LogpqArguments) -> Result<Self, CommandError> {
        let (mut products, mut runs) = (Vec::new(), Vec::new());
        let mut machine: Option<(PathBuf, Machine)> = None;
        for path in &arguments.sources {
            if path.is_dir() {
                runs.push(path.clone());
                continue;
            }
            let text = fs::read_to_string(path);
            match text {
                Ok(text) if study::is_output(&text) => {
                    let parsed = study::parse(&text).map_err(|error| {
                        CommandError::Input(format!(
                            "{}: not what `kernels cannon --json` prints: {error}; one document or \
                             several, one after another, are read",
                            path.display()
                        ))
                    })?;
                    products.extend(parsed);
                }
                // A file that is not the output of a product must be a machine; its reader explains
                // why it is not.
                _ => {
                    if let Some((other, _)) = &machine {
                        return Err(CommandError::usage(format!(
                            "{} and {}: give one machine.json",
                            other.display(),
                            path.display()
                        )));
                    }
                    machine = Some((path.clone(), Machine::read(path)?));
                }
            }
        }
        let machine = match (&arguments.machine, machine) {
            (Some(path), Some((other, _))) => {
                return Err(CommandError::usage(format!(
                    "--machine {}: {} is given already",
                    path.display(),
                    other.display()
                )));
            }
            (None, Some(machine)) => machine,
            (named, None) => {
                let path = named.as_deref().unwrap_or(Path::new(MACHINE_JSON));
                (path.to_owned(), Machine::read(path)?)
            }
        };
        Ok(Self { machine, products, runs })
    }
}

pub fn logpq(arguments: &LogpqArguments) -> Result<(), CommandError> {
    let findings = match arguments.example {
        Some(Example::Cm5) => cm5(arguments)?,
        None => measured(arguments)?,
    };
    arguments.figures.write(|| figures(&findings))?;
    print_result(arguments.json, || json(&findings), |colour| screen(&findings, colour))
}

fn cm5(arguments: &LogpqArguments) -> Result<Findings, CommandError> {
    let grid = grid_size(arguments.ranks.unwrap_or(64))?;
    let orders: Vec<u64> = match arguments.n.is_empty() {
        true => (3..=10).map(|power| 1 << power).collect(),
        false => arguments.n.clone(),
    };
    check_orders(&orders, grid)?;
    let parameters = Parameters::cm5();
    let product = (BlockProduct::CM5, ProductSource::Paper);
    let cannon = Study::new(&parameters, grid, Some(product), &orders, (&[], 1.0));
    Ok(Findings {
        source: "Touyama and Horiguchi, table 1".into(),
        cannon_class: parameters.class.clone(),
        parameters: vec![parameters],
        cannon,
        ..Findings::default()
    })
}

fn measured(arguments: &LogpqArguments) -> Result<Findings, CommandError> {
    let sources = Sources::read(arguments)?;
    let (path, machine) = &sources.machine;
    let parameters_of = |class: &PairClass| {
        let hz = machine.network.counter_hz;
        Parameters::new(class, hz, arguments.words, arguments.word_bytes, arguments.ratio)
    };
    let mut findings = Findings {
        source: path.display().to_string(),
        parameters: machine.network.classes.iter().map(parameters_of).collect(),
        notes: machine.noise(),
        ..Findings::default()
    };
    if machine.quick {
        findings
            .notes
            .push(format!("{}: measured with --quick; figures are rough", path.display()));
    }
    if findings.parameters.is_empty() {
        return Err(CommandError::Input(format!(
            "{}: no pair of ranks was measured (one rank only); measure with `gammachi calibrate -- \
             mpirun -n 2`",
            path.display()
        )));
    }
    let wanted = match arguments.class {
        Some(Class::SameHost) => Some("same-host"),
        Some(Class::OtherHost) => Some("other-host"),
        None => None,
    };
    let of_cannon = match wanted {
        Some(name) => {
            findings.parameters.iter().find(|one| one.class == name).ok_or_else(|| {
                CommandError::Input(format!("--class {name}: {} has no such pairs", path.display()))
            })?
        }
        None => findings.parameters.last().expect("there is one"),
    };
    findings.cannon_class = of_cannon.class.clone();
    if !sources.products.is_empty() || !arguments.n.is_empty() {
        findings.cannon = cannon(arguments, machine, of_cannon, &sources.products)?;
    }
    for directory in &sources.runs {
        let notes = predict_run(arguments, directory, machine, &mut findings)?;
        findings.notes.extend(notes);
    }
    Ok(findings)
}

fn grid_size(ranks: u64) -> Result<u64, CommandError> {
    let grid = ranks.isqrt();
    match grid * grid == ranks {
        true => Ok(grid),
        false => Err(CommandError::usage(format!(
            "--ranks {ranks}: Cannon's product needs a square number (1, 4, 9, 16 …)"
        ))),
    }
}

fn check_orders(orders: &[u64], grid: u64) -> Result<(), CommandError> {
    match orders.iter().find(|n| *n % grid != 0) {
        Some(n) => Err(CommandError::usage(format!(
            "--n {n}: not a multiple of {grid}, the root of the number of ranks"
        ))),
        None => Ok(()),
    }
}

fn cannon(
    arguments: &LogpqArguments,
    machine: &Machine,
    parameters: &Parameters,
    products: &[CannonRun],
) -> Result<Option<Study>, CommandError> {
    let grid = match (arguments.ranks, products.first()) {
        (Some(ranks), _) => grid_size(ranks)?,
        (None, Some(run)) => run.grid,
        (None, None) => 2,
    };
    if let Some(other) = products.iter().find(|run| run.grid != grid) {
        return Err(CommandError::usage(format!(
            "products on {} ranks and on {}: give those of one number of ranks",
            grid * grid,
            other.ranks
        )));
    }
    check_orders(&arguments.n, grid)?;
    let given = match (arguments.t_s, products.is_empty()) {
        (Some(multiply_s), _) => {
            let fixed_s = arguments.t_f.unwrap_or(0.0);
            Some((BlockProduct { fixed_s, multiply_s }, ProductSource::Given))
        }
        (None, false) => None,
        (None, true) => {
            let Some(dgemm) = machine.ceilings.named("dgemm") else {
                return Err(CommandError::usage(
                    "--n: machine.json has no dgemm; give --t-s, the time of one multiplication and \
                     addition",
                ));
            };
            let multiply_s = 2.0 / dgemm.per_rank.median;
            Some((BlockProduct { fixed_s: 0.0, multiply_s }, ProductSource::Dgemm))
        }
    };
    let mut study =
        Study::new(parameters, grid, given, &arguments.n, (products, arguments.sharing));
    if let (Some(study), Some(run)) = (&mut study, products.first()) {
        let doubts = machine.doubts_for(&[], &run.mpi);
        study.notes.extend(doubts.into_iter().map(StudyNote::Doubt));
    }
    Ok(study)
}

fn predict_run(
    arguments: &LogpqArguments,
    directory: &Path,
    machine: &Machine,
    findings: &mut Findings,
) -> Result<Vec<String>, CommandError> {
    let run = Run::open(directory)?;
    let timeline = GlobalTimeline::new(&run);
    let name = directory.display().to_string();
    let selections = parts_of(&run, arguments.region.as_deref());
    let mut notes = Vec::new();
    let mut hosts = Vec::new();
    let asked: Vec<Selection> = selections.iter().map(|(_, selection)| selection.clone()).collect();
    let all = Exchanges::of_all(&Analysis::new(&run, &timeline), &asked);
    for ((part, selection), exchanges) in selections.into_iter().zip(all) {
        let name = format!("{name}, {part}");
        let exchanges = match exchanges {
            Ok(exchanges) => exchanges,
            Err(error) if arguments.region.is_none() && selection != Selection::Whole => {
                notes.push(format!("left out: {name}: {}", selection_sentence(&error)));
                continue;
            }
            Err(error) => {
                let sentence = selection_sentence(&error);
                return Err(CommandError::Input(format!("{}: {sentence}", directory.display())));
            }
        };
        if !exchanges.has_messages {
            return Err(CommandError::Input(format!(
                "{}: recorded at level 0, without messages; record with --level 1",
                directory.display()
            )));
        }
        if exchanges.unmatched > 0 && selection == Selection::Whole {
            notes.push(format!(
                "{name}: {} sends and receives have no partner; they are not predicted",
                exchanges.unmatched
            ));
        }
        hosts.clone_from(&exchanges.hosts);
        let of = |place: Locality| {
            findings.parameters.iter().find(|one| one.class == place.class_name()).cloned()
        };
        findings.runs.push(RunPrediction::new(name, &exchanges, of));
    }
    run.check_readable()?;
    let mpi = run.ranks.first().map_or("", |rank| rank.file.header.mpi_library.as_str());
    notes.extend(machine.doubts_for(&hosts, mpi).iter().map(doubt_sentence));
    Ok(notes)
}
