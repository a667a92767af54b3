//! Compares this rank's counter with another rank's by two-way exchanges.
//!
//! The partners come from [`crate::clock::tree`]. Each phase yields at most one [`Measured`],
//! against the rank's parent, computed by the estimator of [`trace_format::clock_estimate`].
//!
//! Nothing here blocks for ever: every wait has a deadline, and a rank that gives up tells its
//! partner.

use std::cell::Cell;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use trace_format::clock_estimate::{TwoWay, estimate};
use trace_format::header::{ClockBound, ClockExchange, Phase};

use crate::clock::tree::{Partner, partners, partners_among};
use crate::host::counter;
use crate::host::lock::Lock;
use crate::host::peers;
use crate::mpi::agreement::Participants;
use crate::mpi::library::{Entry, Job};
use crate::mpi::messages::{End, Messages};

const TAG: i32 = 4711;
/// Exchanges made before those that count, to establish connections and fill caches.
const WARM_UP: u32 = 4;
/// On a fast connection, a pair keeps exchanging for this long …
const PAIR_TIME: Duration = Duration::from_millis(2);
/// … but makes at most this many times the requested number of exchanges.
const MAX_EXCHANGE_FACTOR: usize = 10;
/// A child stops exchanging with its parent after this time, provided it has enough samples.
const PATIENCE: Duration = Duration::from_millis(100);
const ENOUGH: usize = 10;
/// Time allowed for the second barrier at MPI_Finalize. All ranks have arrived and are polling.
const SECOND_BARRIER: Duration = Duration::from_secs(2);

/// Messages from child to parent.
const GO_ON: u64 = 0;
const ENOUGH_NOW: u64 = 1;
/// Sent in place of a counter value by a rank that gave up.
const GAVE_UP: u64 = u64::MAX;

/// The partners of this rank, and the MPI calls that the exchanges need.
#[derive(Debug)]
pub struct Exchanger {
    /// The communicator of all ranks.
    world: usize,
    errors_return: usize,
    byte: usize,
    messages: Messages,
    partners: Vec<Partner>,
    size: u32,
    /// Whether all ranks take part. Only then can they meet at MPI_Finalize.
    everyone: bool,
    rounds: u32,
    deadline: Duration,
    finalize_deadline: Duration,
    /// Send and receive buffers.
    outgoing: Cell<&'static AtomicU64>,
    incoming: Cell<&'static AtomicU64>,
}

/// This rank's exchanger. `None` before the ranks have met, during MPI_Finalize, and on a rank without one.
static OWN: Lock<Option<Exchanger>> = Lock::new(None);

/// This rank's exchanger while it is in use. It is put back when the value is dropped. The lock is not
/// held meanwhile, because exchanges wait for other ranks.
pub struct InUse(Option<Exchanger>);

/// Takes this rank's exchanger. A thread that finds it taken gets none.
pub fn own() -> InUse {
    InUse(OWN.lock().take())
}

impl Deref for InUse {
    type Target = Option<Exchanger>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl DerefMut for InUse {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        *OWN.lock() = self.0.take();
    }
}

/// Memory for one message. Never freed, because MPI may access it at any later time.
fn new_word() -> &'static AtomicU64 {
    Box::leak(Box::default())
}

/// This rank's counter compared with its parent's.
#[derive(Debug, Clone, Copy)]
pub struct Measured {
    pub exchange: ClockExchange,
    /// Error bound of the hops to the root. `None` if a hop further up was not measured.
    pub bound: Option<ClockBound>,
}

/// Error bound of a rank's counter relative to the root's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct RootBound {
    hops: u32,
    bound_ns: u64,
}

impl RootBound {
    const ROOT: Self = Self { hops: 0, bound_ns: 0 };

    /// Encodes a bound as a message word, with the hops in the upper byte.
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

/// Gathers the host of every rank. Collective.
fn gather_hosts(world: usize, byte: usize, host: u64, size: u32) -> Option<Vec<u64>> {
    let mut hosts = vec![0u64; size as usize];
    // SAFETY: the arguments of MPI_Allgather; the buffer holds 8 bytes per rank.
    let gathered = unsafe {
        Entry::find(c"PMPI_Allgather")?.call([
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
    /// Determines the host of every rank. If all ranks take part this is collective over the job's
    /// communicator; otherwise it is local.
    ///
    /// Returns `None` if the library's constants are unknown or a call failed.
    pub fn new(
        job: &Job,
        host: u64,
        participants: &Participants,
        rounds: u32,
        (deadline_s, finalize_deadline_s): (f64, f64),
    ) -> Option<Self> {
        let (library, rank, size) = (job.library, job.rank, job.size);
        let (world, byte) = (job.communicator?, library.byte()?);
        let partners = match participants {
            Participants::Everyone => {
                let hosts = gather_hosts(world, byte, host, size)?;
                peers::set_hosts(&hosts, rank);
                partners(&hosts, rank)
            }
            Participants::Some(members) => partners_among(members, rank),
        };
        Some(Self {
            world,
            errors_return: library.errors_return()?,
            byte,
            messages: Messages::new(job)?,
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

    /// Broadcasts bytes from rank 0. Collective; only allowed where all ranks meet.
    pub fn broadcast(&self, bytes: &mut [u8]) -> bool {
        let Some(entry) = Entry::find(c"PMPI_Bcast") else { return false };
        let (buffer, count) = (bytes.as_mut_ptr() as usize, bytes.len());
        // SAFETY: the buffer holds `count` bytes; the root is rank 0.
        unsafe { entry.call([buffer, count, self.byte, 0, self.world]) }
    }

    /// Makes this rank's exchanges inside MPI_Init.
    pub fn measure_at_init(&self) -> Option<Measured> {
        self.measure(Phase::Init)
    }

    /// Makes this rank's exchanges at MPI_Finalize, once all ranks have arrived. Returns `None` if
    /// a rank does not arrive before the deadline; then nobody waits for anybody.
    pub fn measure_at_finalize(mut self) -> Option<Measured> {
        if !self.meets_everyone() {
            return None;
        }
        self.with_errors_returned(|this| {
            // The first barrier waits for the last rank. A rank that arrives after others have
            // given up may still pass it, but it does not pass the second barrier.
            if !this.barrier(this.finalize_deadline) || !this.barrier(SECOND_BARRIER) {
                return None;
            }
            this.measure_on_own_communicator(Phase::Finalize)
        })
    }

    /// Makes this rank's exchanges during the run. All ranks are present: they are about to make
    /// the same collective call on MPI_COMM_WORLD, which waits for all of them.
    pub fn measure_during(&mut self) -> Option<Measured> {
        self.with_errors_returned(|this| this.measure_on_own_communicator(Phase::During))
    }

    /// Returns rank 0's words on all ranks. Collective over all ranks, at a point where the
    /// program is about to make a collective call.
    pub fn told_by_root(&self, mut words: [u64; 2]) -> Option<[u64; 2]> {
        let entry = Entry::find(c"PMPI_Bcast")?;
        // SAFETY: the buffer holds 16 bytes; the root is rank 0.
        let root_words =
            unsafe { entry.call([words.as_mut_ptr() as usize, 16, self.byte, 0, self.world]) };
        root_words.then_some(words)
    }

    /// Whether there are other ranks and all of them take part.
    pub fn meets_everyone(&self) -> bool {
        self.size > 1 && self.everyone
    }

    /// Handle of the communicator of all ranks.
    pub fn world(&self) -> usize {
        self.world
    }

    /// Runs `work` with MPI_ERRORS_RETURN on the communicator of all ranks, then restores the program's error
    /// handler.
    fn with_errors_returned(
        &mut self,
        measure: impl FnOnce(&mut Self) -> Option<Measured>,
    ) -> Option<Measured> {
        let mut handler = 0usize;
        let set = Entry::find(c"PMPI_Comm_set_errhandler")?;
        // SAFETY: the arguments are those that the standard defines. Handles of either width are
        // written into the low bytes of zeroed words.
        unsafe {
            let get = Entry::find(c"PMPI_Comm_get_errhandler")?;
            if !get.call([self.world, &raw mut handler as usize]) {
                return None;
            }
            set.call([self.world, self.errors_return]);
        }
        let measured = measure(self);
        // SAFETY: the arguments that the standard defines; `handler` came from MPI.
        unsafe {
            set.call([self.world, handler]);
            Entry::find(c"PMPI_Errhandler_free")?.call([&raw mut handler as usize]);
        }
        measured
    }

    /// Measures over a communicator made and freed for this purpose. All ranks are present.
    fn measure_on_own_communicator(&mut self, phase: Phase) -> Option<Measured> {
        let mut communicator = self.like_world()?;
        self.messages.switch_to(communicator);
        let measured = self.measure(phase);
        self.messages.switch_to(self.world);
        // SAFETY: the arguments of MPI_Comm_free.
        unsafe { Entry::find(c"PMPI_Comm_free")?.call([&raw mut communicator as usize]) };
        measured
    }

    /// A new communicator of all ranks, which returns errors. Collective.
    fn like_world(&self) -> Option<usize> {
        let (mut group, mut communicator) = (0usize, 0usize);
        // SAFETY: the arguments that the standard defines. The communicator is made from the group,
        // because MPI_Comm_dup would run the program's attribute callbacks.
        unsafe {
            let made = Entry::find(c"PMPI_Comm_group")?.call([self.world, &raw mut group as usize])
                && Entry::find(c"PMPI_Comm_create")?.call([
                    self.world,
                    group,
                    &raw mut communicator as usize,
                ])
                && Entry::find(c"PMPI_Group_free")?.call([&raw mut group as usize])
                && Entry::find(c"PMPI_Comm_set_errhandler")?
                    .call([communicator, self.errors_return]);
            made.then_some(communicator)
        }
    }

    /// Whether all ranks arrived at this barrier before the deadline.
    fn barrier(&self, deadline: Duration) -> bool {
        let mut request = 0usize;
        let Some(entry) = Entry::find(c"PMPI_Ibarrier") else { return false };
        // SAFETY: the arguments of MPI_Ibarrier. A pending barrier cannot be cancelled, so its
        // request is left to MPI_Finalize.
        let started = unsafe { entry.call([self.world, &raw mut request as usize]) };
        started && self.messages.complete(&mut request, deadline) == End::Done
    }

    /// Exchanges with the parent, which yields the measurement, and answers the children in the
    /// tree's order. Returns `None` on the root and if the parent gave up.
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
        let most = self.rounds as usize * MAX_EXCHANGE_FACTOR;
        let ticks = |time: Duration| (time.as_nanos() as f64 / counter::ns_per_tick()) as u64;
        let (pair_time, patience) = (ticks(PAIR_TIME), ticks(PATIENCE));
        // Whether the n-th exchange is the last, given the ticks since the first.
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
            // Computed while the message is under way: between a receive and the next send, child
            // and parent then do the same work, so both directions take equally long.
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

    /// Sends a word. Returns whether it left before the deadline.
    fn send(&self, to: u32, word: u64) -> bool {
        let buffer = self.outgoing.get();
        buffer.store(word, Relaxed);
        // SAFETY: the word is never freed, and is replaced by a new one if MPI may still use it.
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
        // SAFETY: the word is never freed, and is replaced by a new one if MPI may still use it.
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
    fn root_bound_fits_in_message_word() {
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
