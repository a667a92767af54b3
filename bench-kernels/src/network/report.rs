//! The output of `kernels network`: document, rows and tables, made from the samples of each class.

use serde::Serialize;

use super::ClassSamples;
use super::classes::Class;
use super::pair::SizeSamples;
use super::queue::{EagerLimit, Held, QueueSize};
use crate::conditions::Conditions;
use crate::output::{self, Results, aligned, prefixed, row, seconds};
use crate::pieces::{Piece, Point, pieces};
use crate::sample::{Figure, Sample};
use crate::world::{World, bytes_of, bytes_of_mut};

/// Version of the document, incremented when a key changes its meaning.
pub const VERSION: u32 = 1;
/// The word of LogP: eight bytes.
const WORD_BYTES: u64 = 8;
const MOVE: i32 = 31;

/// The whole result.
#[derive(Serialize)]
pub struct Report {
    pub kernel: &'static str,
    pub version: u32,
    pub mpi: String,
    pub ranks: i32,
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

impl Results for Report {
    fn text(&self) -> String {
        let mut text = format!(
            "{}, {} ranks, counter {} at {:.1} MHz, {} rounds after {} of warm-up\n",
            self.mpi,
            self.ranks,
            self.counter,
            self.counter_hz / 1e6,
            self.repetitions,
            self.warmup_rounds
        );
        text += &(self.conditions.lines().join("\n") + "\n");
        self.classes.iter().for_each(|class| text += &class.text());
        text
    }
}

impl ClassReport {
    fn text(&self) -> String {
        let mut text = format!(
            "\n{}: ranks {} and {} ({}, {})\n",
            self.class, self.ranks[0], self.ranks[1], self.hosts[0], self.hosts[1]
        );
        let mut rows = vec![row(&[
            "bytes",
            "RTT/2",
            "±",
            "o_s",
            "o_r",
            "gap",
            "one way",
            "both ways",
            "outliers",
        ])];
        for size in &self.sizes {
            let half = &size.half_rtt_s;
            rows.push(vec![
                size.bytes.to_string(),
                seconds(half.median),
                format!("{:.1} %", (half.high - half.low) / 2.0 / half.median * 100.0),
                seconds(size.send_overhead_s.median),
                seconds(size.receive_overhead_s.median),
                seconds(size.gap_s.median),
                prefixed(size.one_way_bytes_per_s.median) + "B/s",
                prefixed(size.both_ways_bytes_per_s.median) + "B/s",
                half.outliers.to_string(),
            ]);
        }
        text += &output::aligned(&rows);
        text += &self.protocol_text();
        let mut rows = vec![row(&[
            "piece of",
            "from",
            "to bytes",
            "fixed",
            "per byte",
            "bandwidth",
            "worst misfit",
        ])];
        for (name, pieces) in [("RTT/2", &self.fits.half_rtt), ("gap g + (s-1)G", &self.fits.gap)] {
            for piece in pieces {
                rows.push(vec![
                    name.to_owned(),
                    piece.from_bytes.to_string(),
                    piece.to_bytes.to_string(),
                    seconds(piece.fixed_s),
                    seconds(piece.per_byte_s),
                    match piece.per_byte_s > 0.0 {
                        true => prefixed(1.0 / piece.per_byte_s) + "B/s",
                        false => "-".into(),
                    },
                    format!("{:.0} %", piece.worst_misfit * 100.0),
                ]);
            }
        }
        text += &("\n".to_owned() + &aligned(&rows));
        text += &self.queues_text();
        if self.flows.iter().any(|flow| flow.partners > 1) {
            let mut rows =
                vec![row(&["several partners", "partners", "bytes", "together", "each"])];
            for flow in &self.flows {
                let rate = flow.bytes_per_s.median;
                rows.push(vec![
                    flow.shape.to_owned(),
                    flow.partners.to_string(),
                    flow.bytes.to_string(),
                    prefixed(rate) + "B/s",
                    prefixed(rate / flow.partners as f64) + "B/s",
                ]);
            }
            text += &("\n".to_owned() + &aligned(&rows));
        }
        text
    }

    fn protocol_text(&self) -> String {
        let limit = match self.eager_limit {
            EagerLimit { bytes, at_least: true } => {
                format!("eager up to the largest size tried, {bytes} bytes: no switch found")
            }
            EagerLimit { bytes: 0, .. } => {
                "no message is sent eagerly: every send waits for its receive".into()
            }
            EagerLimit { bytes, .. } => format!("eager up to {bytes} bytes, rendezvous above"),
        };
        let latency = match (&self.latency.reason, self.latency.latency_s) {
            (None, Some(latency)) => {
                format!("L = {} for {} bytes", seconds(latency), self.latency.bytes)
            }
            (reason, _) => {
                format!("L cannot be identified: {}", reason.as_deref().unwrap_or_default())
            }
        };
        let others: Vec<String> = (self.switches.iter().filter(|switch| switch.kind == "slope"))
            .map(|switch| format!("{} to {}", switch.after_bytes, switch.before_bytes))
            .collect();
        let others = match others.is_empty() {
            true => String::new(),
            false => format!("further changes of slope between {} bytes\n", others.join(", ")),
        };
        format!("\n{limit}\n{others}{latency}\n")
    }

    fn queues_text(&self) -> String {
        if self.queues.is_empty() {
            return String::new();
        }
        let held = |held: Held| {
            let least = if held.at_least { ">=" } else { "" };
            format!("{least}{} ({least}{}B)", held.messages, prefixed(held.bytes as f64))
        };
        let mut rows = vec![row(&[
            "queues, bytes",
            "SQ + TQ: receiver outside MPI",
            "with RQ: receiver in MPI",
        ])];
        for queue in &self.queues {
            rows.push(vec![
                queue.bytes.to_string(),
                held(queue.receiver_outside_mpi),
                held(queue.receiver_in_mpi),
            ]);
        }
        "\n".to_owned()
            + &aligned(&rows)
            + "messages that complete on the sender's side with no receive posted\n"
    }
}
