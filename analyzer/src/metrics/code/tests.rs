use trace_format::header::Module;
use trace_format::reader::{Sample, SampledThread};
use trace_format::samples::interpreted;

use super::functions::Function;
use super::times::{Code, CodeMetrics, CodeRow, RankCounts, RankParts};
use crate::trace::samples::{RankSamples, Replacements};
use crate::trace::symbols::{SourceLocation, Symbols};

const HZ: f64 = 100.0;

fn module(path: &str, begin: u64, ticks: u64) -> Module {
    let (path, identity) = (path.to_owned(), String::new());
    Module { path, identity, base: begin, begin, end: begin + 0x1000, ticks }
}

fn place(function: &str, line: u32) -> SourceLocation {
    let (function, file) = (Some(function.to_owned()), Some("a.c".to_owned()));
    SourceLocation { function, file, line: Some(line) }
}

/// Functions of 16 bytes, named after the module and their number, into which `inlined` is inlined at 8.
fn resolve(path: &str, _: &str, address: u64) -> Vec<SourceLocation> {
    let compiled = place(&format!("{path}_{}", address / 16), (address % 16) as u32);
    match address % 16 {
        8 => vec![place("inlined", 99), compiled],
        _ => vec![compiled],
    }
}

fn thread(thread: Option<u32>, paths: Vec<Vec<u64>>, samples: Vec<Sample>) -> SampledThread {
    SampledThread { thread, paths, samples, ..SampledThread::default() }
}

fn sample(ticks: u64, address: u64, path: Option<u32>) -> Sample {
    Sample { ticks, address, path, complete: path.is_some() }
}

/// What is found of ranks in a stretch.
fn found(ranks: Vec<Vec<SampledThread>>, modules: &[Module], stretch: (u64, u64)) -> CodeMetrics {
    let modules: Vec<&Module> = modules.iter().collect();
    let replacements = Replacements::new(&modules);
    let of_ranks = (0..).zip(ranks).map(|(rank, threads)| {
        let samples = RankSamples::new(threads, &replacements, Some(HZ));
        let parts = RankParts { rank, period_s: 1.0 / HZ, modules: modules.clone() };
        (parts, RankCounts::new(&samples, &[stretch], stretch == (0, u64::MAX)))
    });
    CodeMetrics::from_counts(of_ranks, &mut resolve)
}

const ALL: (u64, u64) = (0, u64::MAX);

impl CodeMetrics {
    /// Samples in a function itself, and in it or what it calls.
    fn samples_in(&self, rows: &[CodeRow], name: &str) -> (f64, f64) {
        let is_it = |row: &&CodeRow| match row.code {
            Code::Function(of) => self.functions[of as usize].name.as_deref() == Some(name),
            _ => false,
        };
        let row = rows.iter().find(is_it).unwrap_or_else(|| panic!("{name} has no row"));
        (row.self_s * HZ, row.total_s * HZ)
    }
}

#[test]
fn self_and_total_time_of_recursive_and_inlined_functions() {
    let modules = [module("app", 0x1000, 0)];
    // Returns into functions 3, 2, 2, 1: their calls lie before.
    let path = vec![0x1034, 0x1024, 0x1026, 0x1013];
    let samples = vec![
        sample(10, 0x1030, Some(0)),
        sample(20, 0x1048, Some(0)),
        sample(30, 0x1048, Some(0)),
        sample(90, 0x1010, Some(1)),
    ];
    let of = found(vec![vec![thread(Some(0), vec![path, vec![]], samples)]], &modules, (0, 50));
    let samples = |name| of.samples_in(&of.all, name);
    assert_eq!(samples("app_3"), (1.0, 3.0));
    assert_eq!(samples("app_2"), (0.0, 3.0));
    assert_eq!(samples("inlined"), (2.0, 2.0));
    assert_eq!(samples("app_4"), (0.0, 2.0));
    assert_eq!(samples("app_1"), (0.0, 3.0));
    let line = |name: &str| {
        let is_it = |function: &Function| function.name.as_deref() == Some(name);
        of.lines[of.functions.iter().position(is_it).unwrap()]
    };
    assert_eq!((line("inlined"), line("app_3"), line("app_4")), (Some(99), Some(0), Some(8)));
}

#[test]
fn interpreted_functions_have_the_lines_of_their_calls() {
    let python = |number: u32, name: &str| {
        let begin = interpreted(number, 0);
        let (path, identity) = ("/home/ada/heat.py".to_owned(), format!("python {name}"));
        Module { path, identity, base: begin, begin, end: interpreted(number + 1, 0), ticks: 0 }
    };
    let modules = [python(0, "<module>"), python(7, "solve"), module("long_add", 0x1000, 0)];
    let path = vec![interpreted(7, 42), interpreted(0, 60)];
    let samples = vec![sample(1, 0x1010, Some(0)), sample(2, interpreted(7, 43), Some(1))];
    let threads = vec![thread(Some(0), vec![path.clone(), path[1..].to_vec()], samples)];
    let modules_ref: Vec<&Module> = modules.iter().collect();
    let counts = RankCounts::new(
        &RankSamples::new(threads, &Replacements::new(&modules_ref), None),
        &[ALL],
        true,
    );
    let parts = RankParts { rank: 0, period_s: 1.0 / HZ, modules: modules_ref };
    let mut symbols = Symbols::default();
    let mut resolve = |path: &str, id: &str, address| symbols.frames(path, id, address);
    let of = CodeMetrics::from_counts([(parts, counts)].into_iter(), &mut resolve);
    assert_eq!(of.samples_in(&of.all, "solve"), (1.0, 2.0));
    assert_eq!(of.samples_in(&of.all, "<module>"), (0.0, 2.0));
    let solve = of.functions.iter().position(|of| of.name.as_deref() == Some("solve")).unwrap();
    assert_eq!(of.functions[solve].module, "/home/ada/heat.py");
    assert_eq!(of.lines[solve], Some(43), "where it is itself");
    let lines: Vec<Option<u32>> =
        of.ranks[0].stacks.places(0).skip(1).map(|(_, line)| line).collect();
    assert_eq!(lines, [Some(42), Some(60)]);
}

#[test]
fn what_has_no_function_has_rows_of_its_own() {
    let modules = [module("app", 0x1000, 0)];
    let samples =
        vec![sample(1, 0x9000, Some(0)), sample(2, 0x1000, None), sample(3, 0x1000, Some(0))];
    let mut of_thread = thread(None, vec![vec![]], samples);
    (of_thread.cpu_ns, of_thread.delivered, of_thread.lost) = (100_000_000, 5, 2);
    let of = found(vec![vec![of_thread]], &modules, ALL);
    let row = |code| {
        let row = of.all.iter().find(|row| row.code == code).expect("a row");
        ((row.self_s * HZ).round(), (row.total_s * HZ).round())
    };
    let unknown = of.functions.iter().position(|of| *of == Function::default()).expect("unknown");
    assert_eq!(row(Code::Function(unknown as u32)), (1.0, 1.0));
    assert_eq!(row(Code::CutStacks), (0.0, 1.0));
    // Ten ticks of the timer, of which five found the thread in the program or in MPI.
    assert_eq!(row(Code::Kernel), (5.0, 5.0));
    assert_eq!(row(Code::Lost), (2.0, 2.0));
    assert_eq!(of.samples_in(&of.all, "app_0"), (2.0, 2.0));
}

#[test]
fn ranks_and_threads_have_their_own_times() {
    let modules = [module("app", 0x1000, 0)];
    let of_thread = |number, count: u64| {
        thread(number, vec![vec![]], (0..count).map(|at| sample(at, 0x1000, Some(0))).collect())
    };
    let ranks = vec![vec![of_thread(Some(0), 3), of_thread(None, 5)], vec![of_thread(Some(0), 7)]];
    let of = found(ranks, &modules, ALL);
    let count = |rows: &[CodeRow]| of.samples_in(rows, "app_0").0.round();
    assert_eq!(count(&of.all), 15.0);
    assert_eq!([0, 1].map(|rank| count(&of.ranks[rank].rows)), [8.0, 7.0]);
    let threads = &of.ranks[0].threads;
    assert_eq!(
        threads.iter().map(|(of, rows)| (*of, count(rows))).collect::<Vec<_>>(),
        [(Some(0), 3.0), (None, 5.0)]
    );
    assert!(of.ranks[1].threads.is_empty());
}

#[test]
fn a_library_in_place_of_another_has_its_own_functions() {
    let modules = [module("a", 0x1000, 0), module("b", 0x1000, 50), module("late", 0x5000, 90)];
    let samples = vec![
        sample(10, 0x1000, Some(0)),
        sample(60, 0x1000, Some(0)),
        sample(70, 0x1000, Some(0)),
        // Loaded by then, but listed later.
        sample(80, 0x5000, Some(0)),
    ];
    let of = found(vec![vec![thread(Some(0), vec![vec![]], samples)]], &modules, ALL);
    let samples = |name| of.samples_in(&of.all, name).0.round();
    assert_eq!(["a_0", "b_0", "late_0"].map(samples), [1.0, 2.0, 1.0]);
}

#[test]
fn errors_are_those_of_the_binomial_distribution() {
    let modules = [module("app", 0x1000, 0)];
    let (mut squares, mut count, mut worst) = (0.0, 0, 0.0f64);
    for seed in 0..20 {
        let mut random = fastrand::Rng::with_seed(seed);
        let weights: Vec<f64> = (0..40).map(|_| 0.05 + random.f64()).collect();
        let all: f64 = weights.iter().sum();
        let draw = |random: &mut fastrand::Rng| {
            let mut left = random.f64() * all;
            weights
                .iter()
                .position(|weight| {
                    left -= weight;
                    left < 0.0
                })
                .unwrap_or(39) as u64
        };
        let samples: Vec<Sample> =
            (0..4_800).map(|at| sample(at, 0x1000 + 16 * draw(&mut random), Some(0))).collect();
        let of = found(vec![vec![thread(Some(0), vec![vec![]], samples)]], &modules, ALL);
        for row in &of.all {
            let Code::Function(function) = row.code else { continue };
            let name = of.functions[function as usize].name.as_deref().expect("a name");
            let number: usize = name.trim_start_matches("app_").parse().expect("a number");
            let z = (row.self_s - 48.0 * weights[number] / all) / row.error_s;
            (squares, count, worst) = (squares + z * z, count + 1, worst.max(z.abs()));
        }
    }
    let rms = (squares / f64::from(count)).sqrt();
    assert!((0.9..1.1).contains(&rms) && worst < 4.5, "rms z {rms}, worst {worst}");
}
