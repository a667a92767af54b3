//! Random programs, simulated by a model of MPI that records each wait as it happens. The analysis
//! must find exactly these waits, to the tick.

use proptest::prelude::*;

use super::*;
use crate::synthetic_messages::Attributes;
use trace_format::header::COMMUNICATOR_SELF;

mod windows;

/// A communication step.
#[derive(Debug, Clone)]
enum Step {
    /// A message: sender, receiver, and how it is sent and received.
    Message(usize, usize, Variant),
    /// Messages from several senders to one receiver, which completes them with one MPI_Waitall.
    Several(Vec<usize>, usize),
    Barrier,
    Fence,
    Split,
    Allreduce,
    /// An MPI_Allreduce of every other rank, on a communicator of theirs.
    AllreduceOfSome,
    /// MPI_Iallreduce, work, MPI_Wait.
    Iallreduce,
    Scan,
    Broadcast(usize),
    Reduce(usize),
    /// Each rank's role in an epoch of general active target synchronisation, and the call in which
    /// the origins block.
    Exposure(Vec<Role>, Blocking),
    /// Some ranks lock one rank's memory; for each of them whether its lock is exclusive.
    Locks(Vec<Option<bool>>, usize),
    /// A neighbourhood collective of all ranks in a row.
    Neighbourhood,
    /// Barriers of each rank with itself, as many as stated, at the ranks' own times.
    Alone(usize),
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Role {
    Origin,
    Target,
    Nothing,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Blocking {
    Start,
    Put,
    Complete,
}

#[derive(Debug, Clone, Copy)]
enum Variant {
    /// MPI_Send and MPI_Recv.
    Eager,
    /// MPI_Ssend and MPI_Recv.
    Synchronous,
    /// MPI_Irecv, work, MPI_Wait.
    Later,
    /// The same from any source.
    AnySource,
    /// MPI_Send and MPI_Irecv; MPI_Test fails several times, then succeeds.
    Polled,
    /// MPI_Bsend, MPI_Probe, then MPI_Recv.
    Probed,
    /// Received by the second thread of the rank.
    OnThread,
}

/// A step, and for each rank the ticks it computes before its part.
type Planned = (Step, Vec<u64>);

fn step(ranks: usize) -> impl Strategy<Value = Step> {
    let variant = prop_oneof![
        Just(Variant::Eager),
        Just(Variant::Synchronous),
        Just(Variant::Later),
        Just(Variant::AnySource),
        Just(Variant::Polled),
        Just(Variant::Probed),
        Just(Variant::OnThread),
    ];
    let message = (0..ranks, 1..ranks, variant)
        .prop_map(move |(from, by, variant)| Step::Message(from, (from + by) % ranks, variant));
    let several = (0..ranks, 1..ranks).prop_map(move |(to, count)| {
        Step::Several((1..=count).map(|by| (to + by) % ranks).collect(), to)
    });
    let roles = proptest::collection::vec(
        prop_oneof![Just(Role::Origin), Just(Role::Target), Just(Role::Nothing)],
        ranks,
    );
    let blocking =
        prop_oneof![Just(Blocking::Start), Just(Blocking::Put), Just(Blocking::Complete)];
    let locks = proptest::collection::vec(proptest::option::of(any::<bool>()), ranks);
    prop_oneof![
        6 => message,
        2 => several,
        1 => Just(Step::Barrier),
        1 => Just(Step::Fence),
        1 => Just(Step::Split),
        1 => Just(Step::Allreduce),
        1 => Just(Step::AllreduceOfSome),
        1 => Just(Step::Iallreduce),
        1 => Just(Step::Scan),
        1 => (0..ranks).prop_map(Step::Broadcast),
        1 => (0..ranks).prop_map(Step::Reduce),
        2 => (roles, blocking).prop_map(|(roles, blocking)| Step::Exposure(roles, blocking)),
        2 => (locks, 0..ranks).prop_map(|(locks, target)| Step::Locks(locks, target)),
        1 => Just(Step::Neighbourhood),
    ]
}

fn program() -> impl Strategy<Value = Vec<Planned>> {
    (2usize..=12).prop_flat_map(|ranks| {
        let works = proptest::collection::vec(0u64..2_000, ranks);
        proptest::collection::vec((step(ranks), works), 1..60)
    })
}

/// The files of programs with loops: some steps, then a few steps that are repeated with unequal
/// work, then steps of each rank alone.
pub(crate) fn runs_with_loops() -> impl Strategy<Value = Vec<SyntheticRank>> {
    let of_ranks = |ranks: usize| {
        let steps = |count: std::ops::Range<usize>| {
            let works = proptest::collection::vec(0u64..2_000, ranks);
            proptest::collection::vec((step(ranks), works), count)
        };
        (steps(0..5), steps(1..4), 10usize..20, proptest::collection::vec(0u64..2_000, ranks))
    };
    (2usize..=6).prop_flat_map(of_ranks).prop_map(|(before, mut body, turns, alone)| {
        let mut simulator = Simulator::new(alone.len());
        before.iter().for_each(|planned| simulator.simulate(planned));
        for turn in 0..turns {
            simulator.enter_regions(turn);
            for (step, works) in &mut body {
                works.rotate_left(1);
                simulator.simulate(&(step.clone(), works.clone()));
            }
            simulator.leave_regions(turn);
        }
        simulator.simulate(&(Step::Alone(turns + 1), alone));
        simulator.ranks
    })
}

/// Ticks that a call takes apart from waiting.
const CALL: u64 = 7;

/// A wait that the simulation produced: state, rank, delaying rank, begin, length.
type ExpectedWait = (State, u32, u32, i64, i64);

/// Simulates programs.
struct Simulator {
    ranks: Vec<SyntheticRank>,
    now: Vec<u64>,
    /// The same for the second threads.
    now_on_thread: Vec<u64>,
    request: u32,
    /// Number of windows, and of groups on each rank. Every step has its own.
    windows: u32,
    expected: Vec<ExpectedWait>,
    /// For each message the receiving rank, when the receive returned, and when the message was
    /// sent.
    received: Vec<(usize, u64, u64)>,
    /// For each late sender its index in `expected`, when the receive returned, and when the
    /// message was sent.
    late_senders: Vec<(usize, u64, u64)>,
}

impl Simulator {
    fn new(count: usize) -> Self {
        let ranks = (0..count as u32)
            .map(|number| {
                let mut rank = SyntheticRank::level_1(number, count as u32, END);
                rank.threads.push(Vec::new());
                rank.region_name(SOLVE, "solve").region_name(HELP, "help");
                rank.communicator(ROW, 1, (55, 0), number, count as u32, &[(0, 1, count as u32)]);
                if number % 2 == 0 {
                    let even = (count as u32).div_ceil(2);
                    rank.communicator(EVEN, 1, (77, 0), number / 2, even, &[(0, 2, even)]);
                }
                rank.neighbours(
                    ROW,
                    &neighbours(number as usize, count).map(|of| of.map_or(-1, |rank| rank as i32)),
                );
                rank
            })
            .collect();
        let now = vec![T; count];
        let (expected, received, late_senders) = Default::default();
        let now_on_thread = now.clone();
        let (request, windows) = (10, 0);
        Self { ranks, now, now_on_thread, request, windows, expected, received, late_senders }
    }

    fn note(&mut self, state: State, rank: usize, delayed_by: usize, (begin, until): (u64, u64)) {
        if until > begin {
            let begin_ticks = begin as i64 - BEGIN;
            let ticks = (until - begin) as i64;
            self.expected.push((state, rank as u32, delayed_by as u32, begin_ticks, ticks));
        }
    }

    /// Records that a receive waited for a message, which was sent and received at the given times.
    fn late_sender(
        &mut self,
        (to, from): (usize, usize),
        waited: (u64, u64),
        (sent, left): (u64, u64),
    ) {
        if waited.1 > waited.0 {
            self.late_senders.push((self.expected.len(), left, sent));
            self.note(State::LateSender, to, from, waited);
        }
    }

    /// All expected waits. A late sender is in the wrong order if the rank later received a message
    /// sent earlier.
    fn all(&self) -> Vec<ExpectedWait> {
        let mut all = self.expected.clone();
        for (number, left, sent) in &self.late_senders {
            let rank = all[*number].1 as usize;
            let in_wrong_order = |(by, later, earlier): &(usize, u64, u64)| {
                *by == rank && later > left && earlier < sent
            };
            if self.received.iter().any(in_wrong_order) {
                all[*number].0 = State::LateSenderWrongOrder;
            }
        }
        all
    }

    /// Lets the ranks enter a region: in some turns with both threads, in others with the first. On
    /// every third rank the second thread has a region of its own.
    fn enter_regions(&mut self, turn: usize) {
        self.mark_regions(turn, SyntheticRank::region_begin);
    }

    fn leave_regions(&mut self, turn: usize) {
        self.mark_regions(turn, SyntheticRank::region_end);
    }

    fn mark_regions(
        &mut self,
        turn: usize,
        mark: fn(&mut SyntheticRank, usize, u32, u64) -> &mut SyntheticRank,
    ) {
        let moments = self.now.iter().zip(&self.now_on_thread);
        for (number, (rank, (now, on_thread))) in self.ranks.iter_mut().zip(moments).enumerate() {
            mark(rank, 0, SOLVE, *now);
            if turn.is_multiple_of(3) {
                mark(rank, 1, SOLVE, *on_thread);
            } else if number.is_multiple_of(3) {
                mark(rank, 1, HELP, *on_thread);
            }
        }
    }

    fn next_request(&mut self) -> u32 {
        self.request += 1;
        self.request
    }

    fn simulate(&mut self, (step, works): &Planned) {
        match step {
            Step::Message(from, to, variant) => self.message((*from, *to), *variant, works),
            Step::Several(from, to) => self.several(from, *to, works),
            Step::Barrier => self.collective("MPI_Barrier", works, 0),
            Step::Fence => self.collective("MPI_Win_fence", works, 0),
            Step::Split => self.collective("MPI_Comm_split", works, 0),
            Step::Allreduce => self.collective("MPI_Allreduce", works, 0),
            Step::AllreduceOfSome => self.allreduce_of_some(works),
            Step::Iallreduce => self.iallreduce(works),
            Step::Scan => self.collective("MPI_Scan", works, 0),
            Step::Broadcast(root) => self.collective("MPI_Bcast", works, *root),
            Step::Reduce(root) => self.collective("MPI_Reduce", works, *root),
            Step::Exposure(roles, blocking) => self.exposure(roles, *blocking, works),
            Step::Locks(locks, target) => self.locks(locks, *target as u32, works),
            Step::Neighbourhood => self.neighbourhood(works),
            Step::Alone(times) => self.alone(*times, works),
        }
    }

    fn message(&mut self, (from, to): (usize, usize), variant: Variant, works: &[u64]) {
        let request = self.next_request();
        // If both threads received messages of the same tag, either might take one.
        let tag = if matches!(variant, Variant::OnThread) { 7 } else { 5 };
        let (send, source) = (on_world(to as i32, tag, 8), on_world(from as i32, tag, 8));
        let sent = self.now[from] + works[from];
        let name = if matches!(variant, Variant::Synchronous) { "MPI_Ssend" } else { "MPI_Bsend" };
        let mut left = sent + CALL;
        match variant {
            Variant::Eager | Variant::Synchronous => {
                let begin = self.now[to] + works[to];
                let end = begin.max(sent) + CALL;
                self.ranks[to].call_with("MPI_Recv", begin, end, source);
                self.late_sender((to, from), (begin, sent), (sent, end));
                self.now[to] = end;
                if matches!(variant, Variant::Synchronous) {
                    left = sent.max(begin) + CALL;
                    self.note(State::LateReceiver, from, to, (sent, begin));
                }
            }
            Variant::Probed => {
                let begin = self.now[to] + works[to];
                let end = begin.max(sent) + CALL;
                self.ranks[to].call_with("MPI_Probe", begin, end, source);
                self.late_sender((to, from), (begin, sent), (sent, end + CALL));
                self.ranks[to].call_with("MPI_Recv", end, end + CALL, source);
                self.now[to] = end + CALL;
            }
            Variant::OnThread => {
                let begin = self.now_on_thread[to] + works[to];
                let end = begin.max(sent) + CALL;
                self.ranks[to].thread_call_with(1, "MPI_Recv", begin, end, source);
                self.late_sender((to, from), (begin, sent), (sent, end));
                self.now_on_thread[to] = end;
            }
            Variant::Later | Variant::AnySource | Variant::Polled => {
                let posted = self.now[to];
                let begin = posted + CALL + works[to];
                let posts = match variant {
                    Variant::AnySource => on_world(ANY_SOURCE, 5, 1000),
                    _ => source,
                };
                let posts = posts.request(request);
                self.ranks[to].call_with("MPI_Irecv", posted, posted + CALL, posts);
                let done = completed(request, from as i32, 5, 8);
                let end = begin.max(sent) + CALL;
                if !matches!(variant, Variant::Polled) {
                    self.ranks[to].call_with("MPI_Wait", begin, end, done);
                    self.late_sender((to, from), (begin, sent), (sent, end));
                } else {
                    // Polls fill the time up to the message, half of it inside MPI.
                    if sent > begin + 1 {
                        let inside = (sent - begin) / 2;
                        self.ranks[to].polls("MPI_Test", begin, sent, 3, inside);
                        self.late_sender((to, from), (begin, begin + inside), (sent, end));
                    }
                    self.ranks[to].call_with("MPI_Test", end - CALL, end, done);
                }
                self.now[to] = end;
            }
        }
        let by = if matches!(variant, Variant::OnThread) { &self.now_on_thread } else { &self.now };
        self.received.push((to, by[to], sent));
        self.ranks[from].call_with(name, sent, left, send);
        self.now[from] = left;
    }

    fn several(&mut self, from: &[usize], to: usize, works: &[u64]) {
        let (mut done, mut sends) = (Vec::new(), Vec::new());
        let mut last: Option<(u64, usize)> = None;
        for sender in from {
            let request = self.next_request();
            let posted = self.now[to];
            let source = on_world(*sender as i32, 6, 8);
            self.ranks[to].call_with("MPI_Irecv", posted, posted + 1, source.request(request));
            self.now[to] = posted + 1;
            done.push(completed(request, *sender as i32, 6, 8));
            let sent = self.now[*sender] + works[*sender];
            // Not a standard send, which might have waited for a receive that was posted during the
            // call.
            self.ranks[*sender].call_with(
                "MPI_Bsend",
                sent,
                sent + CALL,
                on_world(to as i32, 6, 8),
            );
            self.now[*sender] = sent + CALL;
            sends.push(sent);
            if last.is_none_or(|(at, by)| {
                (sent, std::cmp::Reverse(*sender)) > (at, std::cmp::Reverse(by))
            }) {
                last = Some((sent, *sender));
            }
        }
        let begin = self.now[to] + works[to];
        let Some((sent, sender)) = last else { return };
        let end = begin.max(sent) + CALL;
        self.ranks[to].several("MPI_Waitall", begin, end, &done);
        self.late_sender((to, sender), (begin, sent), (sent, end));
        self.received.extend(sends.into_iter().map(|sent| (to, end, sent)));
        self.now[to] = end;
    }

    fn collective(&mut self, name: &str, works: &[u64], root: usize) {
        let entered: Vec<u64> = self.now.iter().zip(works).map(|(now, work)| now + work).collect();
        let last_of = |ranks: &mut dyn Iterator<Item = usize>| {
            ranks.map(|rank| (entered[rank], std::cmp::Reverse(rank))).max()
        };
        for rank in 0..entered.len() {
            let mut others = (0..entered.len()).filter(|other| *other != rank);
            let needs = match name {
                "MPI_Bcast" if rank != root => Some((entered[root], std::cmp::Reverse(root))),
                "MPI_Reduce" if rank == root => last_of(&mut others),
                "MPI_Bcast" | "MPI_Reduce" => None,
                "MPI_Scan" => last_of(&mut (0..rank)),
                _ => last_of(&mut others),
            };
            let until = needs.map_or(0, |(at, _)| at).max(entered[rank]);
            let (sends, receives) = match name {
                "MPI_Barrier" | "MPI_Win_fence" | "MPI_Comm_split" => (0, 0),
                "MPI_Bcast" if rank == root => (8, 0),
                "MPI_Bcast" => (0, 8),
                "MPI_Reduce" if rank == root => (8, 8),
                "MPI_Reduce" => (8, 0),
                _ => (8, 8),
            };
            // The detail of a collective operation holds the bytes received.
            let arguments = on_world(root as i32, receives, sends);
            self.ranks[rank].call_with(name, entered[rank], until + CALL, arguments);
            if let Some((at, std::cmp::Reverse(delayed_by))) = needs {
                let state = match name {
                    "MPI_Barrier" => State::WaitAtBarrier,
                    "MPI_Win_fence" => State::OneSided,
                    "MPI_Bcast" => State::LateBroadcast,
                    "MPI_Reduce" => State::EarlyReduce,
                    "MPI_Scan" => State::EarlyScan,
                    _ => State::WaitAtNxn,
                };
                self.note(state, rank, delayed_by, (entered[rank], at));
            }
            self.now[rank] = until + CALL;
        }
    }
}

/// In place of a source.
const ANY_SOURCE: i32 = -1;

/// Regions.
const SOLVE: u32 = 1;
const HELP: u32 = 2;

/// A communicator of every other rank.
const EVEN: u16 = 4;

/// A communicator of all ranks in a row, and the neighbours of a rank in it.
const ROW: u16 = 3;

fn neighbours(rank: usize, count: usize) -> [Option<usize>; 2] {
    [rank.checked_sub(1), Some(rank + 1).filter(|right| *right < count)]
}

/// The last of some entries into calls, ties to the lowest rank.
fn last_of(entries: impl Iterator<Item = (usize, u64)>) -> Option<(usize, u64)> {
    entries.max_by_key(|(rank, at)| (*at, std::cmp::Reverse(*rank)))
}

impl Simulator {
    /// A call of a rank that blocks until a moment, if there is one; returns when it was left.
    fn call_until(
        &mut self,
        rank: usize,
        name: &str,
        (entered, until): (u64, Option<u64>),
        attributes: Attributes,
    ) -> u64 {
        let left = until.unwrap_or(0).max(entered) + CALL;
        self.ranks[rank].call_with(name, entered, left, attributes);
        self.now[rank] = left;
        left
    }

    fn allreduce_of_some(&mut self, works: &[u64]) {
        let members: Vec<usize> = (0..works.len()).step_by(2).collect();
        let entered: Vec<u64> = self.now.iter().zip(works).map(|(now, work)| now + work).collect();
        for rank in &members {
            let others = members.iter().filter(|other| *other != rank);
            let last = last_of(others.map(|other| (*other, entered[*other])));
            let call = (entered[*rank], last.map(|(_, at)| at));
            self.call_until(*rank, "MPI_Allreduce", call, on_world(0, 8, 8).communicator(EVEN));
            if let Some((delayed_by, at)) = last {
                self.note(State::WaitAtNxn, *rank, delayed_by, (entered[*rank], at));
            }
        }
    }

    fn iallreduce(&mut self, works: &[u64]) {
        let request = self.next_request();
        let begun: Vec<u64> = self.now.iter().zip(works).map(|(now, work)| now + work).collect();
        for rank in 0..works.len() {
            let call = (begun[rank], None);
            let posts = on_world(0, 8, 8).request(request);
            let entered = self.call_until(rank, "MPI_Iallreduce", call, posts) + works[rank] / 3;
            let others = (0..works.len()).filter(|other| *other != rank);
            let last = last_of(others.map(|other| (other, begun[other])));
            let wait = (entered, last.map(|(_, at)| at));
            self.call_until(rank, "MPI_Wait", wait, completed(request, 0, 0, 0));
            if let Some((delayed_by, at)) = last {
                self.note(State::WaitAtNxn, rank, delayed_by, (entered, at));
            }
        }
    }

    fn alone(&mut self, times: usize, works: &[u64]) {
        let attributes = on_world(0, 0, 0).communicator(COMMUNICATOR_SELF);
        for (rank, work) in works.iter().enumerate() {
            for _ in 0..times {
                let call = (self.now[rank] + work, None);
                self.call_until(rank, "MPI_Barrier", call, attributes);
            }
        }
    }

    fn neighbourhood(&mut self, works: &[u64]) {
        let count = works.len();
        let entered: Vec<u64> = self.now.iter().zip(works).map(|(now, work)| now + work).collect();
        for rank in 0..count {
            let others = neighbours(rank, count).into_iter().flatten();
            let last = last_of(others.map(|other| (other, entered[other])));
            let call = (entered[rank], last.map(|(_, at)| at));
            let attributes = on_world(0, 8, 8).communicator(ROW);
            self.call_until(rank, "MPI_Neighbor_allgather", call, attributes);
            if let Some((delayed_by, at)) = last {
                self.note(State::WaitAtNxn, rank, delayed_by, (entered[rank], at));
            }
        }
    }
}

proptest! {
    #[test]
    fn waits_are_found_as_they_happened(program in program()) {
        let ranks = program[0].1.len();
        let mut simulator = Simulator::new(ranks);
        program.iter().for_each(|planned| simulator.simulate(planned));
        with_causes(&simulator.ranks, |causes| {
            let rank = |line: u32| causes.lines.all[line as usize].rank;
            let found = causes.waits.iter().filter(|wait| wait.has_delaying_rank());
            let mut found: Vec<ExpectedWait> =
                found.map(|w| (w.state, rank(w.line), rank(w.delayed_by), w.begin, w.ticks)).collect();
            let mut expected = simulator.all();
            found.sort_unstable();
            expected.sort_unstable();
            assert_eq!(found, expected);
            assert_eq!(causes.unknown, []);
        });
    }
}
