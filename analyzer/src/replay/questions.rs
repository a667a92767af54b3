//! Answers questions about a run: how long it would take with some changes.

use std::borrow::Cow;
use std::collections::BTreeMap;

use trace_format::meaning::{Class, Meaning};

use crate::causes::{Context, Part};
use crate::statistics::median;

use super::backward::{Path, critical_path};
use super::beside::shorten;
use super::calibrate::{MAX_ERROR, MAX_OFF_S, calibrate};
use super::change::Change;
use super::forward::{Conditions, Replayed, replay, replay_part};
use super::graph::{Graph, GraphLine, OpNumber};
use super::network::{Network, Placement};
use super::part::Bounds;
use super::what_if::{Answer, NoIdeal, PredictedTime, WhatIf};

/// Conditions of a replay that some changes make.
#[derive(Debug)]
struct Changed<'w> {
    network: Network,
    /// Factor of the time in the recorder and in calls that need no other rank.
    library: f64,
    /// If it differs from the recorded one.
    placement: Option<Placement>,
    /// Computation before each operation, seconds.
    own: Cow<'w, [f64]>,
}

impl Changed<'_> {
    fn conditions<'c>(&'c self, what_if: &'c WhatIf) -> Conditions<'c> {
        Conditions {
            network: &self.network,
            placement: self.placement.as_ref().unwrap_or(&what_if.placement),
            own: &self.own,
            library: self.library,
        }
    }
}

/// A network with some changes, for ranks on these hosts.
pub(super) fn changed_network(
    mut network: Network,
    changes: &[Change],
    placement: &Placement,
) -> Network {
    let asks_for_overhead = changes.iter().any(|change| matches!(change, Change::Overhead(_)));
    for change in changes {
        match change {
            Change::IdealNetwork => network = Network::ideal(network.eager_bytes),
            Change::Latency(factor) => network.latency = network.latency.map(|l| l * factor),
            Change::Bandwidth(factor) => {
                network.per_byte = network.per_byte.map(|g| g / factor);
                // Within a host, the copies are the transfer, unless they are asked for apart.
                if placement.is_one_host() && !asks_for_overhead {
                    network.overhead_per_byte /= factor;
                }
            }
            Change::Overhead(factor) => {
                network.overhead *= factor;
                network.overhead_per_byte *= factor;
            }
            Change::Network(other) => network = other.instead_of(&network),
            _ => {}
        }
    }
    network
}

/// A stretch of computation is noise if it is longer than the median of its kind by this many
/// median deviations …
const NOISE_DEVIATIONS: f64 = 8.0;
/// … and by at least this many seconds, …
const MIN_NOISE_S: f64 = 20e-6;
/// … if all such stretches together are at most this share of their kind's time (else they are work
/// of another size), …
const MAX_NOISE: f64 = 0.1;
/// … and if there are at least this many of its kind.
const MIN_OF_KIND: usize = 20;

impl<'a> WhatIf<'a> {
    /// Calibrates the network of a graph and replays it.
    pub fn new(mut graph: Graph<'a>) -> Self {
        let placement = Placement::recorded(&graph);
        let (calibration, replayed) = calibrate(&mut graph, &placement);
        let own = |line: &GraphLine| {
            graph.own[line.ops.start as usize..line.ops.end as usize].iter().sum()
        };
        let own = graph.lines.iter().map(own).collect();
        let (path, ideal) = Default::default();
        Self { graph, placement, calibration, replayed, path, own, ideal }
    }

    /// Frees what only replays need: what was found stays, but nothing more can be asked.
    pub fn free_operations(&mut self) {
        self.path();
        self.graph.free_operations();
        self.replayed.entered = Vec::new();
    }

    /// The critical path of the self-replay.
    pub fn path(&self) -> &Path {
        self.path.get_or_init(|| {
            let conditions = self.conditions(&self.calibration.network);
            critical_path(&self.graph, &conditions, &self.replayed)
        })
    }

    /// Whether the self-replay is accurate enough for answers, whose intervals contain its error.
    pub fn is_accurate(&self) -> bool {
        let off_s = self.replayed.elapsed_s - self.graph.elapsed_s;
        self.is_exact() || off_s.abs() <= MAX_OFF_S
    }

    /// Whether the self-replay is accurate enough for a figure without an interval.
    pub fn is_exact(&self) -> bool {
        self.calibration.error.abs() <= MAX_ERROR
    }

    /// T₀ of the efficiency tree, as a fraction: the run's time on an ideal network divided by its
    /// own.
    pub fn ideal(&self) -> f64 {
        self.on_ideal_network().elapsed_s / self.graph.elapsed_s
    }

    /// The same, if the self-replay is accurate enough.
    ///
    /// # Errors
    /// It is not.
    pub fn ideal_if_exact(&self) -> Result<f64, NoIdeal> {
        if self.is_exact() { Ok(self.ideal()) } else { Err(NoIdeal::Off(self.calibration.error)) }
    }

    /// The same of a part of the run, at whose bounds the graph was cut; or the relative error of
    /// the replay of that part.
    ///
    /// # Errors
    /// The error is too large.
    pub(super) fn ideal_of(&self, part: &Part) -> Result<f64, f64> {
        let bounds = Bounds::new(&self.graph, part);
        let length_with = |changes: &[Change]| {
            let changed = self.changed(changes);
            let ends = replay_part(&self.graph, &changed.conditions(self), &bounds);
            ends.length(&self.graph, part)
        };
        let (itself, ideal) =
            rayon::join(|| length_with(&[]), || length_with(&[Change::IdealNetwork]));
        let error = itself * self.graph.axis.0 / part.ticks.max(1) as f64 - 1.0;
        if error.abs() > MAX_ERROR { Err(error) } else { Ok(ideal / itself) }
    }

    /// Predicts the time of the run on an ideal network.
    pub fn on_ideal_network(&self) -> &Answer {
        self.ideal.get_or_init(|| self.predict(&[Change::IdealNetwork]))
    }

    /// Predicts the time of the run with some changes.
    pub fn ask(&self, changes: &[Change]) -> Answer {
        match changes {
            [Change::IdealNetwork] => self.on_ideal_network().clone(),
            _ => self.predict(changes),
        }
    }

    fn predict(&self, changes: &[Change]) -> Answer {
        let changed = self.changed(changes);
        let conditions = changed.conditions(self);
        let (replayed, _) = rayon::join(|| replay(&self.graph, &conditions), || self.path());
        let elapsed_s = replayed.elapsed_s * self.correction();
        let path = self
            .transfers_matter(changes)
            .then(|| critical_path(&self.graph, &conditions, &replayed));
        let asked = PredictedTime {
            changes,
            elapsed_s,
            network: &changed.network,
            path: path.as_ref(),
            placement: changed.placement.as_ref().unwrap_or(&self.placement),
            computing_s: self.longest_computation(&changed.own),
        };
        let divided_s = self.divided(&asked);
        let interval_s = self.interval(&asked, divided_s);
        let changes = changes.to_vec();
        Answer { changes, elapsed_s, interval_s, divided_s, released: replayed.released }
    }

    /// The longest computation of a line, seconds: no run is shorter.
    fn longest_computation(&self, own: &[f64]) -> f64 {
        let of_line = |line: &GraphLine| -> f64 {
            let computed = line.ops.clone().filter(|op| self.computes(*op));
            computed.map(|op| own[op as usize]).sum()
        };
        self.graph.lines.iter().map(of_line).fold(0.0, f64::max)
    }

    /// The factor for all times of a replay: its relative error is assumed to be that of the
    /// self-replay.
    pub(super) fn correction(&self) -> f64 {
        self.graph.elapsed_s / self.replayed.elapsed_s
    }

    /// Replays with some changes; also returns the time before each operation, seconds.
    pub(super) fn replayed_with(&self, changes: &[Change]) -> (Replayed, Vec<f64>) {
        let changed = self.changed(changes);
        let replayed = replay(&self.graph, &changed.conditions(self));
        let Changed { own, library, .. } = changed;
        let mut own = own.into_owned();
        for (own, op) in own.iter_mut().zip(&self.graph.ops) {
            *own += f64::from(op.library_s) * library;
        }
        (replayed, own)
    }

    /// The conditions that some changes make.
    fn changed(&self, changes: &[Change]) -> Changed<'_> {
        let graph = &self.graph;
        let placement = changes.iter().find_map(|change| match change {
            Change::Placement(mapping) => Some(Placement::mapped(graph, mapping)),
            _ => None,
        });
        let on = placement.as_ref().unwrap_or(&self.placement);
        let network = changed_network(self.calibration.network, changes, on);
        let mut library = 1.0;
        // Computation before each operation, seconds.
        let mut own = Cow::from(&graph.own);
        for change in changes {
            match change {
                Change::IdealNetwork => library = 0.0,
                Change::Latency(_)
                | Change::Bandwidth(_)
                | Change::Overhead(_)
                | Change::Network(_)
                | Change::Placement(_) => {}
                Change::RankSpeed(position, speed) => {
                    for line in graph.lines.iter().filter(|line| line.position == *position) {
                        self.scale(own.to_mut(), line, 1.0 / speed);
                    }
                }
                Change::RegionSpeed(name, speed) => {
                    for (own, op) in own.to_mut().iter_mut().zip(&graph.ops) {
                        if self.is_region(op.context as usize, name) {
                            *own /= speed;
                        }
                    }
                }
                Change::Balance(region) => self.balance(own.to_mut(), region.as_deref()),
                Change::MedianRank => {
                    let sums = self.own_of_ranks();
                    let middle = median(&mut sums.clone()).unwrap_or(0.0);
                    for line in &graph.lines {
                        let sum = sums[line.position];
                        if sum > middle {
                            self.scale(own.to_mut(), line, middle / sum);
                        }
                    }
                }
                Change::NoNoise => self.remove_noise(own.to_mut()),
                Change::BalancedThreads => shorten(own.to_mut(), &graph.beside.threads, 1.0),
                Change::FileSpeed(speed) => {
                    shorten(own.to_mut(), &graph.beside.files, 1.0 - 1.0 / speed);
                }
            }
        }
        let is_ideal = changes.contains(&Change::IdealNetwork);
        if !is_ideal && changes.iter().any(Change::affects_transfers) {
            self.scale_creation(&mut own, &network, on);
        }
        Changed { network, library, placement, own }
    }

    /// Seconds of computation of each rank, by position: those of the thread that computes longest.
    fn own_of_ranks(&self) -> Vec<f64> {
        let mut seconds = vec![0.0f64; self.graph.run.ranks.len()];
        for (line, own) in self.graph.lines.iter().zip(&self.own) {
            seconds[line.position] = seconds[line.position].max(*own);
        }
        seconds
    }

    /// Calls that make communicators consist of small messages: they take as many times as long as
    /// one of these.
    fn scale_creation(&self, own: &mut Cow<[f64]>, network: &Network, placement: &Placement) {
        let cost = |network: &Network, placement: &Placement| {
            2.0 * network.overhead + network.latency[placement.main_hop() as usize]
        };
        let before = cost(&self.calibration.network, &self.placement);
        let factor = cost(network, placement) / before;
        if before <= 0.0 || factor == 1.0 {
            return;
        }
        let creates = |context: &Context| match context {
            Context::Transfer(site) => {
                Meaning::by_name(&site.function).class == Class::Communicators
            }
            _ => false,
        };
        let creates: Vec<bool> = self.graph.contexts.all.iter().map(creates).collect();
        if !creates.contains(&true) {
            return;
        }
        for (own, op) in own.to_mut().iter_mut().zip(&self.graph.ops) {
            if creates[op.context as usize] {
                *own *= factor;
            }
        }
    }

    /// Multiplies the computation of a line; calls that are replayed as recorded are not changed.
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
        let contexts = (0..self.path().by_context.len()).filter(of_region);
        contexts.map(|context| self.path().by_context[context]).sum()
    }

    /// Seconds of each rank's computation on the critical path of the self-replay, by position.
    pub fn on_path_by_rank(&self) -> Vec<f64> {
        let mut seconds = vec![0.0; self.graph.run.ranks.len()];
        for (line, of_line) in self.graph.lines.iter().zip(&self.path().by_line) {
            seconds[line.position] += of_line;
        }
        seconds
    }

    fn is_region(&self, context: usize, name: &str) -> bool {
        matches!(&self.graph.contexts.all[context], Context::Region(other) if other == name)
    }

    /// The operations of a line by context, for selected contexts.
    pub(super) fn by_context(
        &self,
        line: &GraphLine,
        selects: impl Fn(u32) -> bool,
    ) -> BTreeMap<u32, Vec<usize>> {
        let mut contexts: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for op in line.ops.clone() {
            let context = self.graph.ops[op as usize].context;
            if selects(context) {
                contexts.entry(context).or_default().push(op as usize);
            }
        }
        contexts
    }

    /// Shortens stretches that are much longer than others of their kind to the median of these.
    fn remove_noise(&self, own: &mut [f64]) {
        for line in &self.graph.lines {
            let computes = |context| self.graph.contexts.get(context).is_computing();
            let kinds = self.by_context(line, computes);
            for ops in kinds.values().filter(|ops| ops.len() >= MIN_OF_KIND) {
                let mut lengths: Vec<f64> = ops.iter().map(|op| own[*op]).collect();
                let middle = median(&mut lengths).unwrap_or(0.0);
                lengths.iter_mut().for_each(|length| *length = (*length - middle).abs());
                let noise =
                    (NOISE_DEVIATIONS * median(&mut lengths).unwrap_or(0.0)).max(MIN_NOISE_S);
                let over = lengths.iter().filter(|deviation| **deviation > noise).sum::<f64>();
                if over > MAX_NOISE * middle * lengths.len() as f64 {
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

    /// The level that matters most: between hosts if there are several.
    pub fn hop(&self) -> usize {
        self.placement.main_hop() as usize
    }

    /// Whether the run shows the cost of messages within hosts, and between hosts.
    pub fn shows(&self) -> [bool; 2] {
        let samples = self.calibration.samples;
        let [within, between] = self.placement.levels();
        match samples.transfers {
            // Collective operations show it if all of them use one level.
            [0, 0] => {
                [within && !between, between && !within].map(|is| is && samples.collectives > 0)
            }
            messages => messages.map(|count| count > 0),
        }
    }

    /// Whether latency and bandwidth can be told apart at the level that matters most.
    pub fn is_told_apart(&self) -> bool {
        self.calibration.samples.told_apart[self.hop()]
    }

    /// The standard questions for every run.
    pub fn standard(&self) -> Vec<Vec<Change>> {
        let mut questions = vec![vec![Change::IdealNetwork]];
        let told_apart = self.is_told_apart();
        for factor in [0.5, 2.0, 10.0] {
            match told_apart {
                true => {
                    questions.push(vec![Change::Latency(factor)]);
                    questions.push(vec![Change::Bandwidth(1.0 / factor)]);
                }
                // If all messages have similar sizes, what a byte costs may be part of any parameter: only all
                // together are meaningful.
                false => questions.push(vec![
                    Change::Latency(factor),
                    Change::Bandwidth(1.0 / factor),
                    Change::Overhead(factor),
                ]),
            }
        }
        if told_apart {
            questions.push(vec![Change::Bandwidth(10.0)]);
        }
        questions.push(vec![Change::MedianRank]);
        questions.push(vec![Change::Balance(None)]);
        for region in self.regions() {
            questions.push(vec![Change::Balance(Some(region.to_owned()))]);
        }
        if self.graph.beside.has_threads() {
            questions.push(vec![Change::BalancedThreads]);
        }
        if self.graph.beside.has_files() {
            questions.push(vec![Change::FileSpeed(2.0)]);
        }
        questions.push(vec![Change::NoNoise]);
        questions
    }

    /// The run's network with another latency, between hosts if there are several and else within the host.
    fn network_with_latency(&self, latency_s: f64) -> Network {
        let mut network = self.calibration.network;
        network.latency[self.hop()] = latency_s;
        network
    }

    /// The recorded computation and placement on a network.
    fn conditions<'c>(&'c self, network: &'c Network) -> Conditions<'c> {
        Conditions::recorded(&self.graph, network, &self.placement)
    }

    pub(super) fn replayed_with_latency(&self, latency_s: f64) -> Replayed {
        replay(&self.graph, &self.conditions(&self.network_with_latency(latency_s)))
    }

    /// The largest latency, between hosts if there are several and else within the host, with which
    /// the run takes at most `slowdown` (such as 0.01) longer; `None` if no latency makes it
    /// longer. Also returns the number of replays.
    pub fn tolerated_latency(&self, slowdown: f64) -> (Option<f64>, u32) {
        let hop = self.hop();
        let target = self.replayed.elapsed_s * (1.0 + slowdown);
        let at = |latency: f64| {
            let network = self.network_with_latency(latency);
            let replayed = self.replayed_with_latency(latency);
            let path = critical_path(&self.graph, &self.conditions(&network), &replayed);
            (replayed.elapsed_s, path.by_parameter[2 + hop])
        };
        let own = self.calibration.network.latency[hop];
        let mut passes = 0;
        // From the left, the slope at a point never exceeds that of the convex curve after it:
        // steps by it end at or beyond the target.
        let mut latency = own;
        let (mut time, mut slope) = (self.replayed.elapsed_s, self.path().by_parameter[2 + hop]);
        while time < target {
            latency = match slope > 0.0 {
                true => latency + (target - time) / slope * (1.0 + 1e-9),
                false => latency.max(1e-9) * 8.0,
            };
            if latency > MAX_LATENCY_S || passes == MAX_PASSES {
                return (None, passes);
            }
            (time, slope) = at(latency);
            passes += 1;
        }
        // From the right, Newton's steps stay on the right.
        while time > target * (1.0 + 1e-3 * slowdown) && passes < MAX_PASSES {
            latency -= (time - target) / slope;
            (time, slope) = at(latency);
            passes += 1;
        }
        (Some(latency), passes)
    }
}

/// Maximum latency that is tried, seconds.
const MAX_LATENCY_S: f64 = 10.0;

/// Maximum number of replays in a search.
const MAX_PASSES: u32 = 20;
