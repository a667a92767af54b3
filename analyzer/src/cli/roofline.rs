//! `gammachi roofline`: shows runs, sweeps and published systems under their roofs.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use trace_format::counters::{BYTES, FLOPS};
use trace_format::functions::DECLARED_WORK;

use super::error::{CommandError, Context, print_result};
use super::figure_files::FigureOptions;
use super::selection_arguments::selection_sentence;
use crate::analysis::Analysis;
use crate::metrics::exchanges::Exchanges;
use crate::metrics::{ComputeMode, Metrics, Selection, SelectionError};
use crate::models::Machine;
use crate::models::machine::MACHINE_JSON;
use crate::models::roofline::findings::{Assessment, RunFindings};
use crate::models::roofline::roofs::DataSheet;
use crate::models::roofline::sweep::Sweep;
use crate::models::roofline::systems::{SYSTEMS, System};
use crate::models::roofline::{Findings, Point, Roofs, Verdict, WhatIf};
use crate::present::counter_sentences;
use crate::present::machine::doubt_sentence;
use crate::present::roofline::{figures, json, screen};
use crate::timeline::GlobalTimeline;
use crate::trace::Run;

/// Shows what bounds a run: computation, communication, memory or waiting.
///
/// Places the whole run, each host and each region under the roofs that `gammachi calibrate`
/// measured, by operations, bytes between and within hosts, and time. Operations are those of BLAS,
/// LAPACK and FFTW calls (record with --flops) and those that the program declares with
/// gammachi_work; if the processor counted them (record with --counters flops), its count is used.
/// Outputs of `kernels roofline --json` are drawn under their own roofs.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gammachi run --flops -- mpirun -n 2 ./app\n  \
                  gammachi roofline app-20260131-120000.gammachi --machine machine.json\n  \
                  gammachi roofline hpl.gammachi --region solve --what-if comm/4 --figures plots\n  \
                  gammachi roofline sweep.json --figures plots\n  \
                  gammachi roofline --example all\n\nFigures: docs/guide/calibrate.md; JSON keys: \
                  docs/reference/predictions-json.md.")]
pub struct RooflineArguments {
    /// Run directories, outputs of `kernels roofline --json`
    #[arg(value_name = "RUN|SWEEP.json", required_unless_present = "example")]
    sources: Vec<PathBuf>,

    /// The machine measured by `gammachi calibrate` [default: ./machine.json if it exists]
    #[arg(long, value_name = "FILE")]
    machine: Option<PathBuf>,

    /// Theoretical peak of a host, flop/s, such as 1676.8G
    #[arg(long, value_name = "FLOPS", value_parser = parse_rate)]
    peak: Option<f64>,

    /// Theoretical bandwidth of a host in one direction, bytes per second, such as 12.5G
    #[arg(long, value_name = "BYTES", value_parser = parse_rate)]
    bandwidth: Option<f64>,

    /// Only this region [default: the whole run and each region]
    #[arg(long, value_name = "NAME")]
    region: Option<String>,

    /// A change to examine: comm/4, bandwidth*2, peak*2; may be repeated
    #[arg(long, value_name = "CHANGE", value_parser = WhatIf::parse)]
    what_if: Vec<WhatIf>,

    /// A published system: sx-9, nehalem-ex, fx1, fx10-1, fx10-10, sr16000-hub, sr16000-drawer,
    /// sr16000-between, or all
    #[arg(long, value_name = "NAME", value_parser = parse_system)]
    example: Vec<Example>,

    #[command(flatten)]
    figures: FigureOptions,

    /// Print a JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone)]
struct Example(Vec<System>);

fn parse_system(text: &str) -> Result<Example, String> {
    let found: Vec<System> =
        SYSTEMS.into_iter().filter(|one| text == "all" || one.key == text).collect();
    match found.is_empty() {
        true => Err(format!("the names are {}, all", SYSTEMS.map(|one| one.key).join(", "))),
        false => Ok(Example(found)),
    }
}

fn parse_rate(text: &str) -> Result<f64, &'static str> {
    let (number, factor) = match text.chars().last() {
        Some('k') => (&text[..text.len() - 1], 1e3),
        Some('M') => (&text[..text.len() - 1], 1e6),
        Some('G') => (&text[..text.len() - 1], 1e9),
        Some('T') => (&text[..text.len() - 1], 1e12),
        Some('P') => (&text[..text.len() - 1], 1e15),
        _ => (text, 1.0),
    };
    match number.parse::<f64>() {
        Ok(value) if value > 0.0 && value.is_finite() => Ok(value * factor),
        _ => Err("a number above 0, optionally followed by k, M, G, T or P, such as 12.5G"),
    }
}

pub fn roofline(arguments: &RooflineArguments) -> Result<(), CommandError> {
    let mut findings = Findings {
        what_if: arguments.what_if.clone(),
        systems: arguments.example.iter().flat_map(|example| example.0.clone()).collect(),
        ..Findings::default()
    };
    let has_runs = arguments.sources.iter().any(|source| source.is_dir());
    let machine = machine(arguments, has_runs, &mut findings)?;
    let sheet =
        DataSheet { peak_flops_per_s: arguments.peak, one_way_bytes_per_s: arguments.bandwidth };
    for source in &arguments.sources {
        if source.is_dir() {
            findings.runs.push(run_findings(arguments, source, machine.as_ref(), &sheet)?);
        } else {
            let shown = source.display();
            let text = fs::read_to_string(source)
                .context(CommandError::Input, format_args!("{shown}: cannot be read"))?;
            if !Sweep::is_output(&text) {
                return Err(CommandError::usage(format!(
                    "{shown}: neither a run directory nor the output of `kernels roofline --json`; \
                     name a machine.json with --machine"
                )));
            }
            let other = format_args!("{shown}: not the output of `kernels roofline --json`");
            findings.sweeps.push(Sweep::parse(&text).context(CommandError::Input, other)?);
        }
    }
    if !findings.what_if.is_empty() && findings.runs.is_empty() && findings.systems.is_empty() {
        return Err(CommandError::usage(
            "--what-if changes a run or a published system (--example); an output of `kernels \
             roofline` has only measured points",
        ));
    }
    arguments.figures.write(|| figures(&findings))?;
    print_result(arguments.json, || json(&findings), |colour| screen(&findings, colour))
}

fn machine(
    arguments: &RooflineArguments,
    has_runs: bool,
    findings: &mut Findings,
) -> Result<Option<Machine>, CommandError> {
    let path = match &arguments.machine {
        Some(path) => path.as_path(),
        None if has_runs && Path::new(MACHINE_JSON).is_file() => Path::new(MACHINE_JSON),
        None => return Ok(None),
    };
    read(path, findings).map(Some)
}

fn read(path: &Path, findings: &mut Findings) -> Result<Machine, CommandError> {
    let machine = Machine::read(path)?;
    findings.source = Some(path.display().to_string());
    findings.notes.extend(machine.noise());
    if machine.quick {
        findings.notes.push(format!("{}: measured with --quick; roofs are rough", path.display()));
    }
    Ok(machine)
}

/// The parts of a run to place under roofs, with their names: the selection, or the whole run and
/// each region.
pub fn placed_selections(run: &Run, selection: &Selection) -> Vec<(String, Selection)> {
    match selection {
        Selection::Whole => whole_and_regions(run),
        Selection::Region(name) => vec![(name.clone(), selection.clone())],
        part => vec![(part.to_string(), part.clone())],
    }
}

/// Places the work and the exchanges of selections under the roofs of the machine in a file.
pub fn under_roofs(
    run: &Run,
    selections: &[(String, Selection)],
    exchanges: Vec<Result<Exchanges, SelectionError>>,
    file: &Path,
) -> Result<Findings, CommandError> {
    let mut findings = Findings::default();
    let machine = read(file, &mut findings)?;
    let placed = place(run, selections, exchanges, Some(&machine), &DataSheet::default())?;
    findings.runs.push(placed);
    Ok(findings)
}

/// The whole run and each region, or one region, with their names.
pub fn parts_of(run: &Run, region: Option<&str>) -> Vec<(String, Selection)> {
    match region {
        Some(region) => vec![(region.to_owned(), Selection::Region(region.to_owned()))],
        None => whole_and_regions(run),
    }
}

fn whole_and_regions(run: &Run) -> Vec<(String, Selection)> {
    let regions = run.region_names().into_iter();
    let regions =
        regions.map(|name| (format!("region {name}"), Selection::Region(name.to_owned())));
    std::iter::once(("whole run".to_owned(), Selection::Whole)).chain(regions).collect()
}

fn run_findings(
    arguments: &RooflineArguments,
    directory: &Path,
    machine: Option<&Machine>,
    sheet: &DataSheet,
) -> Result<RunFindings, CommandError> {
    let run = Run::open(directory)?;
    let timeline = GlobalTimeline::new(&run);
    let selections = parts_of(&run, arguments.region.as_deref());
    let asked: Vec<Selection> = selections.iter().map(|(_, selection)| selection.clone()).collect();
    let exchanges = Exchanges::of_all(&Analysis::new(&run, &timeline), &asked);
    let findings = place(&run, &selections, exchanges, machine, sheet)?;
    run.check_readable()?;
    Ok(findings)
}

fn place(
    run: &Run,
    selections: &[(String, Selection)],
    exchanges: Vec<Result<Exchanges, SelectionError>>,
    machine: Option<&Machine>,
    sheet: &DataSheet,
) -> Result<RunFindings, CommandError> {
    let mut findings = RunFindings {
        name: run.directory.display().to_string(),
        assessed: Vec::new(),
        work: Default::default(),
        notes: Vec::new(),
    };
    for (index, ((name, _), exchanges)) in selections.iter().zip(exchanges).enumerate() {
        let exchanges = match exchanges {
            Ok(exchanges) => exchanges,
            // An empty region does not prevent findings about the run.
            Err(error) if index > 0 => {
                findings.notes.push(format!("left out: {name}: {}", selection_sentence(&error)));
                continue;
            }
            Err(error) => {
                let name = run.directory.display();
                return Err(CommandError::Input(format!("{name}: {}", selection_sentence(&error))));
            }
        };
        if index == 0 {
            findings.work = exchanges.work();
            findings.notes.extend(notes(run, &exchanges, machine));
        }
        for point in Point::from_exchanges(name, &exchanges) {
            let size = (point.ranks, point.hosts);
            let roofs = Roofs::new(machine, sheet, size, point.locality, &point.sizes);
            let verdict = Verdict::new(&point, &roofs);
            findings.assessed.push(Assessment { point, roofs, verdict });
        }
    }
    Ok(findings)
}

/// Notes on what was and was not counted.
fn notes(run: &Run, exchanges: &Exchanges, machine: Option<&Machine>) -> Vec<String> {
    let mut notes = Vec::new();
    let work = exchanges.work();
    let interposed = work.keys().any(|name| name != DECLARED_WORK);
    let declared = work.contains_key(DECLARED_WORK);
    let of_counter = |name: &str| exchanges.counters.iter().find(|counter| counter.name == name);
    let counted = of_counter(FLOPS).and_then(|counter| Some((counter, counter.total()?)));
    if let Some((counter, _)) = counted {
        notes.push(format!(
            "Operations are counted by the hardware: perf_event {}, of all threads in user mode. What \
             an event counts depends on the processor; none includes accelerators. Operations of calls and \
             declared ones are shown separately and not added.",
            counter.events
        ));
    } else {
        notes.push(
            "Operations are a lower bound: those of BLAS, LAPACK and FFTW calls through dynamic symbols, \
             and declared ones. Not seen: loops of the program itself, libraries linked statically, calls \
             inside a library, accelerators."
                .into(),
        );
    }
    if let Some((counter, _)) =
        of_counter(BYTES).and_then(|counter| Some((counter, counter.total()?)))
    {
        notes.push(format!("Bytes of memory are counted: perf_event {}.", counter.events));
    }
    for counter in [FLOPS, BYTES].into_iter().filter_map(of_counter) {
        notes.extend(counter_sentences(counter).into_iter().map(|why| format!("Counter {why}.")));
    }
    if counted.is_none() && !interposed && Metrics::compute_mode_of(run) != ComputeMode::Blas {
        notes.push(
            "No interposed function was recorded; --flops or --compute blas records them.".into(),
        );
    }
    if interposed && declared {
        notes.push(
            "Operations are both interposed and declared, and added: declare only what BLAS, LAPACK and \
             FFTW do not do."
                .into(),
        );
    }
    if !exchanges.has_messages {
        notes.push(
            "Recorded at level 0: bytes of messages are not known; record with --level 1.".into(),
        );
    }
    if !exchanges.not_counted.is_empty() {
        let names: Vec<&str> = exchanges.not_counted.keys().map(String::as_str).take(4).collect();
        notes.push(format!(
            "Files are used ({}); their bytes are not counted as communication.",
            names.join(", ")
        ));
    }
    if exchanges.hosts.len() > 1 && exchanges.participants().any(|rank| rank.collective_calls > 0) {
        notes.push(
            "For collective calls, the share of members on other hosts counts as between hosts; the \
             algorithm of the library is not known."
                .into(),
        );
    }
    if let Some(machine) = machine {
        let mpi = run.ranks.first().map_or("", |rank| rank.file.header.mpi_library.as_str());
        notes.extend(machine.doubts_for(&exchanges.hosts, mpi).iter().map(doubt_sentence));
    }
    notes
}
