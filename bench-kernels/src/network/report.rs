//! The document of `kernels network`, made from the samples of each class.

use serde::Serialize;

use super::ClassSamples;
use super::classes::Class;
use super::pair::SizeSamples;
use super::queue::{EagerLimit, Held, QueueSize};
use crate::conditions::Conditions;
use crate::output::{Head, seconds};
use crate::pieces::{Piece, Point, pieces};
use crate::sample::{Figure, Sample};
use crate::world::{World, bytes_of, bytes_of_mut};

/// The word of LogP: eight bytes.
const WORD_BYTES: u64 = 8;
const MOVE: i32 = 31;

/// The whole result.
#[derive(Serialize)]
pub struct Report {
    #[serde(flatten)]
    pub head: Head,
    pub counter: &'static str,
    pub counter_hz: f64,
    pub repetitions: usize,
    pub warmup_rounds: usize,
    pub classes: Vec<ClassReport>,
    pub conditions: Conditions,
}

/// One class of pairs.
#[derive(Serialize)]
pub struct ClassReport {
    pub class: &'static str,
    pub ranks: [i32; 2],
    pub hosts: [String; 2],
    pub eager_limit: EagerLimit,
    pub sizes: Vec<SizeReport>,
    pub fits: Fits,
    pub switches: Vec<Switch>,
    pub latency: Latency,
    pub queues: Vec<QueueSize>,
    pub flows: Vec<FlowReport>,
}

/// Figures for one message size, in seconds and bytes per second.
#[derive(Serialize)]
pub struct SizeReport {
    pub bytes: u64,
    pub half_rtt_s: Figure,
    pub gap_s: Figure,
    pub send_overhead_s: Figure,
    pub receive_overhead_s: Figure,
    pub latency_s: Figure,
    pub one_way_bytes_per_s: Figure,
    pub both_ways_bytes_per_s: Figure,
}

/// Linear pieces over sizes.
#[derive(Serialize)]
pub struct Fits {
    pub half_rtt: Vec<Piece>,
    /// gap(s) = g + (s − 1)·G.
    pub gap: Vec<Piece>,
    pub send_overhead: Vec<Piece>,
    pub receive_overhead: Vec<Piece>,
}

/// A change of protocol between two sizes.
#[derive(Serialize)]
pub struct Switch {
    /// Largest size before it.
    pub after_bytes: u64,
    /// Smallest size behind it.
    pub before_bytes: u64,
    /// `eager-to-rendezvous`, or `slope` if only the times show it.
    pub kind: &'static str,
    /// The curves that show it.
    pub seen_in: Vec<&'static str>,
}

/// LogP's L for one word.
#[derive(Serialize)]
pub struct Latency {
    pub bytes: u64,
    /// `None` if it cannot be identified.
    pub latency_s: Option<f64>,
    /// 95 % interval of RTT/2 − o_s − o_r, identified or not.
    pub interval_s: (f64, f64),
    /// Half the round trip, which contains L, o_s and o_r.
    pub half_rtt_s: f64,
    /// Why L cannot be identified.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A flow with several partners.
#[derive(Serialize)]
pub struct FlowReport {
    pub shape: &'static str,
    pub partners: usize,
    pub bytes: u64,
    /// Bytes per second of all directions together.
    pub bytes_per_s: Figure,
}

/// Message sizes for the queue experiments: powers of four up to the eager limit, the limit itself,
/// and one size above it.
pub fn queue_sizes(eager: &EagerLimit, most: u64) -> Vec<u64> {
    let mut sizes: Vec<u64> =
        (0..32).map(|k| 4_u64.pow(k)).take_while(|bytes| *bytes < eager.bytes).collect();
    sizes.push(eager.bytes);
    if !eager.at_least {
        sizes.push(eager.bytes + 1);
    }
    sizes.retain(|bytes| *bytes >= 1 && *bytes <= most);
    sizes
}

/// Moves a sample from `from` to rank 0, which may be the same rank. On other ranks, returns it
/// unchanged.
pub fn at_zero(world: &World, from: i32, sample: Sample) -> Sample {
    if from == 0 || ![0, from].contains(&world.rank) {
        return sample;
    }
    if world.rank == from {
        world.send(bytes_of(&[sample.values().len() as f64]), 0, MOVE);
        world.send(bytes_of(sample.values()), 0, MOVE);
        return sample;
    }
    let mut count = [0.0];
    world.receive(bytes_of_mut(&mut count), from, MOVE);
    let mut values = vec![0.0; count[0] as usize];
    world.receive(bytes_of_mut(&mut values), from, MOVE);
    values.into_iter().collect()
}

impl ClassReport {
    /// Moves the samples of a class to rank 0 and makes the report there.
    pub fn gather(
        world: &World,
        class: &Class,
        measured: Option<ClassSamples>,
        flows: Vec<FlowReport>,
    ) -> Option<Self> {
        let measured = move_to_zero(world, class.pair.0, measured);
        (world.rank == 0).then(|| Self::new(world, class, measured?, flows)).flatten()
    }

    fn new(
        world: &World,
        class: &Class,
        measured: ClassSamples,
        flows: Vec<FlowReport>,
    ) -> Option<Self> {
        let ClassSamples { eager, sizes, queues } = measured;
        let known: Vec<u64> =
            (!eager.at_least && eager.bytes > 0).then_some(eager.bytes).into_iter().collect();
        let fit = |sample: fn(&SizeSamples) -> &Sample, from_zero| {
            let point = |(bytes, samples): &(u64, SizeSamples)| Point {
                bytes: *bytes,
                values: sample(samples).values().to_vec(),
            };
            pieces(&sizes.iter().map(point).collect::<Vec<_>>(), &known, from_zero)
        };
        let fits = Fits {
            half_rtt: fit(|s| &s.half_rtt_s, 0),
            gap: fit(|s| &s.gap_s, 1),
            send_overhead: fit(|s| &s.send_overhead_s, 0),
            receive_overhead: fit(|s| &s.receive_overhead_s, 0),
        };
        let switches = switches(&fits, &eager);
        let figure = |sample: &Sample| sample.figure();
        let reports: Vec<SizeReport> = sizes
            .iter()
            .filter_map(|(bytes, samples)| {
                Some(SizeReport {
                    bytes: *bytes,
                    half_rtt_s: figure(&samples.half_rtt_s)?,
                    gap_s: figure(&samples.gap_s)?,
                    send_overhead_s: figure(&samples.send_overhead_s)?,
                    receive_overhead_s: figure(&samples.receive_overhead_s)?,
                    latency_s: figure(&samples.latency_s)?,
                    one_way_bytes_per_s: figure(&samples.one_way_bytes_per_s)?,
                    both_ways_bytes_per_s: figure(&samples.both_ways_bytes_per_s)?,
                })
            })
            .collect();
        let host = |rank: i32| world.host_names[world.hosts[rank as usize]].clone();
        Some(Self {
            class: class.name,
            ranks: [class.pair.0, class.pair.1],
            hosts: [host(class.pair.0), host(class.pair.1)],
            eager_limit: eager,
            latency: Latency::new(&reports)?,
            sizes: reports,
            fits,
            switches,
            queues,
            flows,
        })
    }

    /// The figures by which the machine's noise is assessed.
    pub fn figures(&self) -> impl Iterator<Item = &Figure> {
        self.sizes.iter().flat_map(|size| [&size.half_rtt_s, &size.one_way_bytes_per_s])
    }
}

impl Latency {
    fn new(sizes: &[SizeReport]) -> Option<Self> {
        let word = sizes.iter().find(|size| size.bytes >= WORD_BYTES).or(sizes.last())?;
        let (low, high) = (word.latency_s.low, word.latency_s.high);
        let half_rtt_s = word.half_rtt_s.median;
        let reason = (low <= 0.0).then(|| {
            let median = word.latency_s.median;
            let why = match median > 0.0 {
                true => "too uncertain to be distinguished from 0",
                false => "the processors' own work hides the latency, as on shared memory",
            };
            let (median, low, high) = (seconds(median), seconds(low), seconds(high));
            format!("RTT/2 - o_s - o_r = {median} with a 95 % interval from {low} to {high}: {why}")
        });
        Some(Self {
            bytes: word.bytes,
            latency_s: reason.is_none().then_some(word.latency_s.median),
            interval_s: (low, high),
            half_rtt_s,
            reason,
        })
    }
}

/// Where pieces end: at the eager limit, and where the curves show further switches.
fn switches(fits: &Fits, eager: &EagerLimit) -> Vec<Switch> {
    let mut switches: Vec<Switch> = Vec::new();
    if !eager.at_least && eager.bytes > 0 {
        switches.push(Switch {
            after_bytes: eager.bytes,
            before_bytes: eager.bytes + 1,
            kind: "eager-to-rendezvous",
            seen_in: vec!["completion"],
        });
    }
    let curves = [("half_rtt", &fits.half_rtt), ("gap", &fits.gap)];
    for (name, pieces) in curves {
        for pair in pieces.windows(2) {
            let (after_bytes, before_bytes) = (pair[0].to_bytes, pair[1].from_bytes);
            let known = switches.iter_mut().find(|switch| {
                switch.after_bytes >= after_bytes && switch.after_bytes < before_bytes
            });
            match known {
                Some(switch) => switch.seen_in.push(name),
                None => switches.push(Switch {
                    after_bytes,
                    before_bytes,
                    kind: "slope",
                    seen_in: vec![name],
                }),
            }
        }
    }
    switches.sort_by_key(|switch| switch.after_bytes);
    switches
}

/// The measurements of a pair's first rank, on rank 0.
fn move_to_zero(world: &World, from: i32, measured: Option<ClassSamples>) -> Option<ClassSamples> {
    if from == 0 || ![0, from].contains(&world.rank) {
        return measured;
    }
    // Sizes and queues are sent as numbers, in a fixed order.
    let mut head = Vec::new();
    if let Some(measured) = &measured {
        head.extend([measured.eager.bytes, u64::from(measured.eager.at_least)]);
        head.push(measured.sizes.len() as u64);
        head.extend(measured.sizes.iter().map(|(bytes, _)| *bytes));
        for queue in &measured.queues {
            let held = |held: Held| [held.messages, held.bytes, u64::from(held.at_least)];
            head.push(queue.bytes);
            head.extend(
                held(queue.receiver_outside_mpi).into_iter().chain(held(queue.receiver_in_mpi)),
            );
        }
    }
    let head: Sample = head.into_iter().map(|number| number as f64).collect();
    let head = at_zero(world, from, head);
    let mut numbers = head.values().iter().map(|number| *number as u64);
    let mut next = || numbers.next().unwrap_or(0);
    let eager = EagerLimit { bytes: next(), at_least: next() != 0 };
    let count = next() as usize;
    let sizes: Vec<u64> = (0..count).map(|_| next()).collect();
    let rest: Vec<u64> = numbers.collect();
    let held = |n: &[u64]| Held { messages: n[0], bytes: n[1], at_least: n[2] != 0 };
    let queues = rest.chunks_exact(7).map(|n| QueueSize {
        bytes: n[0],
        receiver_outside_mpi: held(&n[1..4]),
        receiver_in_mpi: held(&n[4..7]),
    });
    let mut samples = match measured {
        Some(measured) => measured.sizes,
        None => sizes.into_iter().map(|bytes| (bytes, SizeSamples::default())).collect(),
    };
    for (_, sample) in &mut samples {
        for one in sample.all_mut() {
            *one = at_zero(world, from, std::mem::take(one));
        }
    }
    Some(ClassSamples { eager, sizes: samples, queues: queues.collect() })
}
