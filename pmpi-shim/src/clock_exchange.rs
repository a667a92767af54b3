//! This rank's counter against another's, by two-way exchanges.
//!
//! In: the host of every rank. Out: at most one
//! [`ClockExchange`] a phase, against the rank's parent in a binomial tree over one leader a host,
//! then over the ranks of a host: O(log p) rounds.
//!
//! Estimator (DESIGN section 5): of N exchanges the mean midpoint offset of the tenth with the
//! lowest round trip. Every exchange says that the parent read its counter between the child's send
//! and receive; the intersection of these intervals, at least half the mean round trip of what was
//! kept, is the bound.
//!
//! Nothing here blocks for ever: every wait has a deadline, and who gives up tells its partner.

use std::time::{Duration, Instant};

use trace_format::header::{ClockExchange, Phase};

use crate::agreement::Company;
use crate::counter;
use crate::mpi_library::{Entry, MpiLibrary};
use crate::peers;

const TAG: usize = 4711;
/// Exchanges before those that count: connections are made, caches filled.
const WARM_UP: u32 = 4;
/// A child ends the exchanges of one pair after this time, if it has enough of them.
const PAIR_BUDGET: Duration = Duration::from_millis(5);
const ENOUGH: usize = 10;
/// A wait longer than this is no part of an exchange that counts: the processor is given away.
const SPIN: Duration = Duration::from_micros(200);
/// A wait longer than this lets the thread sleep between looks.
const DOZE: Duration = Duration::from_millis(2);

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
    /// What messages go over: MPI_COMM_WORLD inside MPI_Init, where the program has no receives posted;
    /// at MPI_Finalize one of our own.
    communicator: usize,
    errors_return: usize,
    byte: usize,
    isend: Entry,
    irecv: Entry,
    test: Entry,
    cancel: Entry,
    request_free: Entry,
    partners: Vec<Partner>,
    size: u32,
    /// Whether all ranks take part; only then can they meet at MPI_Finalize.
    everyone: bool,
    rounds: u32,
    deadline: Duration,
    finalize_deadline: Duration,
}

/// One exchange of this rank in the order of the tree's rounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Partner {
    rank: u32,
    is_parent: bool,
    same_host: bool,
}

/// Partners of member `index` of `members` in a binomial tree, round by round.
fn tree(members: &[u32], index: usize, same_host: bool, partners: &mut Vec<Partner>) {
    let mut step = 1;
    while step < members.len() {
        if index.is_multiple_of(2 * step) {
            if let Some(&rank) = members.get(index + step) {
                partners.push(Partner { rank, is_parent: false, same_host });
            }
        } else if index % (2 * step) == step {
            partners.push(Partner { rank: members[index - step], is_parent: true, same_host });
        }
        step *= 2;
    }
}

fn partners(hosts: &[u64], rank: u32) -> Vec<Partner> {
    let mine = hosts[rank as usize];
    let mut leaders: Vec<(u64, u32)> = Vec::new();
    let mut seen = std::collections::HashSet::new();
    for (other, host) in hosts.iter().enumerate() {
        if seen.insert(*host) {
            leaders.push((*host, other as u32));
        }
    }
    let mut found = Vec::new();
    let leader_ranks: Vec<u32> = leaders.iter().map(|(_, leader)| *leader).collect();
    if let Some(index) = leader_ranks.iter().position(|leader| *leader == rank) {
        tree(&leader_ranks, index, false, &mut found);
    }
    let mates: Vec<u32> = (0..hosts.len() as u32).filter(|r| hosts[*r as usize] == mine).collect();
    if let Some(index) = mates.iter().position(|mate| *mate == rank) {
        tree(&mates, index, true, &mut found);
    }
    found
}

/// Partners where only some ranks take part.
fn partners_among(members: &[(u32, u64)], rank: u32) -> Vec<Partner> {
    let hosts: Vec<u64> = members.iter().map(|member| member.1).collect();
    let Some(index) = members.iter().position(|member| member.0 == rank) else { return Vec::new() };
    let mut found = partners(&hosts, index as u32);
    for partner in &mut found {
        partner.rank = members[partner.rank as usize].0;
    }
    found
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
        company: &Company,
        rounds: u32,
        (deadline_s, finalize_deadline_s): (f64, f64),
    ) -> Option<Self> {
        let (world, byte) = (library.comm_world()?, library.byte()?);
        let partners = match company {
            Company::Everyone => {
                let hosts = gather_hosts(world, byte, host, size)?;
                peers::know_hosts(&hosts, rank);
                partners(&hosts, rank)
            }
            Company::Some(members) => partners_among(members, rank),
        };
        Some(Self {
            world,
            communicator: world,
            errors_return: library.errors_return()?,
            byte,
            isend: Entry::of(c"PMPI_Isend")?,
            irecv: Entry::of(c"PMPI_Irecv")?,
            test: Entry::of(c"PMPI_Test")?,
            cancel: Entry::of(c"PMPI_Cancel")?,
            request_free: Entry::of(c"PMPI_Request_free")?,
            partners,
            size,
            everyone: *company == Company::Everyone,
            rounds,
            deadline: Duration::from_secs_f64(deadline_s),
            finalize_deadline: Duration::from_secs_f64(finalize_deadline_s),
        })
    }

    /// Sends bytes from rank 0 to all ranks. Collective; only before the program runs.
    pub fn broadcast(&self, bytes: &mut [u8]) -> bool {
        let Some(entry) = Entry::of(c"PMPI_Bcast") else { return false };
        let (buffer, count) = (bytes.as_mut_ptr() as usize, bytes.len());
        // SAFETY: the buffer holds that many bytes; root 0.
        unsafe { entry.call([buffer, count, self.byte, 0, self.communicator]) }
    }

    /// Makes this rank's exchanges inside MPI_Init.
    pub fn measure_at_init(&self) -> Option<ClockExchange> {
        self.measure(Phase::Init)
    }

    /// Makes this rank's exchanges at MPI_Finalize: once all ranks are there, on a communicator that is
    /// made for it and freed after it. `None` where a rank does not come before the deadline; then
    /// nobody waits for anybody.
    pub fn measure_at_finalize(mut self) -> Option<ClockExchange> {
        if self.size == 1 || !self.everyone {
            return None;
        }
        let mut handler = 0usize;
        let set = Entry::of(c"PMPI_Comm_set_errhandler")?;
        // SAFETY: the arguments of the standard; handles of either width are written into the low bytes
        // of zeroed words. The program's error handler is put back.
        unsafe {
            let get = Entry::of(c"PMPI_Comm_get_errhandler")?;
            if !get.call([self.world, &raw mut handler as usize]) {
                return None;
            }
            set.call([self.world, self.errors_return]);
        }
        let measured = self.measure_together();
        // SAFETY: as above.
        unsafe {
            set.call([self.world, handler]);
            Entry::of(c"PMPI_Errhandler_free")?.call([&raw mut handler as usize]);
        }
        measured
    }

    fn measure_together(&mut self) -> Option<ClockExchange> {
        // The first barrier waits for the last rank to come. A rank that came so late that others have
        // given up may still get through it; it does not get through the second.
        if !self.barrier(self.finalize_deadline) || !self.barrier(SECOND_BARRIER) {
            return None;
        }
        let (mut group, mut communicator) = (0usize, 0usize);
        // SAFETY: as in `measure_at_finalize`; all ranks are here. By the group: MPI_Comm_dup would run
        // the program's attribute callbacks.
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
            self.communicator = communicator;
            let measured = self.measure(Phase::Finalize);
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
        started && self.complete(&mut request, deadline) == End::Done
    }

    /// With the children in the tree as this rank answers them, and with its parent, which gives the
    /// measurement. `None` for the root and where the partner was gone.
    fn measure(&self, phase: Phase) -> Option<ClockExchange> {
        let mut measured = None;
        for partner in &self.partners {
            if partner.is_parent {
                measured = self.ask(partner, phase);
            } else {
                self.answer(partner.rank);
            }
        }
        measured
    }

    fn ask(&self, parent: &Partner, phase: Phase) -> Option<ClockExchange> {
        let mut samples: Vec<Sample> = Vec::with_capacity(self.rounds as usize);
        let mut started = None;
        for round in 0..WARM_UP + self.rounds {
            let over = started.is_some_and(|start: Instant| start.elapsed() > PAIR_BUDGET);
            let last = round + 1 == WARM_UP + self.rounds || (over && samples.len() >= ENOUGH);
            let sent = counter::now();
            let answer = self
                .send(parent.rank, if last { ENOUGH_NOW } else { GO_ON })
                .then(|| self.receive(parent.rank))
                .flatten();
            let received = counter::now();
            match answer {
                Some(GAVE_UP) => return None,
                Some(answered) if round >= WARM_UP => {
                    samples.push(Sample { sent, answered, received });
                }
                Some(_) => started = Some(Instant::now()),
                None => {
                    self.send(parent.rank, GAVE_UP);
                    return None;
                }
            }
            if last {
                break;
            }
        }
        estimate(&samples, parent, phase)
    }

    fn answer(&self, child: u32) {
        loop {
            match self.receive(child) {
                Some(GAVE_UP) => return,
                Some(word) => {
                    if !self.send(child, counter::now()) || word == ENOUGH_NOW {
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
        let mut request = 0usize;
        let buffer = Box::new(word);
        // SAFETY: the buffer lives until the send has completed; where it does not, it is leaked.
        let started = unsafe {
            self.isend.call([
                &raw const *buffer as usize,
                8,
                self.byte,
                to as usize,
                TAG,
                self.communicator,
                &raw mut request as usize,
            ])
        };
        let end = if started { self.complete(&mut request, self.deadline) } else { End::Failed };
        if end == End::Late {
            std::mem::forget(buffer);
            // SAFETY: the request is ours and will not be used again.
            unsafe { self.request_free.call([&raw mut request as usize]) };
        }
        end == End::Done
    }

    fn receive(&self, from: u32) -> Option<u64> {
        let mut request = 0usize;
        let mut buffer = Box::new(0u64);
        // SAFETY: as in `send`.
        let started = unsafe {
            self.irecv.call([
                &raw mut *buffer as usize,
                8,
                self.byte,
                from as usize,
                TAG,
                self.communicator,
                &raw mut request as usize,
            ])
        };
        if !started {
            return None;
        }
        match self.complete(&mut request, self.deadline) {
            End::Done => return Some(*buffer),
            End::Failed => return None,
            End::Late => std::mem::forget(buffer),
        }
        // SAFETY: the request is ours; cancelled, it completes when MPI finalizes at the latest.
        unsafe {
            self.cancel.call([&raw mut request as usize]);
            self.request_free.call([&raw mut request as usize]);
        }
        None
    }

    /// Tests a request until it completes or the deadline has passed.
    fn complete(&self, request: &mut usize, deadline: Duration) -> End {
        let mut flag = 0i32;
        // Large enough for every ABI's MPI_Status; no library refuses a real one.
        let mut status = [0u64; 8];
        let mut start = None;
        for look in 0u64.. {
            // SAFETY: the arguments of MPI_Test; all three are ours.
            let sound = unsafe {
                self.test.call([
                    request as *mut usize as usize,
                    &raw mut flag as usize,
                    status.as_mut_ptr() as usize,
                ])
            };
            if !sound {
                return End::Failed;
            }
            if flag != 0 {
                return End::Done;
            }
            if look % 64 == 63 {
                let waited = start.get_or_insert_with(Instant::now).elapsed();
                if waited > deadline {
                    return End::Late;
                }
                if waited > DOZE {
                    std::thread::sleep(Duration::from_micros(50));
                } else if waited > SPIN {
                    std::thread::yield_now();
                }
            }
        }
        End::Late
    }
}

/// How waiting for a request of ours ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// It is complete.
    Done,
    /// MPI reported an error, and the request is no more.
    Failed,
    /// The deadline passed; the request is still there.
    Late,
}

/// Child's counter before sending, parent's at the answer, child's after receiving.
#[derive(Debug, Clone, Copy)]
struct Sample {
    sent: u64,
    answered: u64,
    received: u64,
}

impl Sample {
    fn round_trip(&self) -> u64 {
        self.received.wrapping_sub(self.sent)
    }
}

/// Mean of values relative to the first of them, so that nothing is lost to rounding.
fn mean(values: impl Iterator<Item = u64> + Clone) -> u64 {
    let Some(first) = values.clone().next() else { return 0 };
    let (sum, count) = values.fold((0i128, 0i128), |(sum, count), value| {
        (sum + i128::from(value.wrapping_sub(first) as i64), count + 1)
    });
    first.wrapping_add((sum / count) as i64 as u64)
}

fn estimate(samples: &[Sample], parent: &Partner, phase: Phase) -> Option<ClockExchange> {
    let mut sorted = samples.to_vec();
    sorted.sort_by_key(Sample::round_trip);
    let kept = &sorted[..sorted.len().div_ceil(10)];
    let best = kept.first()?;
    let child_ticks = mean(kept.iter().map(|s| s.sent.wrapping_add(s.round_trip() / 2)));
    let parent_ticks = mean(kept.iter().map(|s| s.answered));
    // Offsets relative to the estimate: parent − child − (parent_ticks − child_ticks).
    let theta = parent_ticks.wrapping_sub(child_ticks);
    let relative = |parent: u64, child: u64| parent.wrapping_sub(child).wrapping_sub(theta) as i64;
    let low = sorted.iter().map(|s| relative(s.answered, s.received)).max()?;
    let high = sorted.iter().map(|s| relative(s.answered, s.sent)).min()?;
    let half_trip = mean(kept.iter().map(Sample::round_trip)) / 2;
    let apart = low.unsigned_abs().max(high.unsigned_abs());
    Some(ClockExchange {
        phase,
        parent: parent.rank,
        same_host: parent.same_host,
        rounds: samples.len() as u32,
        kept: kept.len() as u32,
        child_ticks,
        parent_ticks,
        bound_ticks: apart.max(half_trip) + 2,
        min_round_trip_ticks: best.round_trip(),
        median_round_trip_ticks: sorted[sorted.len() / 2].round_trip(),
    })
}
