//! This rank's counter against another's, by two-way exchanges.
//!
//! In: the partners of [`crate::clock::tree`]. Out: at most one [`Measured`] a phase, against the
//! rank's parent, by the estimator of [`trace_format::clock_estimate`].
//!
//! Nothing here blocks for ever: every wait has a deadline, and who gives up tells its partner.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use trace_format::clock_estimate::{TwoWay, estimate};
use trace_format::header::{ClockBound, ClockExchange, Phase};

use crate::clock::tree::{Partner, partners, partners_among};
use crate::host::counter;
use crate::host::peers;
use crate::mpi::agreement::Participants;
use crate::mpi::library::{Entry, MpiLibrary};
use crate::mpi::messages::{End, Messages};

const TAG: i32 = 4711;
/// Exchanges before those that count: connections are made, caches filled.
const WARM_UP: u32 = 4;
/// Where exchanges are quick, a pair makes more of them in this time …
const PAIR_TIME: Duration = Duration::from_millis(2);
/// … up to so many times as many as were asked for.
const MOST_TIMES: usize = 10;
/// A child ends the exchanges of a pair after this time, if it has enough of them.
const PATIENCE: Duration = Duration::from_millis(100);
const ENOUGH: usize = 10;
/// Time for the second barrier at MPI_Finalize: all ranks have come and are looking.
const SECOND_BARRIER: Duration = Duration::from_secs(2);

/// What the child tells its parent.
const GO_ON: u64 = 0;
const ENOUGH_NOW: u64 = 1;
/// Instead of a counter: the sender gave up.
const GAVE_UP: u64 = u64::MAX;

/// Whom this rank exchanges with, and the calls that it takes.
#[derive(Debug)]
pub struct Exchanger {
    world: usize,
    errors_return: usize,
    byte: usize,
    messages: Messages,
    partners: Vec<Partner>,
    size: u32,
    /// Whether all ranks take part; only then can they meet at MPI_Finalize.
    everyone: bool,
    rounds: u32,
    deadline: Duration,
    finalize_deadline: Duration,
    /// What is sent from and received into.
    outgoing: Cell<&'static AtomicU64>,
    incoming: Cell<&'static AtomicU64>,
}

/// This rank's exchanger; `None` before MPI_Init, at MPI_Finalize, and where there is none.
static OWN: Mutex<Option<Exchanger>> = Mutex::new(None);

/// This rank's exchanger, held until the guard is dropped.
pub fn own() -> MutexGuard<'static, Option<Exchanger>> {
    OWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Memory of a message, never freed: MPI may use it as late as it likes.
fn new_word() -> &'static AtomicU64 {
    Box::leak(Box::default())
}

/// A rank's counter against its parent's.
#[derive(Debug, Clone, Copy)]
pub struct Measured {
    /// The exchange.
    pub exchange: ClockExchange,
    /// The bounds of the hops to the root; `None` where a hop above was not measured.
    pub bound: Option<ClockBound>,
}

/// How far a rank's counter is known against the root's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct RootBound {
    hops: u32,
    bound_ns: u64,
}

impl RootBound {
    const ROOT: Self = Self { hops: 0, bound_ns: 0 };

    /// As a word of a message: hops in the upper byte.
    fn to_word(this: Option<Self>) -> u64 {
        match this {
            Some(Self { hops, bound_ns }) if bound_ns < 1 << 56 && hops < 255 => {
                u64::from(hops) << 56 | bound_ns
            }
            _ => GAVE_UP,
        }
    }

    fn from_word(word: u64) -> Option<Self> {
        (word != GAVE_UP)
            .then_some(Self { hops: (word >> 56) as u32, bound_ns: word & ((1 << 56) - 1) })
    }
}

/// The host of every rank; collective.
fn gather_hosts(world: usize, byte: usize, host: u64, size: u32) -> Option<Vec<u64>> {
    let mut hosts = vec![0u64; size as usize];
    // SAFETY: the arguments of MPI_Allgather; the buffer holds 8 bytes a rank.
    let gathered = unsafe {
        Entry::of(c"PMPI_Allgather")?.call([
            &raw const host as usize,
            8,
            byte,
            hosts.as_mut_ptr() as usize,
            8,
            byte,
            world,
        ])
    };
    gathered.then_some(hosts)
}

impl Exchanger {
    /// Learns the host of every rank. Collective over MPI_COMM_WORLD, which the program has not used
    /// yet, where all ranks take part; else local.
    ///
    /// `None` where the library's constants are not known or a call failed.
    pub fn new(
        library: &MpiLibrary,
        (rank, size): (u32, u32),
        host: u64,
        participants: &Participants,
        rounds: u32,
        (deadline_s, finalize_deadline_s): (f64, f64),
    ) -> Option<Self> {
        let (world, byte) = (library.comm_world()?, library.byte()?);
        let partners = match participants {
            Participants::Everyone => {
                let hosts = gather_hosts(world, byte, host, size)?;
                peers::know_hosts(&hosts, rank);
                partners(&hosts, rank)
            }
            Participants::Some(members) => partners_among(members, rank),
        };
        Some(Self {
            world,
            errors_return: library.errors_return()?,
            byte,
            messages: Messages::new(library)?,
            partners,
            size,
            everyone: *participants == Participants::Everyone,
            rounds,
            deadline: Duration::from_secs_f64(deadline_s),
            finalize_deadline: Duration::from_secs_f64(finalize_deadline_s),
            outgoing: Cell::new(new_word()),
            incoming: Cell::new(new_word()),
        })
    }

    /// Sends bytes from rank 0 to all ranks. Collective; only before the program runs.
    pub fn broadcast(&self, bytes: &mut [u8]) -> bool {
        let Some(entry) = Entry::of(c"PMPI_Bcast") else { return false };
        let (buffer, count) = (bytes.as_mut_ptr() as usize, bytes.len());
        // SAFETY: the buffer holds that many bytes; root 0.
        unsafe { entry.call([buffer, count, self.byte, 0, self.world]) }
    }

    /// Makes this rank's exchanges inside MPI_Init.
    pub fn measure_at_init(&self) -> Option<Measured> {
        self.measure(Phase::Init)
    }

    /// Makes this rank's exchanges at MPI_Finalize, once all ranks are there. `None` where a rank does
    /// not come before the deadline; then nobody waits for anybody.
    pub fn measure_at_finalize(mut self) -> Option<Measured> {
        if !self.meets_everyone() {
            return None;
        }
        self.with_errors_returned(|this| {
            // The first barrier waits for the last rank to come. A rank that came so late that others
            // have given up may still get through it; it does not get through the second.
            if !this.barrier(this.finalize_deadline) || !this.barrier(SECOND_BARRIER) {
                return None;
            }
            this.measure_on_own_communicator(Phase::Finalize)
        })
    }

    /// Makes this rank's exchanges during the run. All ranks are here: they are about to make the same
    /// collective call on MPI_COMM_WORLD, which waits for all of them.
    pub fn measure_during(&mut self) -> Option<Measured> {
        self.with_errors_returned(|this| this.measure_on_own_communicator(Phase::During))
    }

    /// What rank 0 says, on all ranks. Collective over MPI_COMM_WORLD, at a place where the program is
    /// about to make a collective call.
    pub fn told_by_root(&self, mut words: [u64; 2]) -> Option<[u64; 2]> {
        let entry = Entry::of(c"PMPI_Bcast")?;
        // SAFETY: the buffer holds 16 bytes; root 0.
        let told =
            unsafe { entry.call([words.as_mut_ptr() as usize, 16, self.byte, 0, self.world]) };
        told.then_some(words)
    }

    /// Whether there are other ranks, and all of them take part.
    pub fn meets_everyone(&self) -> bool {
        self.size > 1 && self.everyone
    }

    /// Handle of MPI_COMM_WORLD.
    pub fn world(&self) -> usize {
        self.world
    }

    /// Does something while MPI_COMM_WORLD returns errors; the program's error handler is put back.
    fn with_errors_returned(
        &mut self,
        measure: impl FnOnce(&mut Self) -> Option<Measured>,
    ) -> Option<Measured> {
        let mut handler = 0usize;
        let set = Entry::of(c"PMPI_Comm_set_errhandler")?;
        // SAFETY: the arguments of the standard; handles of either width are written into the low bytes
        // of zeroed words.
        unsafe {
            let get = Entry::of(c"PMPI_Comm_get_errhandler")?;
            if !get.call([self.world, &raw mut handler as usize]) {
                return None;
            }
            set.call([self.world, self.errors_return]);
        }
        let measured = measure(self);
        // SAFETY: as above.
        unsafe {
            set.call([self.world, handler]);
            Entry::of(c"PMPI_Errhandler_free")?.call([&raw mut handler as usize]);
        }
        measured
    }

    /// Measures over a communicator that is made for it and freed after it; all ranks are here.
    fn measure_on_own_communicator(&mut self, phase: Phase) -> Option<Measured> {
        let (mut group, mut communicator) = (0usize, 0usize);
        // SAFETY: as in `with_errors_returned`. By the group: MPI_Comm_dup would run the program's
        // attribute callbacks.
        unsafe {
            let made = Entry::of(c"PMPI_Comm_group")?.call([self.world, &raw mut group as usize])
                && Entry::of(c"PMPI_Comm_create")?.call([
                    self.world,
                    group,
                    &raw mut communicator as usize,
                ])
                && Entry::of(c"PMPI_Group_free")?.call([&raw mut group as usize])
                && Entry::of(c"PMPI_Comm_set_errhandler")?.call([communicator, self.errors_return]);
            if !made {
                return None;
            }
            self.messages.go_over(communicator);
            let measured = self.measure(phase);
            self.messages.go_over(self.world);
            Entry::of(c"PMPI_Comm_free")?.call([&raw mut communicator as usize]);
            measured
        }
    }

    /// Whether all ranks came to this barrier before the deadline.
    fn barrier(&self, deadline: Duration) -> bool {
        let mut request = 0usize;
        let Some(entry) = Entry::of(c"PMPI_Ibarrier") else { return false };
        // SAFETY: the arguments of MPI_Ibarrier. A barrier that is not complete cannot be cancelled: its
        // request is left to MPI_Finalize.
        let started = unsafe { entry.call([self.world, &raw mut request as usize]) };
        started && self.messages.complete(&mut request, deadline) == End::Done
    }

    /// With its parent, which gives the measurement, and with its children in the tree as it answers
    /// them. `None` for the root and where the parent was gone.
    fn measure(&self, phase: Phase) -> Option<Measured> {
        let mut measured = None;
        let is_child = self.partners.iter().any(|partner| partner.is_parent);
        let mut bound = (!is_child).then_some(RootBound::ROOT);
        for partner in &self.partners {
            if partner.is_parent {
                measured = self.ask(partner, phase);
                bound = measured
                    .and_then(|found| found.bound)
                    .map(|found| RootBound { hops: found.hops, bound_ns: found.bound_ns });
            } else {
                self.answer(partner.rank, bound);
            }
        }
        measured
    }

    fn ask(&self, parent: &Partner, phase: Phase) -> Option<Measured> {
        let most = self.rounds as usize * MOST_TIMES;
        let ticks = |time: Duration| (time.as_nanos() as f64 / counter::ns_per_tick()) as u64;
        let (pair_time, patience) = (ticks(PAIR_TIME), ticks(PATIENCE));
        // Whether the n-th exchange shall be the last, so many ticks after the first.
        let is_last = |count: usize, elapsed: u64| {
            count >= most
                || count >= self.rounds as usize && elapsed >= pair_time
                || count >= ENOUGH && elapsed >= patience
        };
        let mut samples: Vec<TwoWay> = Vec::with_capacity(most);
        let mut last = false;
        let mut sent = counter::now();
        let mut started = sent;
        let mut left = self.send(parent.rank, GO_ON);
        for round in 0..u32::MAX {
            // While the message is under way: between one receive and the next send child and parent
            // do the same, so that the two directions take equally long.
            let next_is_last = is_last(samples.len() + 2, sent.wrapping_sub(started));
            let answer = if left { self.receive(parent.rank) } else { None };
            let received = counter::now();
            match answer {
                Some(GAVE_UP) => return None,
                Some(_) if last => {}
                Some(_) => {
                    left = self.send(parent.rank, if next_is_last { ENOUGH_NOW } else { GO_ON });
                }
                None => {
                    self.send(parent.rank, GAVE_UP);
                    return None;
                }
            }
            match answer {
                Some(answered) if round >= WARM_UP => {
                    samples.push(TwoWay { sent, answered, received });
                }
                _ => started = received,
            }
            if last {
                break;
            }
            (sent, last) = (received, next_is_last);
        }
        let of_parent = self.receive(parent.rank).and_then(RootBound::from_word);
        let found = estimate(&samples)?;
        let exchange = ClockExchange {
            phase,
            parent: parent.rank,
            same_host: parent.same_host,
            rounds: samples.len() as u32,
            kept: found.kept,
            child_ticks: found.child_ticks,
            parent_ticks: found.parent_ticks,
            bound_ticks: found.bound_ticks,
            min_round_trip_ticks: found.min_round_trip_ticks,
            median_round_trip_ticks: found.median_round_trip_ticks,
        };
        let bound = of_parent.map(|of_parent| ClockBound {
            phase,
            ticks: found.child_ticks,
            hops: of_parent.hops + 1,
            bound_ns: of_parent.bound_ns
                + (found.bound_ticks as f64 * counter::ns_per_tick()).ceil() as u64,
        });
        Some(Measured { exchange, bound })
    }

    fn answer(&self, child: u32, bound: Option<RootBound>) {
        loop {
            match self.receive(child) {
                Some(GAVE_UP) => return,
                Some(word) => {
                    if !self.send(child, counter::now()) {
                        return;
                    }
                    if word == ENOUGH_NOW {
                        self.send(child, RootBound::to_word(bound));
                        return;
                    }
                }
                None => {
                    self.send(child, GAVE_UP);
                    return;
                }
            }
        }
    }

    /// Sends a word; whether it left before the deadline.
    fn send(&self, to: u32, word: u64) -> bool {
        let buffer = self.outgoing.get();
        buffer.store(word, Relaxed);
        // SAFETY: the word lives for ever; where MPI may still use it another one takes its place.
        let end =
            unsafe { self.messages.send((buffer.as_ptr().cast(), 8), to, TAG, self.deadline) };
        if end == End::Late {
            self.outgoing.set(new_word());
        }
        end == End::Done
    }

    fn receive(&self, from: u32) -> Option<u64> {
        let buffer = self.incoming.get();
        let room = (buffer.as_ptr().cast(), 8);
        // SAFETY: as in `send`.
        let end = unsafe { self.messages.receive(room, Some(from), TAG, self.deadline) };
        if end == End::Late {
            self.incoming.set(new_word());
        }
        (end == End::Done).then(|| buffer.load(Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_of_the_root_fit_a_word() {
        let known = RootBound { hops: 3, bound_ns: (1 << 56) - 1 };
        let there_and_back = |bound| RootBound::from_word(RootBound::to_word(bound));
        for bound in [RootBound::ROOT, known] {
            assert_eq!(there_and_back(Some(bound)), Some(bound));
        }
        let too_wide = RootBound { bound_ns: 1 << 56, ..known };
        let too_far = RootBound { hops: 255, ..known };
        for bound in [None, Some(too_wide), Some(too_far)] {
            assert_eq!(there_and_back(bound), None, "{bound:?}");
        }
    }
}
