//! Generated streams that behave like real programs: loops of calls, varying times, request handles
//! of both kinds.

use trace_format::encoded::Words;
use trace_format::layout::*;

/// Step of the simulated counter: it counts nanoseconds in steps, as that of some processors does.
const STEP: u64 = 26;

/// Functions of the simulated programs. Their numbers have no meaning.
#[derive(Clone, Copy)]
enum Call {
    Irecv,
    Isend,
    Waitall,
    Send,
    Recv,
    Allreduce,
    Sendrecv,
    Iprobe,
    Wait,
    Probe,
    Bcast,
}

/// How the simulated library assigns request handles.
#[derive(Clone, Copy, PartialEq)]
enum Handles {
    /// The one freed last is reused first, as with lists of free objects.
    Recycled,
    /// One after the other.
    Increasing,
}

/// Writes events as the recorder does.
struct Program {
    slots: Vec<Words>,
    now: u64,
    state: u64,
    handles: Handles,
    free: Vec<u32>,
    next_handle: u32,
}

impl Program {
    fn new(handles: Handles) -> Self {
        let free = (0..256).map(|n| 0x0123_4500 + 0x28 * n).collect();
        let (slots, state) = (Vec::new(), 0x9e37_79b9_7f4a_7c15);
        Self { slots, now: STEP * 1_000_000_007, state, handles, free, next_handle: 0x0c00_0001 }
    }

    fn random(&mut self) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn random_below(&mut self, limit: u64) -> u64 {
        (self.random() >> 11) % limit
    }

    /// A time in steps of the counter, log-normally distributed: median in nanoseconds, spread in
    /// e-folds.
    fn time(&mut self, median_ns: f64, spread: f64) -> u64 {
        let uniform = |bits: u64| ((bits >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
        let (one, other) = (uniform(self.random()), uniform(self.random()));
        let normal = (-2.0 * one.ln()).sqrt() * (std::f64::consts::TAU * other).cos();
        let ticks = median_ns * 2.6 * (spread * normal).exp();
        (ticks / STEP as f64) as u64 * STEP
    }

    fn compute(&mut self, median_ns: f64, spread: f64) {
        self.now += self.time(median_ns, spread);
    }

    fn handle(&mut self) -> u32 {
        if self.handles == Handles::Recycled {
            return self.free.pop().unwrap_or(1);
        }
        self.next_handle += 1;
        self.next_handle
    }

    fn release(&mut self, handle: u32) {
        if self.handles == Handles::Recycled {
            self.free.push(handle);
        }
    }

    /// Stores an event with its continuations. `site` numbers the call sites of the program.
    #[allow(clippy::too_many_arguments)]
    fn event(
        &mut self,
        call: Call,
        site: u64,
        [peer, tag]: [u32; 2],
        [bytes, request]: [u32; 2],
        (median_ns, spread): (f64, f64),
        behind: &[Words],
    ) {
        self.compute(25.0, 0.3);
        let polls = behind.first().is_some_and(|slot| slot[1] as u32 == CONTINUES_POLLS);
        let (duration, field) = match behind.first() {
            Some(slot) if polls => (slot[3], DURATION_ESCAPE),
            _ => {
                let duration = self.time(median_ns, spread);
                (duration, duration as u32)
            }
        };
        let word = slot_word(field, FIRST_FUNCTION + 17 * (call as u16 + 1), 1);
        let pair = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        let address = 0x5555_5560_1000 + 0x11c * site;
        self.slots.push([self.now, word, pair(peer, tag), pair(bytes, request), address]);
        self.slots.extend(behind);
        self.now += duration;
    }

    fn completed(peer: u32, tag: u32, bytes: u32, request: u32) -> Words {
        let word = slot_word(CONTINUES_REQUEST, CONTINUATION, COMPLETED);
        let object = u64::from(peer) | u64::from(tag) << 32;
        [bytes.into(), word, object, u64::from(request) << 32, 0]
    }

    /// Receives from and sends to each neighbour, then waits for all of them.
    fn exchange(&mut self, site: u64, neighbours: &[u32], bytes: u32, wait: (f64, f64)) {
        let mut behind = Vec::new();
        for (n, peer) in (0..).zip(neighbours) {
            let request = self.handle();
            let from = [*peer, 7 + n];
            self.event(Call::Irecv, site, from, [bytes, request], (140.0, 0.3), &[]);
            behind.push(Self::completed(*peer, 7 + n, bytes, request));
        }
        for (n, peer) in (0..).zip(neighbours) {
            let request = self.handle();
            let to = [*peer, 7 + n];
            self.event(Call::Isend, site + 1, to, [bytes, request], (420.0, 0.5), &[]);
            behind.push(Self::completed(0, 0, 0, request));
        }
        self.compute(20_000.0, 0.2);
        self.event(Call::Waitall, site + 2, [0, 0], [0, 0], wait, &behind);
        for slot in &behind {
            self.release((slot[3] >> 32) as u32);
        }
    }
}

fn stencil(handles: Handles) -> Program {
    let mut program = Program::new(handles);
    for step in 0..1500u64 {
        program.compute(150_000.0, 0.1);
        program.exchange(10, &[3, 5, 12, 20, 1, 63], 32_768, (30_000.0, 0.8));
        program.compute(80_000.0, 0.1);
        program.exchange(20, &[3, 5], 8_192, (8_000.0, 0.8));
        if step % 20 == 0 {
            program.event(Call::Allreduce, 30, [0, 8], [8, 0], (15_000.0, 0.6), &[]);
        }
    }
    program
}

fn conjugate_gradients() -> Program {
    let mut program = Program::new(Handles::Recycled);
    for _ in 0..4000u64 {
        program.exchange(10, &[2, 6], 4_096, (4_000.0, 0.6));
        program.compute(45_000.0, 0.1);
        program.event(Call::Allreduce, 20, [0, 8], [8, 0], (9_000.0, 0.5), &[]);
        program.compute(12_000.0, 0.1);
        program.event(Call::Allreduce, 21, [0, 16], [16, 0], (9_000.0, 0.5), &[]);
        program.compute(7_000.0, 0.1);
    }
    program
}

fn irregular() -> Program {
    let mut program = Program::new(Handles::Recycled);
    let mut under_way = Vec::new();
    for _ in 0..20_000u64 {
        let (peer, site) = (program.random_below(512) as u32, program.random_below(12));
        let bytes = program.time(700.0, 1.2) as u32;
        program.compute(3_000.0, 1.0);
        match program.random_below(3) {
            0 => {
                let request = program.handle();
                let length = [bytes, request];
                program.event(Call::Isend, site, [peer, 5], length, (400.0, 0.5), &[]);
                under_way.push(request);
            }
            1 if !under_way.is_empty() => {
                let index = program.random_below(under_way.len() as u64) as usize;
                let request = under_way.swap_remove(index);
                program.event(Call::Wait, site, [0, 0], [0, request], (900.0, 0.9), &[]);
                program.release(request);
            }
            _ => {
                program.event(Call::Probe, site, [peer, 5], [bytes, 0], (1_500.0, 1.0), &[]);
                program.event(Call::Recv, site, [peer, 5], [bytes, 0], (500.0, 0.6), &[]);
            }
        }
    }
    program
}

fn master() -> Program {
    let mut program = Program::new(Handles::Recycled);
    for _ in 0..15_000u64 {
        let worker = 1 + program.random_below(63) as u32;
        program.event(Call::Recv, 1, [worker, 1], [2_048, 0], (12_000.0, 1.1), &[]);
        program.compute(900.0, 0.4);
        program.event(Call::Send, 2, [worker, 2], [64, 0], (450.0, 0.4), &[]);
    }
    program
}

fn worker() -> Program {
    let mut program = Program::new(Handles::Recycled);
    for _ in 0..15_000u64 {
        program.event(Call::Send, 1, [0, 1], [2_048, 0], (600.0, 0.4), &[]);
        program.event(Call::Recv, 2, [0, 2], [64, 0], (6_000.0, 0.9), &[]);
        program.compute(250_000.0, 0.7);
    }
    program
}

fn polls() -> Program {
    let mut program = Program::new(Handles::Recycled);
    for _ in 0..8_000u64 {
        let count = 1 + program.time(8.0, 1.0) / STEP;
        let inside = STEP * 7 * count + program.time(60.0 * count as f64, 0.4);
        let total = if count == 1 { inside } else { inside + program.time(900.0, 0.8) };
        let word = slot_word(CONTINUES_POLLS, CONTINUATION, 0);
        let behind = [[inside, word, count, total, 0]];
        let times = (0.0, 0.0);
        program.event(Call::Iprobe, 1, [u32::MAX, 9], [0, 0], times, &behind);
        program.event(Call::Recv, 2, [4, 9], [1_024, 0], (500.0, 0.4), &[]);
        program.compute(5_000.0, 0.5);
        program.event(Call::Send, 3, [4, 9], [1_024, 0], (500.0, 0.4), &[]);
    }
    program
}

fn sendrecv() -> Program {
    let mut program = Program::new(Handles::Recycled);
    for step in 0..8_000u64 {
        for (site, (to, from)) in (0..).zip([(1, 3), (3, 1), (8, 24)]) {
            let word = slot_word(CONTINUES_RECEIVE, CONTINUATION, 0);
            let behind = [[16_384, word, from | 4 << 32, 0, 0]];
            let to = [to, 4];
            program.event(Call::Sendrecv, site, to, [16_384, 0], (7_000.0, 0.6), &behind);
        }
        program.compute(90_000.0, 0.15);
        if step % 8 == 0 {
            let root = (step / 8 % 32) as u32;
            program.event(Call::Bcast, 9, [root, 64], [0, 0], (3_000.0, 0.5), &[]);
        }
    }
    program
}

fn waits_for_eight(handles: Handles) -> Program {
    let mut program = Program::new(handles);
    for _ in 0..2_500u64 {
        program.compute(60_000.0, 0.3);
        program.exchange(10, &[1, 2, 3, 4], 512, (3_000.0, 0.8));
    }
    program
}

fn noise() -> Program {
    let mut program = Program::new(Handles::Recycled);
    for _ in 0..30_000 {
        let words = std::array::from_fn(|_| program.random());
        program.slots.push(words);
    }
    program
}

/// The streams by name.
pub fn streams() -> Vec<(String, Vec<Words>)> {
    let programs = [
        ("stencil, recycled handles", stencil(Handles::Recycled)),
        ("stencil, increasing handles", stencil(Handles::Increasing)),
        ("conjugate gradients", conjugate_gradients()),
        ("irregular peers and bytes", irregular()),
        ("master of 63 workers", master()),
        ("worker", worker()),
        ("runs of polls", polls()),
        ("MPI_Sendrecv", sendrecv()),
        ("waits for 8, recycled", waits_for_eight(Handles::Recycled)),
        ("waits for 8, increasing", waits_for_eight(Handles::Increasing)),
        ("noise", noise()),
    ];
    programs.into_iter().map(|(name, program)| (name.into(), program.slots)).collect()
}
