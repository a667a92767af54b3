//! The functions of parts of a run: of each region, phase and group of iterations, and of threads.
//!
//! Of slow iterations, the samples in a function and what it calls are compared with those of the other iterations of
//! the phase: if all iterations took equally long in it, each sample would lie in a slow one with their share of all.
//! Those functions are told for which chance is refused by Holm's method, with an error of 1 % for all functions of all
//! phases together.

use std::collections::BTreeMap;

use crate::causes::{Causes, Phase};
use crate::metrics::code::{Code, CodeMetrics, CodeRow};
use crate::statistics::{holm, successes_by_chance};

use super::evidence::Evidence;
use super::functions::ALPHA;

/// Share of the time that functions from which nearly all others are called have with these, and the share that lies in
/// them alone at most. That they take longer where anything does says nothing.
const NEARLY_ALL: f64 = 0.95;
const HARDLY_ANY: f64 = 0.05;

/// A part of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartKind<'a> {
    /// By its name.
    Region(&'a str),
    /// By its index among the phases.
    Phase(usize),
    /// Of the phase with this index.
    SlowIterations(usize),
    /// The same.
    OtherIterations(usize),
    /// The threads with a number, of all ranks; `None`: those that never called MPI.
    Threads(Option<u32>),
}

/// By how much a function takes longer in a slow iteration than in others.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LongerInSlow {
    /// Seconds of an iteration, over all ranks, in the function and what it calls.
    pub seconds: f64,
    /// Standard error.
    pub error_s: f64,
}

/// What a part of a run was sampled in.
#[derive(Debug, Clone, PartialEq)]
pub struct CodePart<'a> {
    pub kind: PartKind<'a>,
    /// How often it occurs, on all threads of a region; number of iterations. `None` of threads.
    pub times: Option<u64>,
    /// Most time first.
    pub rows: Vec<CodeRow>,
    /// Of slow iterations, those functions that take longer in them with certainty, but for those that call nearly all
    /// others.
    pub longer: BTreeMap<Code, LongerInSlow>,
}

impl<'a> CodePart<'a> {
    fn new(kind: PartKind<'a>, times: Option<u64>, rows: Vec<CodeRow>) -> Self {
        Self { kind, times, rows, longer: BTreeMap::new() }
    }

    /// Seconds of its samples.
    pub fn sampled_s(&self) -> f64 {
        let sampled = self.rows.iter().filter(|row| row.code != Code::Kernel);
        sampled.map(|row| row.self_s).sum()
    }

    /// Seconds of an iteration in a function and what it calls, over all ranks; `None` of what are no iterations.
    pub fn each_s(&self, row: &CodeRow) -> Option<f64> {
        let times = self.times.filter(|times| *times > 0)?;
        match self.kind {
            PartKind::Region(_) | PartKind::Threads(_) => None,
            _ => Some(row.total_s / times as f64),
        }
    }

    /// The functions that say most of it: of slow iterations first those that make them slow, then those with at least a
    /// share of its time.
    pub fn main(&self, share: f64) -> Vec<&CodeRow> {
        let least_s = share * self.sampled_s();
        let is_notable = |row: &&CodeRow| row.self_s >= least_s && row.self_s > 0.0;
        let longer_s = |row: &CodeRow| self.longer.get(&row.code).map_or(0.0, |of| of.seconds);
        let is_main = |row: &&CodeRow| is_notable(row) || longer_s(row) > 0.0;
        let mut main: Vec<&CodeRow> = self.rows.iter().filter(is_main).collect();
        // Stable: rows are ordered by time.
        main.sort_by(|a, b| longer_s(b).total_cmp(&longer_s(a)));
        main
    }

    /// The parts of a run that have samples: regions, the longest first; phases, the longest first, each before its
    /// slow iterations; threads, if several of a rank were sampled. Of a selection, only threads.
    pub fn all(of: &Evidence<'a>) -> Vec<Self> {
        let Some(code) = &of.metrics.code else { return Vec::new() };
        let whole = of.causes.filter(|causes| causes.part.is_none());
        let mut parts: Vec<Self> = whole.map(|causes| of_causes(causes, code)).unwrap_or_default();
        let mut threads: Vec<_> = code.by_thread().into_iter().collect();
        threads.sort_by_key(|(number, _)| number.is_none());
        let threads = threads.into_iter();
        parts
            .extend(threads.map(|(number, rows)| Self::new(PartKind::Threads(number), None, rows)));
        parts.retain(|part| !part.rows.is_empty());
        parts
    }
}

fn of_causes<'a>(causes: &'a Causes, code: &CodeMetrics) -> Vec<CodePart<'a>> {
    let regions = causes.regions.all.iter().map(|region| {
        let samples = region.samples.iter().map(|(position, counts)| (*position, counts));
        let (kind, times) = (PartKind::Region(&region.name), Some(region.count));
        CodePart::new(kind, times, code.in_part(samples))
    });
    let mut parts: Vec<CodePart> = regions.collect();
    let mut compared = Vec::new();
    for (number, phase) in causes.phases.iter().enumerate() {
        let [all, slow, others] = of_phase(code, number, phase);
        parts.push(all);
        if slow.rows.is_empty() || others.rows.is_empty() {
            continue;
        }
        let others_s = others.sampled_s();
        let calls_nearly_all = |row: &CodeRow| {
            let of = others.rows.iter().find(|other| other.code == row.code);
            of.is_some_and(|of| {
                of.total_s >= NEARLY_ALL * others_s && of.self_s <= HARDLY_ANY * of.total_s
            })
        };
        let functions = slow.rows.iter().filter(|row| matches!(row.code, Code::Function(_)));
        let of_phase = functions.filter(|row| !calls_nearly_all(row));
        compared.extend(
            of_phase.map(|row| (parts.len(), row.code, compare(code, (&slow, &others), row))),
        );
        parts.extend([slow, others]);
    }
    let by_chance: Vec<f64> = compared.iter().map(|(.., (_, by_chance))| *by_chance).collect();
    let refused = holm(&by_chance, ALPHA);
    for ((at, of, (longer, _)), refused) in compared.into_iter().zip(refused) {
        if refused {
            parts[at].longer.insert(of, longer);
        }
    }
    parts
}

/// A phase, its slow iterations and the others.
fn of_phase<'a>(code: &CodeMetrics, number: usize, phase: &Phase) -> [CodePart<'a>; 3] {
    let (slow, others) = (&phase.samples.slow, &phase.samples.others);
    let slow_iterations = if slow.is_empty() { 0 } else { phase.statistics().slow.len() as u64 };
    let iterations = phase.iterations.len() as u64;
    let [slow, others] = [slow, others].map(|of| of.iter().enumerate());
    [
        CodePart::new(
            PartKind::Phase(number),
            Some(iterations),
            code.in_part(slow.clone().chain(others.clone())),
        ),
        CodePart::new(PartKind::SlowIterations(number), Some(slow_iterations), code.in_part(slow)),
        CodePart::new(
            PartKind::OtherIterations(number),
            Some(iterations - slow_iterations),
            code.in_part(others),
        ),
    ]
}

/// By how much a row of slow iterations is longer than that of the others, and how likely chance alone makes it so.
fn compare(
    code: &CodeMetrics,
    (slow, others): (&CodePart, &CodePart),
    row: &CodeRow,
) -> (LongerInSlow, f64) {
    let other = others.rows.iter().find(|other| other.code == row.code);
    let other_s = other.map_or(0.0, |row| row.total_s);
    let [slow, others] = [slow, others].map(|part| part.times.unwrap_or(0).max(1) as f64);
    let period_s = code.ranks.iter().map(|rank| rank.period_s).fold(0.0, f64::max);
    let share = slow / (slow + others);
    // How many samples lie in an iteration is a matter of chance, too, so that their number has its own variance.
    let error_s = |seconds: f64| (seconds * period_s).sqrt();
    let longer = LongerInSlow {
        seconds: row.total_s / slow - other_s / others,
        error_s: (error_s(row.total_s) / slow).hypot(error_s(other_s) / others),
    };
    (longer, successes_by_chance(row.total_s / period_s, other_s / period_s, share))
}
