//! Determines the network of a run from the durations of its calls, in the few parameters of the
//! model. Nothing is corrected call by call.

use std::collections::BTreeMap;

use nalgebra::{Matrix4, Vector4};
use rustc_hash::FxHashMap;

use super::algorithm::candidates;
use super::exchange::Rounds;
use super::forward::{Conditions, replay};
use super::graph::{Collective, Graph, LinkKind, Message, Movement, Needs, OpNumber, Recorded};
use super::network::{Costs, Network, Placement};
use crate::causes::semantics::SendMode;
use crate::trace::RankTrace;

/// The network of a run, and how it was determined.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Calibration {
    /// The network.
    pub network: Network,
    /// The factor by which all its times were finally multiplied, so that the replay takes as long
    /// as the run.
    pub scale: f64,
    /// Relative error: replayed time / recorded time − 1.
    pub error: f64,
    /// The data that it was determined from.
    pub samples: Samples,
}

/// Numbers of calls from which the parameters were determined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Samples {
    /// Calls that began a transfer, or found one complete: overhead.
    pub overheads: u64,
    /// Messages that a receiver waited for, within hosts and between: latency and bandwidth.
    pub transfers: [u64; 2],
    /// Parts in collective operations.
    pub collectives: u64,
    /// Whether these messages, or those of collective operations, had sufficiently different sizes
    /// to separate latency and bandwidth; within and between hosts.
    pub told_apart: [bool; 2],
}

/// The classes below `SMALL` are those below 1 KiB; the classes from `LARGE` on are those from 4
/// KiB on.
const SMALL: usize = 11;
const LARGE: usize = 13;

/// Number of a size's class.
fn size_class(bytes: f64) -> usize {
    if bytes >= 1.0 { (bytes.log2() as usize + 1).min(65) } else { 0 }
}

/// Sums of a cost by size, in classes of a factor of two.
#[derive(Debug, Clone)]
struct BySize {
    classes: Vec<Class>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Class {
    count: f64,
    /// Sums of the two explaining terms and of the cost.
    first: f64,
    second: f64,
    cost: f64,
}

impl Default for BySize {
    fn default() -> Self {
        Self { classes: vec![Class::default(); 66] }
    }
}

impl BySize {
    /// Adds the cost of a size, which should be a·first + b·second.
    fn add(&mut self, bytes: f64, [first, second]: [f64; 2], cost: f64) {
        let class = &mut self.classes[size_class(bytes)];
        class.count += 1.0;
        class.first += first;
        class.second += second;
        class.cost += cost;
    }

    fn count(&self) -> f64 {
        self.classes.iter().map(|class| class.count).sum()
    }

    /// Whether there are small sizes, and large ones.
    fn sizes(&self) -> [bool; 2] {
        let seen = |classes: &[Class]| classes.iter().any(|class| class.count > 0.0);
        [seen(&self.classes[..SMALL]), seen(&self.classes[LARGE..])]
    }

    /// Whether both terms can be separated: the sizes differ enough, and are not all small.
    fn tells_apart(&self) -> bool {
        self.sizes() == [true, true]
    }

    /// The factor of both terms that explains the sum.
    fn common(&self) -> f64 {
        let sum = |of: fn(&Class) -> f64| self.classes.iter().map(of).sum::<f64>();
        let explained = sum(|class| class.first + class.second);
        if explained > 0.0 { sum(|class| class.cost) / explained } else { 1.0 }
    }

    /// The classes as rows for the levels of a hop.
    fn rows(&self, hop: usize) -> impl Iterator<Item = Row> {
        let row = move |class: &Class| {
            let mut terms = [0.0; 4];
            (terms[hop], terms[2 + hop]) = (class.first, class.second);
            Row { count: class.count, terms, cost: class.cost }
        };
        self.classes.iter().map(row)
    }

    /// The a and b ≥ 0 that best explain the sums of the classes, by relative error, scaled so that
    /// the total is right.
    fn fit(&self) -> [f64; 2] {
        let (mut xx, mut xy, mut yy, mut xc, mut yc) = (0.0, 0.0, 0.0, 0.0, 0.0);
        let (mut first, mut second, mut all) = (0.0, 0.0, 0.0);
        for class in self.classes.iter().filter(|class| class.cost > 0.0) {
            let weight = class.count / class.cost.powi(2);
            xx += weight * class.first * class.first;
            xy += weight * class.first * class.second;
            yy += weight * class.second * class.second;
            xc += weight * class.first * class.cost;
            yc += weight * class.second * class.cost;
            (first, second, all) = (first + class.first, second + class.second, all + class.cost);
        }
        let determinant = xx * yy - xy * xy;
        let only_first = [if xx > 0.0 { xc / xx } else { 0.0 }, 0.0];
        let only_second = [0.0, if yy > 0.0 { yc / yy } else { 0.0 }];
        let both = [(xc * yy - yc * xy) / determinant, (yc * xx - xc * xy) / determinant];
        let [a, b] = match () {
            () if determinant > 1e-9 * xx * yy && both.iter().all(|value| *value >= 0.0) => both,
            () if determinant > 1e-9 * xx * yy && both[0] < 0.0 => only_second,
            () => only_first,
        };
        let explained = a * first + b * second;
        let scale = if explained > 0.0 { all / explained } else { 0.0 };
        [a * scale, b * scale]
    }
}

/// Sums of a cost, and of what explains it: latencies within and between hosts, bytes within and
/// between.
#[derive(Debug, Clone, Copy, Default)]
struct Row {
    count: f64,
    terms: [f64; 4],
    cost: f64,
}

impl Row {
    /// Whether it has no messages of less than [`LARGE`]'s size.
    fn is_large(&self) -> bool {
        let [within, between, bytes_within, bytes_between] = self.terms;
        let smallest = f64::from(1_u32 << (LARGE - 1));
        bytes_within + bytes_between >= smallest * (within + between)
    }
}

/// The prices of the terms that best explain the rows. A latency within hosts is not longer than one
/// between them.
fn prices(rows: &[Row]) -> [f64; 4] {
    let found = free_prices(rows);
    let uses_between = rows.iter().any(|row| row.terms[1] > 0.0);
    if !uses_between || found[0] <= found[1] {
        return found;
    }
    let merged = rows.iter().map(|row| {
        let [within, between, bytes_within, bytes_between] = row.terms;
        Row { terms: [0.0, within + between, bytes_within, bytes_between], ..*row }
    });
    let [_, latency, within, between] = free_prices(&merged.collect::<Vec<Row>>());
    [latency, latency, within, between]
}

/// The non-negative prices of the terms that best explain the rows, by relative error. What several
/// prices explain equally well goes to latencies, or, if all messages are large, to bytes.
fn free_prices(rows: &[Row]) -> [f64; 4] {
    let (mut squares, mut products, mut scales) = (Matrix4::zeros(), Vector4::zeros(), [0.0; 4]);
    for row in rows.iter().filter(|row| row.cost > 0.0) {
        let terms = Vector4::from(row.terms);
        let weight = row.count / row.cost.powi(2);
        squares += terms * terms.transpose() * weight;
        products += terms * (row.cost * weight);
    }
    for (number, scale) in scales.iter_mut().enumerate() {
        *scale = squares[(number, number)].sqrt();
    }
    let mut best = (0.0, [0.0; 4]);
    let mut subsets: Vec<u32> = (1..16).collect();
    if rows.iter().all(Row::is_large) {
        subsets.reverse();
    }
    // Few prices before many, and prices between hosts before those within: if it cannot be told which
    // level costs, the slower one does.
    subsets.sort_by_key(|subset| (subset.count_ones(), (subset & WITHIN).count_ones()));
    for subset in subsets {
        let is_in = |number: usize| subset >> number & 1 == 1;
        if (0..4).any(|number| is_in(number) && scales[number] <= 0.0) {
            continue;
        }
        let of = |row: usize, column: usize| match is_in(row) && is_in(column) {
            true => squares[(row, column)] / (scales[row] * scales[column]),
            false => f64::from(u8::from(row == column)),
        };
        let right = |row: usize| if is_in(row) { products[row] / scales[row] } else { 0.0 };
        let (matrix, right) = (Matrix4::from_fn(of), Vector4::from_fn(|row, _| right(row)));
        let solution = matrix.cholesky().filter(|_| matrix.determinant() > SINGULAR);
        let Some(found) = solution.map(|cholesky| cholesky.solve(&right)) else { continue };
        // Least squares explain the scalar product of solution and right side.
        let explained = found.dot(&right);
        if found.iter().all(|price| *price >= 0.0) && explained > best.0 * (1.0 + SAME) {
            let price = |number: usize| match is_in(number) {
                true => found[number] / scales[number],
                false => 0.0,
            };
            best = (explained, std::array::from_fn(price));
        }
    }
    best.1
}

/// The prices within hosts, as a set.
const WITHIN: u32 = 0b0101;

/// Smaller determinants of normalised equations mean that prices cannot be told apart.
const SINGULAR: f64 = 1e-9;

/// Explanations whose relative difference is smaller are equally good.
const SAME: f64 = 1e-9;

/// Weight of a part in a collective operation, whose algorithm is not certain, against a message.
const COLLECTIVE_WEIGHT: f64 = 0.1;

/// How often algorithms are chosen for a network, and a network is determined for algorithms.
const PASSES: usize = 4;

/// Maximum error of the self-replay; with a larger one, nothing is predicted.
pub const MAX_ERROR: f64 = 0.03;

/// Determines the network of a run, and the algorithms of its collective operations.
pub fn calibrate(graph: &mut Graph, placement: &Placement) -> Calibration {
    let mut network = Network::ideal(eager_limits(graph, placement));
    (network.collective_steps, network.collective_bytes) = (1.0, 1.0);
    let overheads = overheads(graph, placement, &network);
    [network.overhead, network.overhead_per_byte] = overheads.fit();
    let transfers = transfers(graph, placement, &network);
    let seen = Seen { overheads: overheads.count() as u64, transfers, parts: parts(graph) };
    let calibration = explain(graph, placement, network, &seen, true);
    // Collective operations that work unlike the known algorithms mislead.
    let is_misled = calibration.error.abs() > MAX_ERROR && calibration.samples.transfers != [0, 0];
    if is_misled { explain(graph, placement, network, &seen, false) } else { calibration }
}

/// What the durations of calls show.
struct Seen {
    /// Number of calls that need not wait.
    overheads: u64,
    transfers: [BySize; 2],
    parts: Vec<Part>,
}

/// Determines latencies, times per byte and algorithms if overheads are known; `with_collectives`,
/// collective operations also tell latencies and times per byte.
fn explain(
    graph: &mut Graph,
    placement: &Placement,
    mut network: Network,
    seen: &Seen,
    with_collectives: bool,
) -> Calibration {
    let Seen { overheads, transfers, parts } = seen;
    let mut samples = Samples {
        overheads: *overheads,
        transfers: [0, 1].map(|hop: usize| transfers[hop].count() as u64),
        collectives: parts.len() as u64,
        told_apart: [false; 2],
    };
    for _ in 0..PASSES {
        let collectives = match with_collectives {
            true => collective_rows(graph, &Costs { network: &network, placement }, parts),
            false => CollectiveRows::default(),
        };
        samples.told_apart = [0, 1].map(|hop| told_apart(&transfers[hop], &collectives, hop));
        let rows: Vec<Row> = collectives
            .into_values()
            .chain(transfers[0].rows(0))
            .chain(transfers[1].rows(1))
            .collect();
        set_prices(&mut network, &rows, &mut samples.told_apart);
        if !choose_algorithms(graph, placement, &network, parts) {
            break;
        }
    }
    if samples.transfers != [0, 0] && !parts.is_empty() {
        let collectives = collective_prices(graph, placement, &network, parts);
        let found = match collectives.tells_apart() {
            true => collectives.fit(),
            false => [collectives.common(); 2],
        };
        let [steps, bytes] = found.map(|price| price.clamp(1.0 / MAX_FACTOR, MAX_FACTOR));
        (network.collective_steps, network.collective_bytes) = (steps, bytes);
    }
    let (scale, error) = scale(graph, placement, network);
    Calibration { network: network.times(scale), scale, error, samples }
}

/// Whether there are both small and large transfers on a hop, in messages or, if these have similar
/// sizes, in collective operations.
fn told_apart(transfers: &BySize, collectives: &CollectiveRows, hop: usize) -> bool {
    let [mut small, mut large] = transfers.sizes();
    for ((_, class), row) in collectives {
        let is_seen = row.terms[hop] > 0.0;
        small |= is_seen && *class < SMALL;
        large |= is_seen && *class >= LARGE;
    }
    small && large
}

/// Sets latencies and times per byte. A hop that the run does not use gets those of the other.
fn set_prices(network: &mut Network, rows: &[Row], told_apart: &mut [bool; 2]) {
    let [within, between, byte_within, byte_between] = prices(rows);
    (network.latency, network.per_byte) = ([within, between], [byte_within, byte_between]);
    let uses = |hop: usize| rows.iter().any(|row| row.terms[hop] + row.terms[2 + hop] > 0.0);
    for (hop, other) in [(0, 1), (1, 0)] {
        match (uses(hop), uses(other)) {
            (true, _) => {}
            (false, true) => {
                network.latency[hop] = network.latency[other];
                network.per_byte[hop] = network.per_byte[other];
                told_apart[hop] = told_apart[other];
            }
            (false, false) => (network.latency[hop], network.per_byte[hop]) = (1e-6, 1e-10),
        }
    }
}

/// Maximum number of replays for finding the common factor.
const MAX_REPLAYS: usize = 8;

/// An error that is small enough to stop.
const NEGLIGIBLE_ERROR: f64 = 1e-4;

/// Maximum factor by which all times are changed.
const MAX_FACTOR: f64 = 4.0;

/// The common factor of all times with which the replay takes as long as the run, as far as one
/// factor can achieve that, and the remaining error.
fn scale(graph: &Graph, placement: &Placement, network: Network) -> (f64, f64) {
    let error = |factor: f64| {
        let network = network.times(factor);
        let conditions = Conditions {
            network: &network,
            placement,
            pace: |_, op: &super::Op| (op.own_s, f64::from(op.library_s)),
        };
        replay(graph, &conditions).elapsed_s / graph.elapsed_s - 1.0
    };
    // Factors and their errors. The time grows with the factor, nearly linearly.
    let (mut low, mut high): (Option<[f64; 2]>, Option<[f64; 2]>) = (None, None);
    let mut best = [1.0, f64::INFINITY];
    let mut factor = 1.0;
    for _ in 0..MAX_REPLAYS {
        let found = [factor, error(factor)];
        if found[1].abs() < best[1].abs() {
            best = found;
        }
        if best[1].abs() < NEGLIGIBLE_ERROR {
            break;
        }
        *(if found[1] > 0.0 { &mut high } else { &mut low }) = Some(found);
        factor = match (low, high) {
            (Some([a, below]), Some([b, above])) => a - below * (b - a) / (above - below),
            (Some([a, _]), None) => a * 2.0,
            (None, Some([b, _])) => b / 2.0,
            (None, None) => break,
        };
        if !(1.0 / MAX_FACTOR..=MAX_FACTOR).contains(&factor) {
            break;
        }
    }
    (best[0], best[1])
}

fn single<T: Copy>(of: &[T]) -> Option<T> {
    match of {
        [one] => Some(*one),
        _ => None,
    }
}

/// The largest standard send that did not wait for its receiver, estimated from blocking calls: the
/// limit that the fewest of them contradict.
fn eager_limits(graph: &Graph, placement: &Placement) -> [f64; 2] {
    // By hop: the size, and whether the send waited for its receiver.
    let mut seen: [Vec<(f64, bool)>; 2] = Default::default();
    for (op, recorded) in graph.recorded.iter().enumerate() {
        let links = graph.links(op as OpNumber);
        for link in links.iter().filter(|link| link.kind.completes_send()) {
            let message = &graph.messages[link.of as usize];
            let posted = graph.recorded[message.receive as usize].entered_s;
            let waits = match () {
                () if message.sending != SendMode::Standard => continue,
                () if recorded.left_s < posted => false,
                // It lasted until shortly after the receive was posted, most of it was before that,
                // and it did nothing else.
                () if links.len() == 1
                    && posted - recorded.entered_s > 4.0 * (recorded.left_s - posted) =>
                {
                    true
                }
                () if links.len() == 1 && lasts_as_long(graph, message, recorded) => true,
                () => continue,
            };
            seen[placement.hop(message.lines) as usize].push((message.bytes, waits));
        }
    }
    let known = known_eager_limits(graph);
    let mut known = known.into_iter();
    seen.map(|mut seen| {
        let known = known.next().unwrap_or(f64::INFINITY);
        seen.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        // A limit below the smallest size is contradicted by every send that did not wait.
        let mut wrong = seen.iter().filter(|(_, waits)| !waits).count();
        let (mut best, mut limit) = (wrong, -1.0);
        for of_size in seen.chunk_by(|a, b| a.0 == b.0) {
            let waiting = of_size.iter().filter(|(_, waits)| *waits).count();
            wrong = wrong + waiting - (of_size.len() - waiting);
            if wrong <= best {
                (best, limit) = (wrong, of_size[0].0);
            }
        }
        match seen.last() {
            Some((largest, _)) if limit < *largest => limit,
            Some((largest, _)) => known.max(*largest),
            None => known,
        }
    })
}

/// Whether a blocking send of many bytes returned only shortly before the receive that waited for
/// it: the library had not taken the message.
fn lasts_as_long(graph: &Graph, message: &Message, send: &Recorded) -> bool {
    let receive = graph.recorded[message.receive as usize];
    let whole = receive.left_s - send.entered_s;
    size_class(message.bytes) >= LARGE
        && receive.entered_s <= send.entered_s
        && send.left_s <= receive.left_s
        && send.left_s - send.entered_s > MIN_LAST * whole
}

/// A send that lasts longer than this share of the transfer waited for its end.
const MIN_LAST: f64 = 0.9;

/// Limits if no send was seen to wait: the defaults of Open MPI (btl_vader_eager_limit,
/// btl_sm_eager_limit; btl_tcp_eager_limit). Those of other libraries depend on the transport
/// layers below them.
fn known_eager_limits(graph: &Graph) -> [f64; 2] {
    let is_open_mpi = |trace: &RankTrace| trace.file.header.mpi_family == "openmpi";
    match graph.run.ranks.first().is_some_and(is_open_mpi) {
        true => [4_096.0, 65_536.0],
        false => [f64::INFINITY; 2],
    }
}

/// A receive did not wait for a message that was sent more than this many times the call's duration
/// before the call.
const EARLY_FACTOR: f64 = 3.0;

/// Durations of calls that need not wait: posts, sends that the library takes, receives of messages
/// that have arrived.
fn overheads(graph: &Graph, placement: &Placement, network: &Network) -> BySize {
    let costs = Costs { network, placement };
    let mut by_size = BySize::default();
    'calls: for (op, recorded) in graph.recorded.iter().enumerate() {
        let links = graph.links(op as OpNumber);
        let (mut begins, mut completes, mut bytes) = (false, false, 0.0);
        for link in links {
            if link.kind.is_collective() {
                continue 'calls;
            }
            let message = &graph.messages[link.of as usize];
            let waits = costs.needs_receiver(message);
            begins |= link.kind.begins();
            completes |= link.kind.completes();
            match link.kind {
                LinkKind::PostReceive => {}
                LinkKind::PostSend if waits => {}
                _ if waits => continue 'calls,
                LinkKind::CompleteSend => {}
                LinkKind::Receive | LinkKind::CompleteReceive => {
                    // It has arrived if it was sent much earlier than this call's duration before
                    // it.
                    let sent = graph.recorded[message.send as usize].entered_s;
                    let lasts = recorded.left_s - recorded.entered_s;
                    if sent + EARLY_FACTOR * lasts > recorded.entered_s {
                        continue 'calls;
                    }
                    bytes += message.bytes;
                }
                _ => bytes += message.bytes,
            }
        }
        if !links.is_empty() {
            let terms = [f64::from(u8::from(begins) + u8::from(completes)), bytes];
            by_size.add(bytes, terms, recorded.left_s - recorded.entered_s);
        }
    }
    by_size
}

/// The remaining times from a send's begin to the end of a receive that waited for it, by hop:
/// latency and bytes. For a call that completes several messages, the one that was sent last
/// counts.
fn transfers(graph: &Graph, placement: &Placement, network: &Network) -> [BySize; 2] {
    let costs = Costs { network, placement };
    let mut by_hop = [BySize::default(), BySize::default()];
    let entered = |op: OpNumber| graph.recorded[op as usize].entered_s;
    for (op, recorded) in graph.recorded.iter().enumerate() {
        let links = graph.links(op as OpNumber);
        let received = links.iter().filter(|link| link.kind.completes_receive());
        let messages = received.map(|link| &graph.messages[link.of as usize]);
        let sent = |message: &&Message| entered(message.send);
        let last = messages.clone().max_by(|a, b| sent(a).total_cmp(&sent(b)));
        let Some(message) = last else { continue };
        let (sent, posted) = (sent(&message), entered(message.receive));
        let waits = recorded.entered_s <= sent;
        let hop = placement.hop(message.lines);
        // Messages of a hop come one after another.
        let of_hop = messages.clone().filter(|other| placement.hop(other.lines) == hop);
        let bytes = of_hop.map(|message| message.bytes).sum::<f64>();
        // Overhead on both sides, copies, and the transfer: three latencies if the sender asks the
        // receiver, two if the receiver asks.
        let copies = messages.map(|message| costs.copying(message)).sum::<f64>();
        let known = 2.0 * network.overhead + costs.copying(message) + copies;
        let (from, latencies) = match costs.needs_receiver(message) {
            true if waits => (sent, 3.0),
            true if posted == recorded.entered_s => (posted, 2.0),
            false if waits => (sent, 1.0),
            _ => continue,
        };
        if recorded.left_s < from {
            continue;
        }
        let time = recorded.left_s - from;
        by_hop[hop as usize].add(bytes, [latencies, bytes], (time - known).max(0.0));
    }
    by_hop
}

/// A part in a collective operation that waited for others.
struct Part {
    collective: u32,
    /// Share of the operation's cost that lies between the last contribution and the part's end.
    share: f64,
    /// From the last contribution that it needed to its end, seconds.
    time_s: f64,
}

/// The parts that show the costs of operations. Where the root's data reach one member after
/// another, the last one. In the order of the calls, so that sums do not depend on how the run was shared out.
fn parts(graph: &Graph) -> Vec<Part> {
    let entered = |op: OpNumber| graph.recorded[op as usize].entered_s;
    // When the last member that sends begins, and which member it is.
    let last_of = |collective: &Collective| {
        let sends = |of: &u32| graph.members[*of as usize].sends;
        let begins = |of: u32| (entered(graph.members[of as usize].posted), of);
        let senders = collective.members.clone().filter(sends).map(begins);
        senders.max_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or((0.0, collective.members.start))
    };
    let last_senders: Vec<(f64, u32)> = graph.collectives.iter().map(last_of).collect();
    let mut parts: Vec<Part> = Vec::new();
    // Position of the part of an operation that only the root's data end.
    let mut of_roots: FxHashMap<u32, usize> = FxHashMap::default();
    for op in 0..graph.recorded.len() {
        let Some(link) = single(graph.links(op as OpNumber)) else { continue };
        if link.kind != LinkKind::Collective {
            continue;
        }
        let member = &graph.members[link.of as usize];
        let collective = &graph.collectives[member.collective as usize];
        if collective.movement == Movement::Meeting {
            continue;
        }
        if collective.needs == Needs::Everybody {
            if link.of == collective.members.start {
                add_rounds(graph, member.collective, &mut parts);
            }
            continue;
        }
        let posted = |member: u32| entered(graph.members[member as usize].posted);
        let last = match collective.needs {
            Needs::All if member.receives => last_senders[member.collective as usize].0,
            Needs::AtRoot if link.of == collective.root => {
                last_senders[member.collective as usize].0
            }
            Needs::Root if member.receives && link.of != collective.root => posted(collective.root),
            Needs::Lower => (collective.members.start..=link.of).map(posted).fold(0.0, f64::max),
            _ => continue,
        };
        let recorded = graph.recorded[op];
        let time_s = (recorded.left_s - last.max(recorded.entered_s)).max(0.0);
        if last > recorded.left_s {
            continue;
        }
        let new = Part { collective: member.collective, share: 1.0, time_s };
        if collective.needs == Needs::Root {
            let at = *of_roots.entry(member.collective).or_insert(parts.len());
            match parts.get_mut(at) {
                Some(part) => part.time_s = part.time_s.max(time_s),
                None => parts.push(new),
            }
            continue;
        }
        parts.push(new);
    }
    parts
}

/// Adds the parts in an operation in which every member needs all others.
fn add_rounds(graph: &Graph, number: u32, parts: &mut Vec<Part>) {
    let collective = &graph.collectives[number as usize];
    let first = collective.members.start;
    let end = |member: u32| {
        let op = graph.members[member as usize].posted;
        let link = single(graph.links(op))?;
        (link.kind == LinkKind::Collective)
            .then(|| (member - first, graph.recorded[op as usize].left_s))
    };
    let ends: Vec<(u32, f64)> = collective.members.clone().filter_map(end).collect();
    let rounds = Rounds::new(graph, collective);
    let count = f64::from(rounds.count().max(1));
    let observed = rounds.observed(&ends, |op| graph.recorded[op as usize].entered_s);
    parts.extend(observed.into_iter().map(|(arrivals, seconds)| Part {
        collective: number,
        share: f64::from(arrivals) / count,
        time_s: seconds.max(0.0),
    }));
}

/// Operations of one kind, size and number of members.
type Kind = (Needs, Movement, usize, usize);

fn kind_of(placement: &Placement, of: &Collective) -> Kind {
    (of.needs, of.movement, placement.members(of.group), size_class(of.bytes))
}

/// Rows of collective operations by number of members and class of size.
type CollectiveRows = BTreeMap<(usize, usize), Row>;

/// What latencies and bytes explain of the times of collective operations.
fn collective_rows(graph: &Graph, costs: &Costs, parts: &[Part]) -> CollectiveRows {
    let Network { overhead, overhead_per_byte, .. } = *costs.network;
    let mut rows = CollectiveRows::default();
    for part in parts {
        let of = &graph.collectives[part.collective as usize];
        let path = costs.path(of);
        let cpu = overhead * path.overheads + overhead_per_byte * 2.0 * path.copied * of.bytes;
        let [within, between] = path.bytes.map(|share| share * of.bytes);
        let terms = [path.latencies[0], path.latencies[1], within, between];
        let key = (costs.placement.members(of.group), size_class(of.bytes));
        let row = rows.entry(key).or_default();
        row.count += COLLECTIVE_WEIGHT;
        row.cost += (part.time_s - cpu * part.share).max(0.0);
        for (sum, term) in row.terms.iter_mut().zip(terms) {
            *sum += term * part.share;
        }
    }
    rows
}

/// Chooses the algorithm that best explains the times of operations of each kind. Returns whether
/// any changed.
fn choose_algorithms(
    graph: &mut Graph,
    placement: &Placement,
    network: &Network,
    parts: &[Part],
) -> bool {
    let costs = Costs { network, placement };
    // Sum of the times, and of the costs with each candidate.
    let mut sums: FxHashMap<Kind, (f64, Vec<f64>)> = FxHashMap::default();
    for part in parts {
        let of = &graph.collectives[part.collective as usize];
        let candidates = candidates(of.needs, of.movement);
        let new = || (0.0, vec![0.0; candidates.len()]);
        let (time, by_candidate) = sums.entry(kind_of(placement, of)).or_insert_with(new);
        *time += part.time_s;
        for (sum, algorithm) in by_candidate.iter_mut().zip(candidates) {
            let with = Collective { algorithm: *algorithm, ..of.clone() };
            *sum += costs.collective(&with) * part.share;
        }
    }
    let mut is_changed = false;
    for of in &mut graph.collectives {
        let Some((time, costs)) = sums.get(&kind_of(placement, of)) else { continue };
        let off = |cost: f64| (cost / time).ln().abs();
        let by_candidate = candidates(of.needs, of.movement).iter().zip(costs);
        let best = by_candidate.min_by(|a, b| off(*a.1).total_cmp(&off(*b.1)));
        if let Some((algorithm, _)) = best
            && *algorithm != of.algorithm
        {
            of.algorithm = *algorithm;
            is_changed = true;
        }
    }
    is_changed
}

/// The times of collective operations, compared with the costs of their steps and of their bytes.
fn collective_prices(
    graph: &Graph,
    placement: &Placement,
    network: &Network,
    parts: &[Part],
) -> BySize {
    let of = |steps: f64, bytes: f64| Network {
        collective_steps: steps,
        collective_bytes: bytes,
        ..*network
    };
    let (steps, bytes) = (of(1.0, 0.0), of(0.0, 1.0));
    let cost = |network: &Network, of: &Collective| Costs { network, placement }.collective(of);
    let mut by_size = BySize::default();
    for part in parts {
        let collective = &graph.collectives[part.collective as usize];
        let terms = [&steps, &bytes].map(|network| cost(network, collective) * part.share);
        by_size.add(collective.bytes, terms, part.time_s);
    }
    by_size
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows of messages with these latencies and bytes, whose costs follow from the prices.
    fn rows(prices: [f64; 4], terms: &[[f64; 4]]) -> Vec<Row> {
        let cost = |of: &[f64; 4]| of.iter().zip(prices).map(|(term, price)| term * price).sum();
        terms.iter().map(|of| Row { count: 10.0, terms: *of, cost: cost(of) }).collect()
    }

    fn assert_near(found: [f64; 4], expected: [f64; 4]) {
        let is_near = |(a, b): (f64, f64)| (a - b).abs() <= 1e-6 * b.abs().max(1e-12);
        assert!(found.into_iter().zip(expected).all(is_near), "{found:?} instead of {expected:?}");
    }

    #[test]
    fn prices_are_those_that_made_the_times() {
        let expected = [1e-6, 2e-5, 1e-10, 8e-9];
        let terms = [
            [10.0, 0.0, 80.0, 0.0],
            [10.0, 0.0, 1e6, 0.0],
            [0.0, 10.0, 0.0, 80.0],
            [0.0, 10.0, 0.0, 1e6],
            // A collective operation that crosses both.
            [30.0, 10.0, 1e4, 3e4],
        ];
        assert_near(prices(&rows(expected, &terms)), expected);
    }

    #[test]
    fn latency_within_hosts_is_at_most_that_between() {
        // Operations that cross both levels do not tell which of them costs.
        let both = [[20.0, 20.0, 160.0, 160.0], [10.0, 10.0, 80.0, 80.0]];
        assert_near(prices(&rows([1e-6, 3e-6, 0.0, 0.0], &both)), [0.0, 4e-6, 0.0, 0.0]);
        let found =
            prices(&rows([5e-6, 1e-6, 0.0, 0.0], &[[10.0, 0.0, 0.0, 0.0], [0.0, 10.0, 0.0, 0.0]]));
        assert!(found[0] > 0.0 && found[0] == found[1], "{found:?}");
    }

    #[test]
    fn messages_of_one_size_show_one_price() {
        // Small ones show a latency, large ones a time per byte; nothing shows the other hop.
        let small = rows([1e-6, 0.0, 0.0, 0.0], &[[10.0, 0.0, 80.0, 0.0]]);
        assert_near(prices(&small), [1e-6, 0.0, 0.0, 0.0]);
        let large = rows([0.0, 0.0, 1e-9, 0.0], &[[10.0, 0.0, 1e7, 0.0]]);
        assert_near(prices(&large), [0.0, 0.0, 1e-9, 0.0]);
        assert_eq!(prices(&[]), [0.0; 4]);
    }
}
