//! What each change would win.

use std::collections::BTreeMap;

use super::backward::{Path, critical_path};
use super::calibrate::{Calibration, calibrate};
use super::change::Change;
use super::forward::{Conditions, Replayed, replay};
use super::graph::{Graph, GraphLine, Op, OpNumber};
use super::network::{Network, Placement};
use crate::causes::Context;

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

impl Answer {
    /// In nine of ten cases the time lies in it, seconds.
    pub fn interval_s(&self) -> (f64, f64) {
        ((self.elapsed_s - self.uncertain_s).max(0.0), self.elapsed_s + self.uncertain_s)
    }
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

/// How much two runs of the same program differ, and how far a change of computation and one of transfers was wrong, in
/// nine of ten cases (docs/measurements/accuracy.md says where this was measured).
const OF_RUNS: f64 = 0.012;
const OF_COMPUTATION: f64 = 0.1;
const OF_TRANSFERS: f64 = 0.25;

/// A stretch of computation is noise when it is so many median deviations longer than the median of its kind …
const NOISE_DEVIATIONS: f64 = 8.0;
/// … and by at least so many seconds, …
const LEAST_NOISE_S: f64 = 20e-6;
/// … all such are at most this part of their kind's time (else they are work of another size), …
const MOST_NOISE: f64 = 0.1;
/// … and there are so many of its kind.
const LEAST_OF_A_KIND: usize = 20;

fn as_recorded(_number: OpNumber, op: &Op) -> (f64, f64) {
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
        let own = |line: &GraphLine| {
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
        let (replayed, _) = self.replayed_with(changes);
        let elapsed_s = replayed.elapsed_s * self.correction();
        let uncertain_s = self.uncertainty(elapsed_s, changes);
        Answer { changes: changes.to_vec(), elapsed_s, uncertain_s, released: replayed.released }
    }

    /// What all times of a replay are multiplied by: what the self-replay is wrong by is taken to be the same then.
    pub(super) fn correction(&self) -> f64 {
        self.graph.elapsed_s / self.replayed.elapsed_s
    }

    /// The replay with some changes, and what passes before each operation, seconds.
    pub(super) fn replayed_with(&self, changes: &[Change]) -> (Replayed, Vec<f64>) {
        let graph = &self.graph;
        let mapped = changes.iter().find_map(|change| match change {
            Change::Placement(mapping) => Some(Placement::mapped(graph, mapping)),
            _ => None,
        });
        let placement = mapped.as_ref().unwrap_or(&self.placement);
        let mut network = self.calibration.network;
        let mut library = 1.0;
        // Computation before each operation.
        let mut own: Vec<f64> = graph.ops.iter().map(|op| op.own_s).collect();
        for change in changes {
            match change {
                Change::IdealNetwork => {
                    (network, library) = (Network::ideal(network.eager_bytes), 0.0);
                }
                Change::Latency(factor) => network.latency = network.latency.map(|l| l * factor),
                Change::Bandwidth(factor) => {
                    network.per_byte = network.per_byte.map(|g| g / factor);
                    // Within a host the copies are the transfer.
                    if placement.is_one_host() {
                        network.overhead_per_byte /= factor;
                    }
                }
                Change::Overhead(factor) => {
                    network.overhead *= factor;
                    network.overhead_per_byte *= factor;
                }
                Change::Network(other) => network = other.network,
                Change::Placement(_) => {}
                Change::RankSpeed(position, speed) => {
                    for line in graph.lines.iter().filter(|line| line.position == *position) {
                        self.scale(&mut own, line, 1.0 / speed);
                    }
                }
                Change::RegionSpeed(name, speed) => {
                    for (own, op) in own.iter_mut().zip(&graph.ops) {
                        if self.is_region(op.context as usize, name) {
                            *own /= speed;
                        }
                    }
                }
                Change::Balance(region) => self.balance(&mut own, region.as_deref()),
                Change::MedianRank => {
                    let mut sums = self.own.clone();
                    let middle = median(&mut sums);
                    for (line, sum) in graph.lines.iter().zip(&self.own) {
                        if *sum > middle {
                            self.scale(&mut own, line, middle / sum);
                        }
                    }
                }
                Change::NoNoise => self.quieten(&mut own),
            }
        }
        let pace =
            |number: OpNumber, op: &Op| (own[number as usize], f64::from(op.library_s) * library);
        let replayed = replay(graph, &Conditions { network: &network, placement, pace });
        for (own, op) in own.iter_mut().zip(&graph.ops) {
            *own += f64::from(op.library_s) * library;
        }
        (replayed, own)
    }

    /// Multiplies a line's computation; calls that are replayed as they were are nobody's.
    fn scale(&self, own: &mut [f64], line: &GraphLine, factor: f64) {
        for number in line.ops.clone() {
            if self.computes(number) {
                own[number as usize] *= factor;
            }
        }
    }

    fn computes(&self, op: OpNumber) -> bool {
        self.graph.contexts.get(self.graph.ops[op as usize].context).is_computing()
    }

    /// How far an answer may be off, at 90 %.
    fn uncertainty(&self, elapsed_s: f64, changes: &[Change]) -> f64 {
        let difference = elapsed_s - self.graph.elapsed_s;
        let of_change = match changes.iter().any(Change::is_of_transfers) {
            true => OF_TRANSFERS,
            false => OF_COMPUTATION,
        };
        let parts =
            [self.calibration.error * elapsed_s, OF_RUNS * elapsed_s, of_change * difference];
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

    /// Gives all lines that compute in a context as much: each time their mean, where all are in it equally often, else
    /// in sum.
    fn balance(&self, own: &mut [f64], region: Option<&str>) {
        let counts = |context: &Context| match region {
            Some(name) => matches!(context, Context::Region(other) if other == name),
            None => context.is_computing(),
        };
        let counts: Vec<bool> = self.graph.contexts.all.iter().map(counts).collect();
        // By context the operations of each line that is in it.
        let mut contexts: BTreeMap<u32, Vec<Vec<usize>>> = BTreeMap::new();
        for line in &self.graph.lines {
            for (context, ops) in self.by_context(line, |context| counts[context as usize]) {
                contexts.entry(context).or_default().push(ops);
            }
        }
        for lines in contexts.values() {
            let Some(first) = lines.first().map(Vec::len) else { continue };
            let all = lines.len() as f64;
            if lines.iter().all(|ops| ops.len() == first) {
                for time in 0..first {
                    let mean = lines.iter().map(|ops| own[ops[time]]).sum::<f64>() / all;
                    lines.iter().for_each(|ops| own[ops[time]] = mean);
                }
                continue;
            }
            let sums = lines.iter().map(|ops| ops.iter().map(|op| own[*op]).sum::<f64>());
            let sums: Vec<f64> = sums.collect();
            let mean = sums.iter().sum::<f64>() / all;
            for (ops, sum) in lines.iter().zip(&sums).filter(|(_, sum)| **sum > 0.0) {
                ops.iter().for_each(|op| own[*op] *= mean / sum);
            }
        }
    }

    /// The operations of a line by context, of those that count.
    fn by_context(
        &self,
        line: &GraphLine,
        counts: impl Fn(u32) -> bool,
    ) -> BTreeMap<u32, Vec<usize>> {
        let mut contexts: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for op in line.ops.clone() {
            let context = self.graph.ops[op as usize].context;
            if counts(context) {
                contexts.entry(context).or_default().push(op as usize);
            }
        }
        contexts
    }

    /// Cuts stretches that are far longer than others of their kind down to the median of these.
    fn quieten(&self, own: &mut [f64]) {
        for line in &self.graph.lines {
            let computes = |context| self.graph.contexts.get(context).is_computing();
            let kinds = self.by_context(line, computes);
            for ops in kinds.values().filter(|ops| ops.len() >= LEAST_OF_A_KIND) {
                let mut lengths: Vec<f64> = ops.iter().map(|op| own[*op]).collect();
                let middle = median(&mut lengths);
                lengths.iter_mut().for_each(|length| *length = (*length - middle).abs());
                let noise = (NOISE_DEVIATIONS * median(&mut lengths)).max(LEAST_NOISE_S);
                let over = lengths.iter().filter(|deviation| **deviation > noise).sum::<f64>();
                if over > MOST_NOISE * middle * lengths.len() as f64 {
                    continue;
                }
                for op in ops {
                    let length = &mut own[*op];
                    if *length > middle + noise {
                        *length = middle;
                    }
                }
            }
        }
    }

    /// The network that counts: between hosts where there are several.
    pub fn hop(&self) -> usize {
        self.placement.counts() as usize
    }

    /// Whether the run shows what messages cost within hosts, and between them.
    pub fn shows(&self) -> [bool; 2] {
        let samples = self.calibration.samples;
        let [within, between] = self.placement.levels();
        match samples.transfers {
            // Collective operations tell where all of them go over one level.
            [0, 0] => {
                [within && !between, between && !within].map(|is| is && samples.collectives > 0)
            }
            messages => messages.map(|count| count > 0),
        }
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
