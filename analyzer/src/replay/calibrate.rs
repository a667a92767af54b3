//! Determines the network of a run from the durations of its calls, in the few parameters of the
//! model. Nothing is corrected call by call.

use super::exchange::Rounds;
use super::forward::{Conditions, replay};
use super::graph::{Collective, Graph, LinkKind, Message, Movement, Needs, OpNumber};
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
        let class = if bytes >= 1.0 { bytes.log2() as usize + 1 } else { 0 };
        let class = &mut self.classes[class.min(65)];
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

    /// The b ≥ 0 that explains the sum if a is known.
    fn second(&self, a: f64) -> f64 {
        let sum = |of: fn(&Class) -> f64| self.classes.iter().map(of).sum::<f64>();
        let left = sum(|class| class.cost) - a * sum(|class| class.first);
        (left / sum(|class| class.second)).max(0.0)
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

/// Determines the network of a run.
pub fn calibrate(graph: &Graph, placement: &Placement) -> Calibration {
    let mut network = Network::ideal(eager_limits(graph, placement));
    (network.collective_steps, network.collective_bytes) = (1.0, 1.0);
    let mut samples = Samples::default();

    let overheads = overheads(graph, placement, &network);
    [network.overhead, network.overhead_per_byte] = overheads.fit();
    samples.overheads = overheads.count() as u64;

    let transfers = transfers(graph, placement, &network);
    for (hop, of_hop) in transfers.iter().enumerate() {
        samples.transfers[hop] = of_hop.count() as u64;
        samples.told_apart[hop] = of_hop.tells_apart();
        [network.latency[hop], network.per_byte[hop]] = of_hop.fit();
    }
    for (hop, other) in [(0, 1), (1, 0)] {
        if samples.transfers[hop] == 0 {
            network.latency[hop] = network.latency[other];
            network.per_byte[hop] = network.per_byte[other];
            samples.told_apart[hop] = samples.told_apart[other];
        }
    }

    let no_messages = samples.transfers == [0, 0];
    if no_messages {
        (network.latency, network.per_byte) = ([1e-6; 2], [1e-10; 2]);
    }
    let collectives = collectives(graph, placement, &network);
    samples.collectives = collectives.count() as u64;
    let [steps, bytes] = collectives.fit();
    match no_messages {
        false if samples.collectives == 0 => {}
        false => (network.collective_steps, network.collective_bytes) = (steps, bytes),
        // Then a step counts as a latency.
        true => {
            samples.told_apart = [collectives.tells_apart(); 2];
            network.latency = network.latency.map(|latency| latency * steps);
            network.per_byte = network.per_byte.map(|per_byte| per_byte * bytes);
        }
    }
    let hop = usize::from(!placement.is_one_host());
    let steps_are_messages = placement.is_one_host() || placement.is_one_rank_each();
    // If all messages are large, the steps of small collective operations show the cost of a
    // message without bytes.
    if transfers[hop].sizes() == [false, true]
        && collectives.sizes()[0]
        && steps_are_messages
        && samples.transfers[hop] > 0
    {
        let overheads = 2.0 * network.overhead;
        let step = network.collective_steps * (overheads + network.latency[hop]);
        let latency = (step - overheads).clamp(0.0, network.latency[hop]);
        network.latency[hop] = latency;
        network.per_byte[hop] = transfers[hop].second(latency);
        if overheads + latency > 0.0 {
            network.collective_steps = step / (overheads + latency);
        }
        samples.told_apart[hop] = true;
    }
    let (scale, error) = scale(graph, placement, network);
    Calibration { network: network.times(scale), scale, error, samples }
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
        let hop = placement.hop(message.lines);
        let terms = [latencies, message.bytes];
        by_hop[hop as usize].add(message.bytes, terms, (time - known).max(0.0));
    }
    by_hop
}

/// The times from the last required contribution to the end, compared with the costs of steps and
/// bytes.
fn collectives(graph: &Graph, placement: &Placement, network: &Network) -> BySize {
    let of = |steps: f64, bytes: f64| Network {
        collective_steps: steps,
        collective_bytes: bytes,
        ..*network
    };
    let (steps, bytes) = (of(1.0, 0.0), of(0.0, 1.0));
    let cost = |network: &Network, of: &Collective| Costs { network, placement }.collective(of);
    let mut by_size = BySize::default();
    let entered = |op: OpNumber| graph.recorded[op as usize].entered_s;
    // When the last member that sends begins, and which member it is.
    let last_of = |collective: &Collective| {
        let sends = |of: &u32| graph.members[*of as usize].sends;
        let begins = |of: u32| (entered(graph.members[of as usize].posted), of);
        let senders = collective.members.clone().filter(sends).map(begins);
        senders.max_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or((0.0, collective.members.start))
    };
    let last_senders: Vec<(f64, u32)> = graph.collectives.iter().map(last_of).collect();
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
        let posted = |member: u32| entered(graph.members[member as usize].posted);
        let last = match collective.needs {
            Needs::Everybody | Needs::All if member.receives => {
                last_senders[member.collective as usize].0
            }
            Needs::AtRoot if link.of == collective.root => {
                last_senders[member.collective as usize].0
            }
            Needs::Root if member.receives && link.of != collective.root => posted(collective.root),
            Needs::Lower => (collective.members.start..=link.of).map(posted).fold(0.0, f64::max),
            _ => continue,
        };
        let recorded = graph.recorded[op];
        let time = recorded.left_s - last.max(recorded.entered_s);
        // In rounds, the last member has everything soon; the others have it when its contribution
        // has reached them.
        let part = match collective.needs {
            Needs::Everybody => {
                let rounds = Rounds::new(graph, collective);
                let hops = rounds.hops(last_senders[member.collective as usize].1, link.of);
                f64::from(hops) / f64::from(rounds.count().max(1))
            }
            _ => 1.0,
        };
        if last <= recorded.left_s && part > 0.0 {
            let terms = [cost(&steps, collective) * part, cost(&bytes, collective) * part];
            by_size.add(collective.bytes, terms, time.max(0.0));
        }
    }
    by_size
}
