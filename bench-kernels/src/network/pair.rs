//! Times of messages between two ranks: one repetition of every time that LogP consists of, for one
//! message size (after Touyama and Horiguchi).
//!
//! PRTT(n, d, s) is the time of n messages of s bytes, with a delay d between consecutive ones, up
//! to the reply of s bytes to the last one. PRTT(1, 0, s) is the round trip.

use crate::buffer::Buffer;
use crate::network::flow::{self, Edge};
use crate::sample::Sample;
use crate::world::World;

const PING: i32 = 1;
const BURST: i32 = 2;
const GO: i32 = 3;
/// Duration of a batch of round trips in seconds: long compared with a counter read and a delayed
/// poll.
const BATCH_S: f64 = 1e-3;
/// Maximum number of round trips in a batch.
const MAX_TRIPS: f64 = 64.0;
/// Maximum number of messages in a burst.
const MAX_BURST: usize = 16;
/// Maximum size of a burst in bytes, if four messages fit.
const BURST_BYTES: usize = 4 << 20;

/// Two ranks; the first measures.
#[derive(Clone, Copy)]
pub struct Pair<'w> {
    /// All ranks.
    pub world: &'w World,
    /// The rank whose clock measures.
    pub first: i32,
    /// Its partner.
    pub second: i32,
}

/// Repetitions of all times at one message size, kept by the first rank.
#[derive(Clone, Debug, Default)]
pub struct SizeSamples {
    /// Half a round trip, seconds.
    pub half_rtt_s: Sample,
    /// gap(s) = (PRTT(n,0,s) − PRTT(1,0,s))/(n−1), seconds: g + (s−1)G.
    pub gap_s: Sample,
    /// o_s(s) = (PRTT(n,d,s) − PRTT(1,0,s))/(n−1) − d with d = PRTT(1,0,s), seconds.
    pub send_overhead_s: Sample,
    /// Duration of a receive whose message has already arrived, seconds.
    pub receive_overhead_s: Sample,
    /// RTT/2 − o_s − o_r of the same repetition, seconds.
    pub latency_s: Sample,
    /// Bytes per second, one way.
    pub one_way_bytes_per_s: Sample,
    /// Bytes per second, both ways at once, counting both.
    pub both_ways_bytes_per_s: Sample,
}

impl SizeSamples {
    /// All samples in a fixed order.
    pub fn all_mut(&mut self) -> [&mut Sample; 7] {
        let Self {
            half_rtt_s,
            gap_s,
            send_overhead_s,
            receive_overhead_s,
            latency_s,
            one_way_bytes_per_s,
            both_ways_bytes_per_s,
        } = self;
        [
            half_rtt_s,
            gap_s,
            send_overhead_s,
            receive_overhead_s,
            latency_s,
            one_way_bytes_per_s,
            both_ways_bytes_per_s,
        ]
    }
}

/// Buffers of one rank, large enough for the largest size.
pub struct Buffers {
    out: Buffer,
    back: Buffer,
    /// Buffers of flows.
    pub flow: flow::Buffers,
}

impl Buffers {
    /// Buffers for messages of up to `bytes` bytes.
    pub fn new(bytes: usize) -> Self {
        let mut out = Buffer::filled(bytes, 0);
        out.iter_mut().enumerate().for_each(|(at, byte)| *byte = (at * 31 + at / 257) as u8);
        Self { out, back: Buffer::filled(bytes, 0), flow: flow::Buffers::default() }
    }
}

impl Pair<'_> {
    fn is_first(&self) -> bool {
        self.world.rank == self.first
    }

    /// Waits until both ranks are present.
    pub fn meet(&self) {
        let (mut word, world) = ([0_u8; 1], self.world);
        if self.is_first() {
            world.receive(&mut word, self.second, GO);
            world.send(&word, self.second, GO);
        } else {
            world.send(&word, self.first, GO);
            world.receive(&mut word, self.first, GO);
        }
    }

    /// Makes one repetition of everything at one size; `known` are the earlier repetitions. Returns
    /// the number of bytes that came back wrong.
    pub fn repeat(&self, bytes: usize, known: &mut SizeSamples, buffers: &mut Buffers) -> u64 {
        let seconds_per_tick = self.world.seconds_per_tick();
        let mut wrong = 0;

        // The first rank decides how many trips make a batch and tells the other.
        self.meet();
        let rtt_guess_s = match known.half_rtt_s.values().is_empty() {
            true => self.round_trips(1, bytes, buffers) as f64 * seconds_per_tick,
            false => {
                self.round_trips(1, bytes, buffers);
                2.0 * known.half_rtt_s.median()
            }
        };
        let trips = (BATCH_S / rtt_guess_s.max(1e-9)).clamp(1.0, MAX_TRIPS) as u64;
        let [trips, delay_ticks] = self.tell([trips, (rtt_guess_s / seconds_per_tick) as u64]);

        let rtt_s =
            self.round_trips(trips, bytes, buffers) as f64 * seconds_per_tick / trips as f64;
        if self.is_first() {
            wrong += (0..bytes).filter(|&at| buffers.back[at] != buffers.out[at]).count() as u64;
            buffers.back[..bytes].fill(0);
        }

        // Bursts without and with delays. The delay only has to exceed the usual time of a round
        // trip; the same delay is used in the formula.
        let n = (BURST_BYTES / bytes.max(1)).clamp(4, MAX_BURST);
        let turns = trips.div_ceil(8);
        let per_message = |ticks: u64| {
            (ticks as f64 / turns as f64 * seconds_per_tick - rtt_s) / (n as f64 - 1.0)
        };
        self.meet();
        let gap_s = per_message(self.bursts(turns, n, 0, bytes, buffers));
        self.meet();
        let delay_s = delay_ticks as f64 * seconds_per_tick;
        let send_s = per_message(self.bursts(turns, n, delay_ticks, bytes, buffers)) - delay_s;
        self.meet();
        let receive_s = self.receive_of_waiting(turns, 2 * delay_ticks, bytes, buffers) as f64
            * seconds_per_tick
            / turns as f64;

        let (there, back) =
            (Edge::new(self.first, self.second), Edge::new(self.second, self.first));
        let window = flow::window(bytes);
        let flow = &mut buffers.flow;
        let one_way = flow::run(self.world, &[there], bytes, window, flow, &mut wrong);
        let both = flow::run(self.world, &[there, back], bytes, window, flow, &mut wrong);
        if self.is_first() {
            known.half_rtt_s.add(rtt_s / 2.0);
            known.gap_s.add(gap_s);
            known.send_overhead_s.add(send_s);
            known.receive_overhead_s.add(receive_s);
            known.latency_s.add(rtt_s / 2.0 - send_s - receive_s);
            known.one_way_bytes_per_s.add(one_way.unwrap_or(f64::NAN));
            known.both_ways_bytes_per_s.add(both.unwrap_or(f64::NAN));
        }
        wrong
    }

    /// The first rank's numbers, on both ranks.
    fn tell(&self, numbers: [u64; 2]) -> [u64; 2] {
        let mut numbers = numbers;
        let bytes = crate::world::bytes_of_mut(&mut numbers);
        match self.is_first() {
            true => self.world.send(bytes, self.second, GO),
            false => self.world.receive(bytes, self.first, GO),
        }
        numbers
    }

    /// Ticks of `trips` round trips, on the first rank.
    fn round_trips(&self, trips: u64, bytes: usize, buffers: &mut Buffers) -> u64 {
        let (world, peer) = (self.world, self.peer());
        let (out, back) = (&buffers.out[..bytes], &mut buffers.back[..bytes]);
        let begin = world.ticks();
        for _ in 0..trips {
            if self.is_first() {
                world.send(out, peer, PING);
                world.receive(back, peer, PING);
            } else {
                // Never send the buffer that was just received: it would move between the caches on
                // every trip, and customary ping-pongs have one buffer for each direction.
                world.receive(back, peer, PING);
                world.send(out, peer, PING);
            }
        }
        world.ticks().wrapping_sub(begin)
    }

    /// Ticks of `turns` times PRTT(n, d, s), on the first rank.
    fn bursts(
        &self,
        turns: u64,
        n: usize,
        delay_ticks: u64,
        bytes: usize,
        buffers: &mut Buffers,
    ) -> u64 {
        let (world, peer) = (self.world, self.peer());
        let (out, back) = (&buffers.out[..bytes], &mut buffers.back[..bytes]);
        let begin = world.ticks();
        for _ in 0..turns {
            if self.is_first() {
                for number in 0..n {
                    if number > 0 && delay_ticks > 0 {
                        spin(world, delay_ticks);
                    }
                    world.send(out, peer, BURST);
                }
                world.receive(back, peer, BURST);
            } else {
                for _ in 0..n {
                    world.receive(back, peer, BURST);
                }
                world.send(out, peer, BURST);
            }
        }
        world.ticks().wrapping_sub(begin)
    }

    /// Ticks of `turns` receives of the first rank, each begun `wait_ticks` after it requested the
    /// message. By then the message has come as far as it can without the receiver.
    fn receive_of_waiting(
        &self,
        turns: u64,
        wait_ticks: u64,
        bytes: usize,
        buffers: &mut Buffers,
    ) -> u64 {
        let (world, peer) = (self.world, self.peer());
        let (out, back) = (&buffers.out[..bytes], &mut buffers.back[..bytes]);
        let mut word = [0_u8; 1];
        let mut ticks = 0;
        for _ in 0..turns {
            if self.is_first() {
                world.send(&word, peer, GO);
                spin(world, wait_ticks);
                let begin = world.ticks();
                world.receive(back, peer, BURST);
                ticks += world.ticks().wrapping_sub(begin);
            } else {
                world.receive(&mut word, peer, GO);
                world.send(out, peer, BURST);
            }
        }
        ticks
    }

    /// The other rank.
    pub fn peer(&self) -> i32 {
        if self.is_first() { self.second } else { self.first }
    }
}

/// Keeps the processor busy for `ticks`, outside MPI.
#[inline(always)]
pub fn spin(world: &World, ticks: u64) {
    let begin = world.ticks();
    while world.ticks().wrapping_sub(begin) < ticks {
        std::hint::spin_loop();
    }
}
