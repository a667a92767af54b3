//! What each rank worked and exchanged in a selection: a run, its timeline and a selection come in,
//! [`Exchanges`] goes out, for the network models and the roofline.
//!
//! A message counts on its sender where its send begins in the selection, and on its receiver where
//! its receive was posted in it. A collective call counts the bytes that it puts in and gets out
//! (which way they take is the library's secret); between hosts goes the share of the communicator's
//! other members that are on other hosts. Remote memory and files are not counted as exchanged.

use std::collections::{BTreeMap, BTreeSet};

use rayon::prelude::*;
use trace_format::meaning::{Class, Meaning};

use crate::timeline::GlobalTimeline;
use crate::timeline::communicators::{CommunicatorTable, Peer};
use crate::timeline::matching::{
    self, CollectiveInstance, CollectiveMember, MatchSink, Message, Unmatched,
};
use crate::trace::Run;

use super::rank::RankPass;
use super::resolve::{Resolved, SelectionError};
use super::{CounterMetrics, Metrics, Selection};

/// Where the partner of an exchange is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// On the rank's own host.
    SameHost,
    /// On another one.
    OtherHost,
}

impl Place {
    /// The name that `machine.json` gives pairs of this kind.
    pub fn class_name(self) -> &'static str {
        match self {
            Self::SameHost => "same-host",
            Self::OtherHost => "other-host",
        }
    }
}

/// Messages by place of the partner and size in bytes: how many.
pub type Sizes = BTreeMap<(Place, u64), u64>;

/// Work of one function.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Work {
    /// Calls.
    pub calls: u64,
    /// Floating-point operations.
    pub flops: f64,
    /// Bytes of its operands (declared work: as declared).
    pub bytes: f64,
    /// Seconds inside.
    pub time_s: f64,
}

impl Work {
    fn add(&mut self, other: &Self) {
        self.calls = self.calls.saturating_add(other.calls);
        self.flops += other.flops;
        self.bytes += other.bytes;
        self.time_s += other.time_s;
    }
}

/// Bytes that left and reached a rank or host.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Moved {
    /// Sent.
    pub sent: f64,
    /// Received.
    pub received: f64,
}

impl Moved {
    /// Both ways.
    pub fn both(&self) -> f64 {
        self.sent + self.received
    }

    fn add(&mut self, other: &Self) {
        self.sent += other.sent;
        self.received += other.received;
    }
}

/// One rank's part. Seconds unless said otherwise.
#[derive(Debug, Clone, PartialEq)]
pub struct RankExchanges {
    /// Rank in MPI_COMM_WORLD.
    pub rank: u32,
    /// Position of its host in [`Exchanges::hosts`].
    pub host: usize,
    /// Whether it takes part in the selection.
    pub takes_part: bool,
    /// γ_i.
    pub compute_s: f64,
    /// In sends, receives, probes and completions: point-to-point communication, waits for late
    /// partners included.
    pub point_to_point_s: f64,
    /// In collective calls.
    pub collective_s: f64,
    /// In other MPI calls (MPI_Init and MPI_Finalize are in none of these).
    pub other_mpi_s: f64,
    /// By function.
    pub work: BTreeMap<String, Work>,
    /// Messages that it sent.
    pub sent: Sizes,
    /// Messages that it received.
    pub received: Sizes,
    /// Ranks that it exchanged messages with, by place.
    pub partners: BTreeSet<(Place, u32)>,
    /// What its collective calls put in and got out, by place.
    pub collective: BTreeMap<Place, Moved>,
    /// Collective calls.
    pub collective_calls: u64,
}

impl RankExchanges {
    /// All its operations; `None` when no call with known work was seen.
    pub fn flops(&self) -> Option<f64> {
        (!self.work.is_empty()).then(|| self.work.values().map(|work| work.flops).sum())
    }

    /// What it moved to and from ranks of that place, messages and collective calls.
    pub fn moved(&self, place: Place) -> Moved {
        let sum = |sizes: &Sizes| -> f64 {
            let of_place = sizes.iter().filter(|((at, _), _)| *at == place);
            of_place.map(|((_, bytes), count)| *bytes as f64 * *count as f64).sum()
        };
        let mut moved = Moved { sent: sum(&self.sent), received: sum(&self.received) };
        if let Some(collective) = self.collective.get(&place) {
            moved.add(collective);
        }
        moved
    }
}

/// What the ranks of a selection worked and exchanged.
#[derive(Debug, Clone, PartialEq)]
pub struct Exchanges {
    /// What was selected.
    pub selection: Selection,
    /// τ of the selection.
    pub elapsed_s: f64,
    /// Hosts in the order of their lowest ranks.
    pub hosts: Vec<String>,
    /// All ranks with a file.
    pub ranks: Vec<RankExchanges>,
    /// Whether messages are known at all (detail level 1 or 2 of a known MPI library).
    pub has_messages: bool,
    /// Calls of functions with remote memory or files, whose bytes are not counted.
    pub not_counted: BTreeMap<String, u64>,
    /// Sends and receives without a partner; they are not counted.
    pub unmatched: u64,
    /// Counters of processor and kernel that were asked for; none of it is in [`RankExchanges::work`].
    pub counters: Vec<CounterMetrics>,
}

impl Exchanges {
    /// Reads a run's events once for the sums and once for the messages.
    ///
    /// # Errors
    /// When the selection names what the run does not have.
    pub fn new(
        run: &Run,
        timeline: &GlobalTimeline,
        selection: &Selection,
    ) -> Result<Self, SelectionError> {
        let resolved = Resolved::new(run, timeline, selection)?;
        let compute = super::compute_mode(run, &mut Vec::new());
        let passes: Vec<RankPass> = (0..run.ranks.len())
            .into_par_iter()
            .map(|at| {
                RankPass::new(&run.ranks[at], &timeline.ranks[at], &resolved.ranks[at], compute)
            })
            .collect();
        let mut hosts: Vec<String> = Vec::new();
        let mut not_counted = BTreeMap::new();
        let mut ranks = Vec::new();
        for (at, pass) in passes.iter().enumerate() {
            let name = &run.ranks[at].file.header.host;
            let host = hosts.iter().position(|other| other == name).unwrap_or_else(|| {
                hosts.push(name.clone());
                hosts.len() - 1
            });
            let mut rank = rank_sums(run, timeline, at, pass, &mut not_counted);
            (rank.host, rank.takes_part) = (host, resolved.ranks[at].takes_part);
            ranks.push(rank);
        }
        let has_messages = matching::is_possible(run);
        let mut this = Self {
            selection: selection.clone(),
            elapsed_s: resolved.elapsed_s,
            hosts,
            ranks,
            has_messages,
            not_counted,
            unmatched: 0,
            counters: CounterMetrics::of_run(run, timeline, &resolved),
        };
        if has_messages {
            let communicators = CommunicatorTable::new(run);
            let mut tally = Tally {
                run,
                resolved: &resolved,
                communicators: &communicators,
                shares: BTreeMap::new(),
                exchanges: &mut this,
            };
            matching::match_run(run, timeline, &communicators, &mut tally);
        }
        Ok(this)
    }

    /// The ranks that take part.
    pub fn participants(&self) -> impl Iterator<Item = &RankExchanges> {
        self.ranks.iter().filter(|rank| rank.takes_part)
    }

    /// Work of all ranks by function.
    pub fn work(&self) -> BTreeMap<String, Work> {
        let mut sums: BTreeMap<String, Work> = BTreeMap::new();
        for (name, work) in self.participants().flat_map(|rank| &rank.work) {
            sums.entry(name.clone()).or_default().add(work);
        }
        sums
    }
}

impl Metrics {
    /// What counts as computation in a run.
    pub fn compute_mode_of(run: &Run) -> super::ComputeMode {
        super::compute_mode(run, &mut Vec::new())
    }
}

fn rank_sums(
    run: &Run,
    timeline: &GlobalTimeline,
    at: usize,
    pass: &RankPass,
    not_counted: &mut BTreeMap<String, u64>,
) -> RankExchanges {
    let (trace, time) = (&run.ranks[at], &timeline.ranks[at]);
    let mut rank = RankExchanges {
        rank: trace.rank,
        host: 0,
        takes_part: true,
        compute_s: time.clock.duration_s(pass.compute_ticks),
        point_to_point_s: 0.0,
        collective_s: 0.0,
        other_mpi_s: 0.0,
        work: BTreeMap::new(),
        sent: Sizes::new(),
        received: Sizes::new(),
        partners: BTreeSet::new(),
        collective: BTreeMap::new(),
        collective_calls: 0,
    };
    for sums in &pass.calls {
        let Some(name) = trace.file.function_name(sums.function) else { continue };
        let time_s = time.clock.duration_s(sums.inside_ticks);
        match Meaning::of(name).class {
            Class::PointToPoint | Class::Completion | Class::Probe => {
                rank.point_to_point_s += time_s;
            }
            Class::Collective => {
                rank.collective_s += time_s;
                rank.collective_calls = rank.collective_calls.saturating_add(sums.count);
            }
            Class::Lifetime => {}
            Class::Compute => {
                let work =
                    Work { calls: sums.count, flops: sums.flops, bytes: sums.bytes as f64, time_s };
                if sums.count > 0 {
                    rank.work.entry(name.to_owned()).or_default().add(&work);
                }
            }
            class => {
                rank.other_mpi_s += time_s;
                if matches!(class, Class::OneSided | Class::Io) && sums.count > 0 {
                    *not_counted.entry(name.to_owned()).or_default() += sums.count;
                }
            }
        }
    }
    rank
}

struct Tally<'a> {
    run: &'a Run,
    resolved: &'a Resolved,
    communicators: &'a CommunicatorTable,
    /// Share of a communicator's other members that are on other hosts, by (communicator, host).
    shares: BTreeMap<(u32, usize), f64>,
    exchanges: &'a mut Exchanges,
}

impl Tally<'_> {
    fn selected(&self, rank: u32, begin_ticks: u64) -> Option<usize> {
        let at = self.run.position_of(rank)?;
        self.resolved.ranks.get(at)?.counts(begin_ticks).then_some(at)
    }

    fn place(&self, a: u32, b: u32) -> Place {
        let host = |rank| Some(self.exchanges.ranks[self.run.position_of(rank)?].host);
        if host(a) == host(b) { Place::SameHost } else { Place::OtherHost }
    }

    fn share_elsewhere(&mut self, communicator: u32, host: usize) -> f64 {
        if let Some(share) = self.shares.get(&(communicator, host)) {
            return *share;
        }
        let (mut here, mut elsewhere) = (0.0f64, 0.0);
        let entry = self.communicators.get(communicator);
        for members in entry.iter().flat_map(|entry| &entry.groups) {
            for position in 0..members.size() {
                let Peer::World(rank) = members.peer(position as i32) else { continue };
                let Some(at) = self.run.position_of(rank) else { continue };
                match self.exchanges.ranks[at].host == host {
                    true => here += 1.0,
                    false => elsewhere += 1.0,
                }
            }
        }
        // The rank itself is no partner.
        let others = here - 1.0 + elsewhere;
        let share = if others > 0.0 { elsewhere / others } else { 0.0 };
        self.shares.insert((communicator, host), share);
        share
    }

    fn collective_member(&mut self, communicator: u32, member: &CollectiveMember) {
        let Some(at) = self.selected(member.rank, member.begin_ticks) else { return };
        let share = self.share_elsewhere(communicator, self.exchanges.ranks[at].host);
        let (sent, received) = (member.sent_bytes as f64, member.received_bytes as f64);
        for (place, share) in [(Place::SameHost, 1.0 - share), (Place::OtherHost, share)] {
            if share > 0.0 && sent + received > 0.0 {
                let moved = Moved { sent: sent * share, received: received * share };
                self.exchanges.ranks[at].collective.entry(place).or_default().add(&moved);
            }
        }
    }
}

impl MatchSink for Tally<'_> {
    fn message(&mut self, message: &Message) {
        let (send, receive) = (&message.send, &message.receive);
        if send.rank == receive.rank {
            return;
        }
        let place = self.place(send.rank, receive.rank);
        if let Some(at) = self.selected(send.rank, send.begin_ticks) {
            let rank = &mut self.exchanges.ranks[at];
            *rank.sent.entry((place, message.bytes)).or_default() += 1;
            rank.partners.insert((place, receive.rank));
        }
        if let Some(at) = self.selected(receive.rank, receive.begin_ticks) {
            let rank = &mut self.exchanges.ranks[at];
            *rank.received.entry((place, message.bytes)).or_default() += 1;
            rank.partners.insert((place, send.rank));
        }
    }

    fn collective(&mut self, instance: &CollectiveInstance) {
        for member in &instance.members {
            self.collective_member(instance.communicator, member);
        }
    }

    fn unmatched(&mut self, unmatched: &Unmatched) {
        if self.selected(unmatched.rank, unmatched.begin_ticks).is_some() {
            self.exchanges.unmatched += 1;
        }
    }
}
