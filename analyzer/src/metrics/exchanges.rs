//! What each rank computed and exchanged in a selection, for the network models and the roofline.
//!
//! A message counts at its sender if its send begins in the selection, and at its receiver if its
//! receive was posted in it. A collective call counts the bytes that it puts in and gets out; the
//! route that they take inside the library is unknown. The share of the communicator's other
//! members on other hosts counts as moved between hosts. An access to remote memory counts at both
//! sides if the call begins in the selection. File I/O does not count as exchanged.

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashMap;
use serde::Serialize;
use trace_format::meaning::{Class, Meaning};

use crate::analysis::Analysis;
use crate::timeline::GlobalTimeline;
use crate::timeline::communicators::Peer;
use crate::timeline::matching::{
    Access, CollectiveInstance, MatchFinding, MatchSink, Message, Unmatched,
};
use crate::trace::Run;

use super::counters::CounterMetrics;
use super::passes::Passes;
use super::resolve::{Resolved, SelectionError};
use super::selection::Selection;
use super::selection_index::SelectionIndex;
use super::sums::RankPass;

/// Where the partner of an exchange is, relative to the rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Locality {
    /// On the rank's own host.
    SameHost,
    /// On another host.
    OtherHost,
}

impl Locality {
    /// The name of this class of pairs in `machine.json`.
    pub fn class_name(self) -> &'static str {
        match self {
            Self::SameHost => "same-host",
            Self::OtherHost => "other-host",
        }
    }
}

/// Number of messages, by locality of the partner and size in bytes.
pub type Sizes = BTreeMap<(Locality, u64), u64>;

/// Work of one function.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Work {
    /// Number of calls.
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

/// Bytes that a rank or host sent and received.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Moved {
    /// Sent.
    pub sent: f64,
    /// Received.
    pub received: f64,
}

impl Moved {
    /// Bytes in both directions.
    pub fn both(&self) -> f64 {
        self.sent + self.received
    }

    fn add(&mut self, other: &Self) {
        self.sent += other.sent;
        self.received += other.received;
    }
}

/// One rank's figures. Seconds unless said otherwise.
#[derive(Debug, Clone, PartialEq)]
pub struct RankExchanges {
    /// Rank in MPI_COMM_WORLD.
    pub rank: u32,
    /// Position of its host in [`Exchanges::hosts`].
    pub host: usize,
    /// Whether it takes part in the selection.
    pub takes_part: bool,
    /// Computing (γ_i).
    pub compute_s: f64,
    /// In sends, receives, probes and completions: point-to-point communication, including waits
    /// for late partners.
    pub point_to_point_s: f64,
    /// In collective calls.
    pub collective_s: f64,
    /// In other MPI calls. None of the three includes MPI_Init and MPI_Finalize.
    pub other_mpi_s: f64,
    /// Work by function.
    pub work: BTreeMap<String, Work>,
    /// Messages that it sent.
    pub sent: Sizes,
    /// Messages that it received.
    pub received: Sizes,
    /// Ranks that it exchanged messages with, by locality.
    pub partners: BTreeSet<(Locality, u32)>,
    /// Bytes moved by one-sided accesses between its memory and that of other ranks, by locality.
    pub one_sided: BTreeMap<Locality, Moved>,
    /// Bytes that its collective calls put in and got out, by locality.
    pub collective: BTreeMap<Locality, Moved>,
    /// Number of collective calls.
    pub collective_calls: u64,
}

impl RankExchanges {
    /// All its operations; `None` if no call with known work was seen.
    pub fn flops(&self) -> Option<f64> {
        (!self.work.is_empty()).then(|| self.work.values().map(|work| work.flops).sum())
    }

    /// Bytes moved to and from ranks of this locality by messages, one-sided accesses and
    /// collective calls.
    pub fn moved(&self, locality: Locality) -> Moved {
        let sum = |sizes: &Sizes| -> f64 {
            let of_locality = sizes.iter().filter(|((at, _), _)| *at == locality);
            of_locality.map(|((_, bytes), count)| *bytes as f64 * *count as f64).sum()
        };
        let mut moved = Moved { sent: sum(&self.sent), received: sum(&self.received) };
        for more in [self.one_sided.get(&locality), self.collective.get(&locality)] {
            more.into_iter().for_each(|more| moved.add(more));
        }
        moved
    }
}

/// What the ranks computed and exchanged in a selection.
#[derive(Debug, Clone, PartialEq)]
pub struct Exchanges {
    pub selection: Selection,
    /// τ of the selection.
    pub elapsed_s: f64,
    /// Hosts in the order of their lowest ranks.
    pub hosts: Vec<String>,
    /// All ranks with a file.
    pub ranks: Vec<RankExchanges>,
    /// Whether messages are known (detail level 1 or 2 of a known MPI library).
    pub has_messages: bool,
    /// Calls on files, whose bytes do not count.
    pub not_counted: BTreeMap<String, u64>,
    /// Sends and receives without a partner, which do not count.
    pub unmatched: u64,
    /// Requested counters of processor and kernel; [`RankExchanges::work`] does not include them.
    pub counters: Vec<CounterMetrics>,
}

impl Exchanges {
    /// Computes the exchanges of several selections, reading the events once for all sums and once
    /// for all messages. A selection that names something the run does not have gives an error at
    /// its index.
    pub fn of_all(
        analysis: &Analysis,
        selections: &[Selection],
    ) -> Vec<Result<Self, SelectionError>> {
        let resolved = Resolved::all(analysis, selections);
        let good: Vec<&Resolved> = resolved.iter().flatten().collect();
        let passes = Passes::new(analysis, &good);
        let selected = SelectionIndex::new(analysis.run.ranks.len(), &good);
        let matched = analysis.matches(|| Tally::new(analysis.run, &selected, good.len()));
        let matched = matched.and_then(|(_, tallies)| tallies.into_iter().reduce(Tally::merged));
        Self::several(analysis, (selections, &resolved), (&passes, 0), matched.as_ref())
    }

    /// Computes the exchanges of several selections from a pass and a tally. The pass holds the
    /// selections that could be resolved, in order, from index `first` on; the tally from 0 on.
    pub(super) fn several(
        analysis: &Analysis,
        (selections, resolved): (&[Selection], &[Result<Resolved, SelectionError>]),
        (passes, first): (&Passes, usize),
        tally: Option<&Tally>,
    ) -> Vec<Result<Self, SelectionError>> {
        let mut position = 0;
        let each = selections.iter().zip(resolved).map(|(selection, resolved)| {
            let resolved = resolved.as_ref().map_err(Clone::clone)?;
            let pass = (passes, first + position);
            let exchanges = Self::new(analysis, (selection, resolved), pass, (position, tally));
            position += 1;
            Ok(exchanges)
        });
        each.collect()
    }

    /// Computes the exchanges of one selection.
    ///
    /// # Errors
    /// The selection names something that the run does not have.
    pub fn for_selection(
        analysis: &Analysis,
        selection: &Selection,
    ) -> Result<Self, SelectionError> {
        let mut all = Self::of_all(analysis, std::slice::from_ref(selection));
        all.pop().unwrap_or_else(|| unreachable!("one selection was given"))
    }

    /// The exchanges of a resolved selection, given its index in the pass and in the tally.
    fn new(
        analysis: &Analysis,
        (selection, resolved): (&Selection, &Resolved),
        (passes, pass): (&Passes, usize),
        (position, tally): (usize, Option<&Tally>),
    ) -> Self {
        let Analysis { run, timeline, .. } = *analysis;
        let mut hosts: Vec<String> = Vec::new();
        let mut not_counted = BTreeMap::new();
        let mut ranks = Vec::new();
        for (at, pass) in passes.sums[pass].iter().enumerate() {
            let name = &run.ranks[at].file.header.host;
            let host = hosts.iter().position(|other| other == name).unwrap_or_else(|| {
                hosts.push(name.clone());
                hosts.len() - 1
            });
            let mut rank = rank_sums(run, timeline, at, pass, &mut not_counted);
            (rank.host, rank.takes_part) = (host, resolved.ranks[at].takes_part);
            ranks.push(rank);
        }
        let mut this = Self {
            selection: selection.clone(),
            elapsed_s: resolved.elapsed_s,
            hosts,
            ranks,
            has_messages: tally.is_some(),
            not_counted,
            unmatched: 0,
            counters: passes.counters(run, pass),
        };
        if let Some(tally) = tally {
            tally.fill(&mut this, position, analysis);
        }
        this
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
        one_sided: BTreeMap::new(),
        collective: BTreeMap::new(),
        collective_calls: 0,
    };
    for sums in &pass.calls {
        let Some(name) = trace.file.function_name(sums.function) else { continue };
        let time_s = time.clock.duration_s(sums.inside_ticks);
        match Meaning::by_name(name).class {
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
                if class == Class::Io && sums.count > 0 {
                    *not_counted.entry(name.to_owned()).or_default() += sums.count;
                }
            }
        }
    }
    rank
}

/// What the ranks of one selection exchanged. Ranks are given by position in the run.
#[derive(Debug, Default)]
struct SelectionExchanges {
    /// Messages by sender, receiver and size, whose send begins in the selection.
    sent: FxHashMap<(u32, u32, u64), u64>,
    /// Likewise, those whose receive was posted in it.
    received: FxHashMap<(u32, u32, u64), u64>,
    /// Bytes that collective calls put in and got out, by rank and communicator.
    collective: FxHashMap<(u32, u32), (u64, u64)>,
    /// Bytes that accesses to remote memory moved, by source and destination.
    one_sided: FxHashMap<(u32, u32), u64>,
    unmatched: u64,
}

/// Sums the messages and collective calls of several selections.
pub(super) struct Tally<'a> {
    run: &'a Run,
    selected: &'a SelectionIndex,
    each: Vec<SelectionExchanges>,
}

impl<'a> Tally<'a> {
    /// An empty tally of this many selections.
    pub fn new(run: &'a Run, selected: &'a SelectionIndex, selections: usize) -> Self {
        let each = (0..selections).map(|_| SelectionExchanges::default()).collect();
        Self { run, selected, each }
    }

    /// Merges two tallies of the same run.
    pub fn merged(mut self, other: Self) -> Self {
        for (ours, theirs) in self.each.iter_mut().zip(other.each) {
            for (message, count) in theirs.sent {
                *ours.sent.entry(message).or_default() += count;
            }
            for (message, count) in theirs.received {
                *ours.received.entry(message).or_default() += count;
            }
            for (member, (sent, received)) in theirs.collective {
                let sums = ours.collective.entry(member).or_default();
                *sums = (sums.0.saturating_add(sent), sums.1.saturating_add(received));
            }
            for (ranks, bytes) in theirs.one_sided {
                let sum = ours.one_sided.entry(ranks).or_default();
                *sum = sum.saturating_add(bytes);
            }
            ours.unmatched += theirs.unmatched;
        }
        self
    }

    /// Enters what the ranks of a selection exchanged.
    fn fill(&self, exchanges: &mut Exchanges, selection: usize, analysis: &Analysis) {
        let of = &self.each[selection];
        let host = |ranks: &[RankExchanges], at: u32| ranks.get(at as usize).map(|rank| rank.host);
        let locality =
            |ranks: &[RankExchanges], a: u32, b: u32| match host(ranks, a) == host(ranks, b) {
                true => Locality::SameHost,
                false => Locality::OtherHost,
            };
        let ranks = &mut exchanges.ranks;
        for (&(from, to, bytes), count) in &of.sent {
            let (locality, partner) = (locality(ranks, from, to), ranks[to as usize].rank);
            let rank = &mut ranks[from as usize];
            *rank.sent.entry((locality, bytes)).or_default() += count;
            rank.partners.insert((locality, partner));
        }
        for (&(from, to, bytes), count) in &of.received {
            let (locality, partner) = (locality(ranks, from, to), ranks[from as usize].rank);
            let rank = &mut ranks[to as usize];
            *rank.received.entry((locality, bytes)).or_default() += count;
            rank.partners.insert((locality, partner));
        }
        for (&(from, to), bytes) in &of.one_sided {
            let locality = locality(ranks, from, to);
            let ends = [(from, to, *bytes as f64, 0.0), (to, from, 0.0, *bytes as f64)];
            for (at, other, sent, received) in ends {
                let partner = ranks[other as usize].rank;
                let rank = &mut ranks[at as usize];
                rank.one_sided.entry(locality).or_default().add(&Moved { sent, received });
                rank.partners.insert((locality, partner));
            }
        }
        // Sorted, because floating-point sums depend on the order.
        let members: BTreeMap<_, _> = of.collective.iter().collect();
        let mut shares = BTreeMap::new();
        for (&(at, communicator), &(sent, received)) in members {
            let host = ranks[at as usize].host;
            let share = *shares
                .entry((communicator, host))
                .or_insert_with(|| share_elsewhere(analysis, ranks, communicator, host));
            let (sent, received) = (sent as f64, received as f64);
            for (locality, share) in
                [(Locality::SameHost, 1.0 - share), (Locality::OtherHost, share)]
            {
                if share > 0.0 && sent + received > 0.0 {
                    let moved = Moved { sent: sent * share, received: received * share };
                    ranks[at as usize].collective.entry(locality).or_default().add(&moved);
                }
            }
        }
        exchanges.unmatched = of.unmatched;
    }
}

/// For a member on `host`: the share of the communicator's other members that are on other hosts.
fn share_elsewhere(
    analysis: &Analysis,
    ranks: &[RankExchanges],
    communicator: u32,
    host: usize,
) -> f64 {
    let (mut here, mut elsewhere) = (0.0f64, 0.0);
    let entry = analysis.communicators().get(communicator);
    for members in entry.iter().flat_map(|entry| &entry.groups) {
        for position in 0..members.size() {
            let Peer::World(rank) = members.peer(position as i32) else { continue };
            let Some(at) = analysis.run.position_of(rank) else { continue };
            match ranks[at].host == host {
                true => here += 1.0,
                false => elsewhere += 1.0,
            }
        }
    }
    // The rank is not its own partner.
    let others = here - 1.0 + elsewhere;
    if others > 0.0 { elsewhere / others } else { 0.0 }
}

impl MatchSink for Tally<'_> {
    fn take(&mut self, finding: &MatchFinding) {
        match finding {
            MatchFinding::Message(message) => self.message(message),
            MatchFinding::Collective(instance) => self.collective(instance),
            MatchFinding::Access(access) => self.access(access),
            MatchFinding::Unmatched(unmatched) => self.unmatched(unmatched),
            _ => {}
        }
    }
}

impl Tally<'_> {
    fn message(&mut self, message: &Message) {
        let (send, receive) = (&message.send, &message.receive);
        if send.rank == receive.rank {
            return;
        }
        let ends = self.run.position_of(send.rank).zip(self.run.position_of(receive.rank));
        let Some((from, to)) = ends else { return };
        let key = (from as u32, to as u32, message.bytes);
        for index in self.selected.at(from, send.begin_ticks) {
            *self.each[*index].sent.entry(key).or_default() += 1;
        }
        for index in self.selected.at(to, receive.begin_ticks) {
            *self.each[*index].received.entry(key).or_default() += 1;
        }
    }

    fn collective(&mut self, instance: &CollectiveInstance) {
        for member in &instance.members {
            let Some(at) = self.run.position_of(member.rank) else { continue };
            for index in self.selected.at(at, member.begin_ticks) {
                let key = (at as u32, instance.communicator);
                let sums = self.each[*index].collective.entry(key).or_default();
                sums.0 = sums.0.saturating_add(member.sent_bytes);
                sums.1 = sums.1.saturating_add(member.received_bytes);
            }
        }
    }

    fn access(&mut self, access: &Access) {
        let Access { origin, target, put_bytes, got_bytes, .. } = *access;
        let ends = self.run.position_of(origin).zip(self.run.position_of(target));
        let Some((from, to)) = ends.filter(|(from, to)| from != to) else { return };
        // The target makes no call, so the start of the origin's call decides for both sides.
        for index in self.selected.at(from, access.call.begin_ticks) {
            let sums = &mut self.each[*index].one_sided;
            for (ranks, bytes) in
                [((from as u32, to as u32), put_bytes), ((to as u32, from as u32), got_bytes)]
            {
                if bytes > 0 {
                    let sum = sums.entry(ranks).or_default();
                    *sum = sum.saturating_add(bytes);
                }
            }
        }
    }

    fn unmatched(&mut self, unmatched: &Unmatched) {
        let Some(at) = self.run.position_of(unmatched.rank) else { return };
        for index in self.selected.at(at, unmatched.begin_ticks) {
            self.each[*index].unmatched += 1;
        }
    }
}
