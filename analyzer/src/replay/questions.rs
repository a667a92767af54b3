//! The changes that can be asked for, and what each would win.

use std::collections::BTreeMap;

use super::backward::{Path, critical_path};
use super::calibrate::{Calibration, calibrate};
use super::forward::{Conditions, Replayed, replay};
use super::graph::{Graph, Op};
use super::network::{Network, Placement};
use crate::causes::Context;

/// Something that is different.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// No transfer, and no call that needs nobody, takes any time.
    IdealNetwork,
    /// All latencies times a factor.
    Latency(f64),
    /// All bandwidths times a factor.
    Bandwidth(f64),
    /// Time of the processor for transfers, times a factor.
    Overhead(f64),
    /// Another network, as it stands.
    Network(Network),
    /// Ranks on other hosts: that of each rank, by its position in the run.
    Placement(Vec<u32>),
    /// The rank at a position computes so many times as fast.
    RankSpeed(usize, f64),
    /// A region is computed so many times as fast, on all ranks.
    RegionSpeed(String, f64),
    /// All ranks take as long for a region as their mean; without a name for all computation.
    Balance(Option<String>),
    /// No rank takes longer for its computation than the median of all does.
    MedianRank,
    /// Stretches of computation that were far longer than others of their kind were as long as their median.
    NoNoise,
}

/// What a change would do.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// What is different.
    pub changes: Vec<Change>,
    /// Time of the run then, seconds.
    pub elapsed_s: f64,
    /// In nine of ten cases the time lies so near.
    pub uncertain_s: f64,
    /// Calls that went on although what they needed never came.
    pub released: u64,
}

/// A run whose replay is known to be right or wrong, ready for questions.
#[derive(Debug)]
pub struct WhatIf<'a> {
    /// The run as a graph.
    pub graph: Graph<'a>,
    /// Its hosts.
    pub placement: Placement,
    /// Its network.
    pub calibration: Calibration,
    /// The self-replay.
    pub replayed: Replayed,
    /// What its critical path consists of.
    pub path: Path,
    /// Own seconds by line, of the whole run.
    own: Vec<f64>,
}

/// Error of the self-replay above which nothing is promised.
pub const MOST_ERROR: f64 = 0.03;

/// How much two runs of the same program differ, and how far a change was wrong, in nine of ten cases
/// (docs/whatif.md says where this was measured).
const OF_RUNS: f64 = 0.02;
const OF_CHANGES: f64 = 0.15;

/// A stretch of computation is noise when it is so many median deviations longer than the median of its kind …
const NOISE_DEVIATIONS: f64 = 8.0;
/// … and by at least so many seconds, …
const LEAST_NOISE_S: f64 = 20e-6;
/// … all such are at most this part of their kind's time (else they are work of another size), …
const MOST_NOISE: f64 = 0.1;
/// … and there are so many of its kind.
const LEAST_OF_A_KIND: usize = 20;

fn as_recorded(_line: u32, op: &Op) -> (f64, f64) {
    (op.own_s, f64::from(op.library_s))
}

fn median(values: &mut [f64]) -> f64 {
    let middle = values.len() / 2;
    *values.select_nth_unstable_by(middle, f64::total_cmp).1
}

impl<'a> WhatIf<'a> {
    /// Of a graph.
    pub fn new(graph: Graph<'a>) -> Self {
        let placement = Placement::recorded(&graph);
        let calibration = calibrate(&graph, &placement);
        let network = &calibration.network;
        let conditions = Conditions { network, placement: &placement, pace: as_recorded };
        let replayed = replay(&graph, &conditions);
        let path = critical_path(&graph, &conditions, &replayed);
        let own = |line: &super::GraphLine| {
            graph.ops[line.ops.start as usize..line.ops.end as usize]
                .iter()
                .map(|op| op.own_s)
                .sum()
        };
        let own = graph.lines.iter().map(own).collect();
        Self { graph, placement, calibration, replayed, path, own }
    }

    /// Whether its replay is near enough to the run.
    pub fn is_right(&self) -> bool {
        self.calibration.error.abs() <= MOST_ERROR
    }

    /// T₀ of the efficiency tree: the run's time on an ideal network over that of the self-replay, of one.
    pub fn ideal(&self) -> f64 {
        self.ask(&[Change::IdealNetwork]).elapsed_s / self.graph.elapsed_s
    }

    /// The time of the run with some changes.
    pub fn ask(&self, changes: &[Change]) -> Answer {
        let graph = &self.graph;
        let mut network = self.calibration.network;
        let mut placement = None;
        let mut library = 1.0;
        // Factors by line and by context, and ceilings of single stretches by both.
        let mut by_line = vec![1.0; graph.lines.len()];
        let contexts = graph.contexts.all.len();
        // Calls that are replayed as they were are nobody's computation.
        let computes: Vec<bool> = graph.contexts.all.iter().map(Context::is_computing).collect();
        let mut by_both: Option<Vec<f64>> = None;
        let mut ceilings: Option<Vec<(f64, f64)>> = None;
        for change in changes {
            match change {
                Change::IdealNetwork => {
                    (network, library) = (Network::ideal(network.eager_bytes), 0.0);
                }
                Change::Latency(factor) => network.latency = network.latency.map(|l| l * factor),
                Change::Bandwidth(factor) => {
                    network.per_byte = network.per_byte.map(|g| g / factor);
                    // Within a host the copies are the transfer.
                    if self.placement.is_one_host() {
                        network.overhead_per_byte /= factor;
                    }
                }
                Change::Overhead(factor) => {
                    network.overhead *= factor;
                    network.overhead_per_byte *= factor;
                }
                Change::Network(other) => network = *other,
                Change::Placement(hosts) => {
                    let host = |line: &super::GraphLine| hosts[line.position];
                    let hosts = graph.lines.iter().map(host).collect();
                    placement = Some(Placement::new(graph, hosts));
                }
                Change::RankSpeed(position, speed) => {
                    for (line, factor) in graph.lines.iter().zip(&mut by_line) {
                        if line.position == *position {
                            *factor /= speed;
                        }
                    }
                }
                Change::RegionSpeed(name, speed) => {
                    let factors =
                        by_both.get_or_insert_with(|| vec![1.0; graph.lines.len() * contexts]);
                    for context in (0..contexts).filter(|at| self.is_region(*at, name)) {
                        let of_lines = factors.iter_mut().skip(context).step_by(contexts);
                        of_lines.for_each(|factor| *factor /= speed);
                    }
                }
                Change::Balance(region) => {
                    let factors =
                        by_both.get_or_insert_with(|| vec![1.0; graph.lines.len() * contexts]);
                    self.balance(region.as_deref(), factors);
                }
                Change::MedianRank => {
                    let mut own = self.own.clone();
                    let middle = median(&mut own);
                    for (factor, own) in by_line.iter_mut().zip(&self.own) {
                        if *own > middle {
                            *factor *= middle / own;
                        }
                    }
                }
                Change::NoNoise => ceilings = Some(self.ceilings()),
            }
        }
        let pace = |line: u32, op: &Op| {
            let library_s = f64::from(op.library_s) * library;
            if !computes[op.context as usize] {
                return (op.own_s, library_s);
            }
            let both = line as usize * contexts + op.context as usize;
            let mut own = op.own_s;
            if let Some(ceilings) = &ceilings
                && own > ceilings[both].0
            {
                own = ceilings[both].1;
            }
            own *= by_line[line as usize];
            if let Some(factors) = &by_both {
                own *= factors[both];
            }
            (own, library_s)
        };
        let placement = placement.as_ref().unwrap_or(&self.placement);
        let replayed = replay(graph, &Conditions { network: &network, placement, pace });
        // What the self-replay is wrong by is taken to be the same then.
        let elapsed_s = replayed.elapsed_s * graph.elapsed_s / self.replayed.elapsed_s;
        let uncertain_s = self.uncertainty(elapsed_s);
        Answer { changes: changes.to_vec(), elapsed_s, uncertain_s, released: replayed.released }
    }

    /// How far an answer may be off, at 90 %.
    fn uncertainty(&self, elapsed_s: f64) -> f64 {
        let difference = elapsed_s - self.graph.elapsed_s;
        let parts =
            [self.calibration.error * elapsed_s, OF_RUNS * elapsed_s, OF_CHANGES * difference];
        parts.iter().map(|part| part * part).sum::<f64>().sqrt()
    }

    /// Names of the run's regions in which ranks compute.
    pub fn regions(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for context in &self.graph.contexts.all {
            if let Context::Region(name) = context {
                names.push(name);
            }
        }
        names
    }

    /// Seconds of a region on the critical path of the self-replay.
    pub fn on_path(&self, region: &str) -> f64 {
        let of_region = |context: &usize| self.is_region(*context, region);
        let contexts = (0..self.path.by_context.len()).filter(of_region);
        contexts.map(|context| self.path.by_context[context]).sum()
    }

    fn is_region(&self, context: usize, name: &str) -> bool {
        matches!(&self.graph.contexts.all[context], Context::Region(other) if other == name)
    }

    /// Multiplies the factors of a region, or of all computation, by what gives each rank the mean of all.
    fn balance(&self, region: Option<&str>, factors: &mut [f64]) {
        let contexts = self.graph.contexts.all.len();
        let counts = |context: usize| match region {
            Some(name) => self.is_region(context, name),
            None => self.graph.contexts.all[context].is_computing(),
        };
        let lines = self.graph.lines.iter();
        let sums: Vec<f64> = lines
            .map(|line| {
                let ops = &self.graph.ops[line.ops.start as usize..line.ops.end as usize];
                ops.iter().filter(|op| counts(op.context as usize)).map(|op| op.own_s).sum()
            })
            .collect();
        let busy: Vec<f64> = sums.iter().copied().filter(|sum| *sum > 0.0).collect();
        let mean = busy.iter().sum::<f64>() / busy.len().max(1) as f64;
        for (line, sum) in sums.iter().enumerate().filter(|(_, sum)| **sum > 0.0) {
            for context in (0..contexts).filter(|context| counts(*context)) {
                factors[line * contexts + context] *= mean / sum;
            }
        }
    }

    /// By line and context from when on a stretch is noise, and how long it is without.
    fn ceilings(&self) -> Vec<(f64, f64)> {
        let contexts = self.graph.contexts.all.len();
        let mut ceilings = vec![(f64::INFINITY, 0.0); self.graph.lines.len() * contexts];
        for (number, line) in self.graph.lines.iter().enumerate() {
            let ops = &self.graph.ops[line.ops.start as usize..line.ops.end as usize];
            let mut kinds: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
            for op in ops {
                kinds.entry(op.context).or_default().push(op.own_s);
            }
            for (context, mut lengths) in kinds {
                if lengths.len() < LEAST_OF_A_KIND {
                    continue;
                }
                let middle = median(&mut lengths);
                lengths.iter_mut().for_each(|length| *length = (*length - middle).abs());
                let noise = (NOISE_DEVIATIONS * median(&mut lengths)).max(LEAST_NOISE_S);
                let over = lengths.iter().filter(|deviation| **deviation > noise).sum::<f64>();
                if over <= MOST_NOISE * middle * lengths.len() as f64 {
                    ceilings[number * contexts + context as usize] = (middle + noise, middle);
                }
            }
        }
        ceilings
    }

    /// The network that counts: between hosts where there are several.
    pub fn hop(&self) -> usize {
        usize::from(!self.placement.is_one_host())
    }

    /// The questions that every run is asked.
    pub fn standard(&self) -> Vec<Vec<Change>> {
        let mut questions = vec![vec![Change::IdealNetwork]];
        let told_apart = self.calibration.samples.told_apart[self.hop()];
        for factor in [0.5, 2.0, 10.0] {
            match told_apart {
                true => {
                    questions.push(vec![Change::Latency(factor)]);
                    questions.push(vec![Change::Bandwidth(1.0 / factor)]);
                }
                // Where all messages are of a size, only both together say something.
                false => {
                    questions.push(vec![Change::Latency(factor), Change::Bandwidth(1.0 / factor)]);
                }
            }
        }
        questions.push(vec![Change::MedianRank]);
        questions.push(vec![Change::Balance(None)]);
        for region in self.regions() {
            questions.push(vec![Change::Balance(Some(region.to_owned()))]);
        }
        questions.push(vec![Change::NoNoise]);
        questions
    }

    /// The largest latency, within hosts or on a run on several between them, with which the run takes at most
    /// `slowdown` (say 0.01) longer than with its own; `None` where none makes it longer. Also the number of
    /// replays that this took.
    pub fn tolerated_latency(&self, slowdown: f64) -> (Option<f64>, u32) {
        let hop = self.hop();
        let aim = self.replayed.elapsed_s * (1.0 + slowdown);
        let at = |latency: f64| {
            let mut network = self.calibration.network;
            network.latency[hop] = latency;
            let conditions =
                Conditions { network: &network, placement: &self.placement, pace: as_recorded };
            let replayed = replay(&self.graph, &conditions);
            let path = critical_path(&self.graph, &conditions, &replayed);
            (replayed.elapsed_s, path.by_parameter[2 + hop])
        };
        let own = self.calibration.network.latency[hop];
        let mut passes = 0;
        // From the left the slope at a point never overshoots what a convex line does behind it: steps by it come
        // out at or beyond the aim.
        let mut latency = own;
        let (mut time, mut slope) = (self.replayed.elapsed_s, self.path.by_parameter[2 + hop]);
        while time < aim {
            latency = match slope > 0.0 {
                true => latency + (aim - time) / slope * (1.0 + 1e-9),
                false => latency.max(1e-9) * 8.0,
            };
            if latency > MOST_LATENCY_S || passes == MOST_PASSES {
                return (None, passes);
            }
            (time, slope) = at(latency);
            passes += 1;
        }
        // From the right Newton's steps stay on the right.
        while time > aim * (1.0 + 1e-3 * slowdown) && passes < MOST_PASSES {
            latency -= (time - aim) / slope;
            (time, slope) = at(latency);
            passes += 1;
        }
        (Some(latency), passes)
    }
}

/// Nobody's latency.
const MOST_LATENCY_S: f64 = 10.0;

/// Replays of a search at most.
const MOST_PASSES: u32 = 20;
