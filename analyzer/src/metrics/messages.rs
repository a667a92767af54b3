//! Traffic in a selection: how much each rank sent to each other, by pair of ranks, by size and by
//! communicator.
//!
//! A message counts if its send begins in the selection, a receive without a partner if it was
//! posted there, and a collective call if it begins there. Memory grows with the pairs of ranks
//! that exchange messages and with the communicators.

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::analysis::Analysis;
use crate::timeline::GlobalTimeline;
use crate::timeline::communicators::{CommunicatorEntry, CommunicatorTable, Members};
use crate::timeline::matching::{
    Access, CollectiveInstance, MatchFinding, MatchSink, MatchingSummary, Message, Reason, Sides,
    Unmatched,
};
use crate::trace::Run;

use super::note::{MessageNote, Note};
use super::resolve::{RankSelection, Resolved};
use super::unfinished::OpenOperations;

/// Messages and their bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Traffic {
    /// Number of messages.
    pub count: u64,
    /// Bytes sent.
    pub bytes: u64,
}

impl Traffic {
    fn add(&mut self, other: Self) {
        self.count = self.count.saturating_add(other.count);
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
}

/// One-sided accesses to remote memory (MPI_Put, MPI_Get and similar), and their bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct OneSided {
    /// Number of calls.
    pub accesses: u64,
    /// Bytes to the target.
    pub put_bytes: u64,
    /// Bytes from the target.
    pub got_bytes: u64,
}

impl OneSided {
    fn is_empty(&self) -> bool {
        self.accesses == 0
    }

    fn add(&mut self, other: Self) {
        self.accesses = self.accesses.saturating_add(other.accesses);
        self.put_bytes = self.put_bytes.saturating_add(other.put_bytes);
        self.got_bytes = self.got_bytes.saturating_add(other.got_bytes);
    }

    /// Bytes in both directions.
    pub fn bytes(&self) -> u64 {
        self.put_bytes.saturating_add(self.got_bytes)
    }
}

/// Traffic by pair of sender and receiver.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Matrix {
    /// By sender and receiver, world ranks; only pairs with messages.
    pub pairs: BTreeMap<(u32, u32), Traffic>,
}

impl Matrix {
    /// The pairs with the most bytes; among equal ones, the lowest ranks first.
    pub fn heaviest(&self, limit: usize) -> Vec<((u32, u32), Traffic)> {
        let mut pairs: Vec<_> =
            self.pairs.iter().map(|(pair, traffic)| (*pair, *traffic)).collect();
        pairs.sort_by_key(|(_, traffic)| std::cmp::Reverse((traffic.bytes, traffic.count)));
        pairs.truncate(limit);
        pairs
    }

    /// The traffic between hosts: host names in the order of their lowest ranks, and the matrix by
    /// index of the host.
    pub fn by_host(&self, run: &Run) -> (Vec<String>, Self) {
        let mut hosts: Vec<String> = Vec::new();
        let mut host_of: BTreeMap<u32, u32> = BTreeMap::new();
        let mut numbers: BTreeMap<&str, u32> = BTreeMap::new();
        for trace in &run.ranks {
            let host = trace.file.header.host.as_str();
            let number = *numbers.entry(host).or_insert_with(|| {
                hosts.push(host.to_owned());
                hosts.len() as u32 - 1
            });
            host_of.insert(trace.rank, number);
        }
        let mut pairs: BTreeMap<(u32, u32), Traffic> = BTreeMap::new();
        for ((source, destination), traffic) in &self.pairs {
            // Both ends of a message have a file.
            if let (Some(a), Some(b)) = (host_of.get(source), host_of.get(destination)) {
                pairs.entry((*a, *b)).or_default().add(*traffic);
            }
        }
        (hosts, Self { pairs })
    }
}

/// Messages of similar size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SizeClass {
    /// Smallest size in it: 0, or a power of two.
    pub from_bytes: u64,
    /// Largest size in it: 0, or one below the next power of two.
    pub to_bytes: u64,
    /// The messages.
    #[serde(flatten)]
    pub traffic: Traffic,
}

/// A communicator, or several that were created in the same way on the same ranks.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CommunicatorMetrics {
    /// Its name, where it has one.
    pub name: Option<String>,
    /// Name of the function that created it; `None` for the predefined ones.
    pub made_by: Option<String>,
    /// Whether it is an intercommunicator.
    #[serde(skip)]
    pub inter: bool,
    /// Number of communicators in this row, which share function, name and ranks. MPI_COMM_SELF is
    /// one row with an instance per rank.
    pub instances: u64,
    /// Ranks of its groups in order; one group unless it is an intercommunicator.
    #[serde(skip)]
    pub groups: Vec<Members>,
    /// Messages on it.
    #[serde(skip)]
    pub messages: Traffic,
    /// Accesses to remote memory through its windows; absent if there are none.
    #[serde(skip_serializing_if = "OneSided::is_empty")]
    pub one_sided: OneSided,
    /// Number of collective operations on it.
    pub collectives: u64,
    /// Number of collective calls, over its members.
    pub collective_calls: u64,
    /// Bytes that these calls sent.
    pub collective_bytes: u64,
}

impl CommunicatorMetrics {
    /// Bytes of its messages, accesses to remote memory and collective operations.
    pub fn all_bytes(&self) -> u64 {
        let messages = self.messages.bytes.saturating_add(self.one_sided.bytes());
        messages.saturating_add(self.collective_bytes)
    }
}

/// Messages and collective operations of a selection.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MessageMetrics {
    /// All messages.
    #[serde(skip)]
    pub total: Traffic,
    /// Messages whose receive was posted with MPI_ANY_SOURCE or MPI_ANY_TAG; known of receives with a request only.
    pub wildcard_receives: u64,
    /// Messages that arrive before they are sent, because the clocks are off by more than the
    /// messages took.
    pub early: u64,
    /// Early messages that exceed the error bounds of both clocks: the bounds, the matching or the
    /// trace must be wrong.
    pub early_beyond_bound: u64,
    /// Messages that arrive before they are sent according to the ranks' raw counters, without
    /// alignment.
    pub early_unaligned: u64,
    /// Early messages where several threads share communicator, ranks and tag, so that it is
    /// uncertain which send matched which receive. The three counts above do not include them.
    pub early_ambiguous: u64,
    /// Sends and receives without a partner.
    #[serde(skip)]
    pub unmatched: BTreeMap<Reason, Sides>,
    /// Traffic by sender and receiver.
    #[serde(skip)]
    pub matrix: Matrix,
    /// Traffic by size, ascending; classes without messages are left out.
    #[serde(skip)]
    pub sizes: Vec<SizeClass>,
    /// In the order in which the lowest ranks created them.
    #[serde(skip)]
    pub communicators: Vec<CommunicatorMetrics>,
    /// Accesses to remote memory; absent if there are none. The matrix includes their bytes, from source to
    /// destination; `matched` and `bytes` do not.
    #[serde(skip_serializing_if = "OneSided::is_empty")]
    pub one_sided: OneSided,
    /// Summary of matching over the whole run.
    #[serde(skip)]
    pub summary: MatchingSummary,
}

impl MessageMetrics {
    /// Number of sends and receives without a partner.
    pub fn unmatched_count(&self) -> u64 {
        self.unmatched.values().map(|sides| sides.sends + sides.receives).sum()
    }

    fn add_early(&mut self, early: Early) {
        self.early += early.count;
        self.early_beyond_bound += early.beyond_bound;
        self.early_unaligned += early.unaligned;
    }

    /// The figures of a whole run; also returns the operations that matching left open.
    pub(super) fn from_sums(
        analysis: &Analysis,
        summary: MatchingSummary,
        sums: TallySums,
    ) -> (Self, OpenOperations) {
        let mut communicators = rows(analysis.communicators()).0;
        for (row, sums) in communicators.iter_mut().zip(sums.rows) {
            (row.messages, row.one_sided) = (sums.messages, sums.one_sided);
            row.collectives = sums.collectives;
            row.collective_calls = sums.collective_calls;
            row.collective_bytes = sums.collective_bytes;
        }
        let classes = (0u32..).zip(sums.sizes).filter(|(_, traffic)| traffic.count > 0);
        let mut metrics = Self {
            total: sums.total,
            wildcard_receives: sums.wildcard_receives,
            early: 0,
            early_beyond_bound: 0,
            early_unaligned: 0,
            early_ambiguous: 0,
            unmatched: sums.unmatched,
            matrix: Matrix { pairs: sums.pairs.into_iter().collect() },
            sizes: classes.map(|(class, traffic)| size_class(class, traffic)).collect(),
            communicators,
            one_sided: sums.one_sided,
            summary,
        };
        metrics.add_early(sums.early);
        // All users of each threaded channel are known now.
        for channel in sums.channels.into_values() {
            match channel.shared {
                true => metrics.early_ambiguous += channel.early.count,
                false => metrics.add_early(channel.early),
            }
        }
        let mut open_operations = sums.open_operations;
        open_operations.sort();
        (metrics, open_operations)
    }

    /// Remarks on the figures.
    pub(super) fn notes(&self) -> impl Iterator<Item = Note> + use<> {
        let summary = &self.summary;
        let counts = [
            (MessageNote::SizeMismatch, summary.size_mismatches),
            (MessageNote::Truncated, summary.truncated),
            (MessageNote::RequestsUnknown, summary.unknown_requests),
            (MessageNote::CommunicatorsUnknown, summary.unknown_collectives),
            (MessageNote::Mismatched, summary.mismatched_instances),
            (MessageNote::Incomplete, summary.incomplete_instances),
            (MessageNote::Early, self.early),
            (MessageNote::EarlyAmbiguous, self.early_ambiguous),
        ];
        let counts = counts.into_iter().filter(|(_, count)| *count > 0);
        counts.map(|(what, count)| Note::Messages(what, count))
    }
}

/// Number of size classes, which reach up to 2⁶⁴ − 1 bytes.
const SIZE_CLASSES: usize = 65;

/// Class of a size: 0 for 0 bytes, else 1 + the exponent of its power of two.
fn class_of_size(bytes: u64) -> u32 {
    64 - bytes.leading_zeros()
}

fn size_class(class: u32, traffic: Traffic) -> SizeClass {
    let from_bytes = class.checked_sub(1).map_or(0, |exponent| 1u64 << exponent);
    SizeClass { from_bytes, to_bytes: from_bytes + from_bytes.saturating_sub(1), traffic }
}

/// The rows of the table, and the row of each communicator; communicators that were created in the
/// same way share a row.
fn rows(table: &CommunicatorTable) -> (Vec<CommunicatorMetrics>, Vec<usize>) {
    type Alike<'a> = (bool, Option<&'a [Members; 2]>, Option<&'a str>, Option<&'a str>);
    let mut rows: Vec<CommunicatorMetrics> = Vec::new();
    let mut known: BTreeMap<Alike, usize> = BTreeMap::new();
    let row_of = table.entries().iter().map(|entry| {
        let alike = (
            entry.own,
            (!entry.own).then_some(&entry.groups),
            entry.name.as_deref(),
            entry.made_by.as_deref(),
        );
        let row = *known.entry(alike).or_insert(rows.len());
        if row == rows.len() {
            rows.push(new_row(entry));
        } else {
            rows[row].instances += 1;
        }
        row
    });
    let row_of = row_of.collect();
    (rows, row_of)
}

fn new_row(entry: &CommunicatorEntry) -> CommunicatorMetrics {
    let groups = if entry.inter { 2 } else { 1 };
    CommunicatorMetrics {
        name: entry.name.clone(),
        made_by: entry.made_by.clone(),
        inter: entry.inter,
        instances: 1,
        groups: entry.groups.iter().take(groups).cloned().collect(),
        messages: Traffic::default(),
        one_sided: OneSided::default(),
        collectives: 0,
        collective_calls: 0,
        collective_bytes: 0,
    }
}

/// Sums the messages and collective operations of a selection.
pub(super) struct Tally<'a> {
    run: &'a Run,
    timeline: &'a GlobalTimeline,
    selections: &'a [RankSelection],
    communicators: &'a CommunicatorTable,
    row_of: Arc<[usize]>,
    /// Whether some rank has several threads.
    threaded: bool,
    sums: TallySums,
}

/// The sums of a tally, which those of other shares and processes are added to.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct TallySums {
    total: Traffic,
    one_sided: OneSided,
    wildcard_receives: u64,
    /// Without threaded channels.
    early: Early,
    unmatched: BTreeMap<Reason, Sides>,
    open_operations: OpenOperations,
    /// By row of communicators.
    rows: Vec<RowSums>,
    /// By class of size.
    sizes: Vec<Traffic>,
    /// By sender and receiver.
    pairs: FxHashMap<(u32, u32), Traffic>,
    /// Channels of ranks with several threads, by communicator, sender, receiver and tag.
    channels: FxHashMap<(u32, u32, u32, i32), ThreadedChannel>,
}

/// The sums of the communicators in a row; see [`CommunicatorMetrics`].
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
struct RowSums {
    messages: Traffic,
    one_sided: OneSided,
    collectives: u64,
    collective_calls: u64,
    collective_bytes: u64,
}

/// Messages that arrive before they are sent.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
struct Early {
    count: u64,
    beyond_bound: u64,
    unaligned: u64,
}

/// A sequence of messages that cannot overtake each other, between ranks with several threads.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct ThreadedChannel {
    /// Threads of the first message's sender and receiver.
    threads: (u32, u32),
    /// Whether other threads use it, too. MPI orders only the calls of one thread.
    shared: bool,
    early: Early,
}

impl<'a> Tally<'a> {
    /// An empty tally of a selection.
    pub fn new(analysis: &'a Analysis, resolved: &'a Resolved) -> Self {
        let communicators = analysis.communicators();
        let (rows, row_of) = rows(communicators);
        let sums = TallySums {
            rows: vec![RowSums::default(); rows.len()],
            sizes: vec![Traffic::default(); SIZE_CLASSES],
            ..TallySums::default()
        };
        Self {
            run: analysis.run,
            timeline: analysis.timeline,
            selections: &resolved.ranks,
            communicators,
            row_of: row_of.into(),
            threaded: analysis.run.ranks.iter().any(|rank| rank.threads.len() > 1),
            sums,
        }
    }

    pub fn into_sums(self) -> TallySums {
        self.sums
    }

    fn selects(&self, rank: u32, begin_ticks: u64) -> bool {
        let selection = self.run.position_of(rank).and_then(|index| self.selections.get(index));
        selection.is_some_and(|selection| selection.counts(begin_ticks))
    }

    fn early(&self, message: &Message) -> Early {
        let (send, receive) = (&message.send, &message.receive);
        let mut early = Early::default();
        let (Some(end_s), Some(end_ticks)) = (receive.end_s, receive.end_ticks) else {
            return early;
        };
        early.unaligned = u64::from(end_ticks < send.begin_ticks);
        if end_s >= send.begin_s {
            return early;
        }
        early.count = 1;
        let bound_ns = |rank: u32, ticks: u64| {
            self.timeline.ranks[self.run.position_of(rank)?].clock.bound_ns_at(ticks)
        };
        let sent = bound_ns(send.rank, send.begin_ticks);
        let bounds = sent.zip(bound_ns(receive.rank, end_ticks));
        let beyond = bounds.is_some_and(|(a, b)| (send.begin_s - end_s) * 1e9 > a + b);
        early.beyond_bound = u64::from(beyond);
        early
    }

    fn has_threads(&self, rank: u32) -> bool {
        let position = || self.run.position_of(rank);
        self.threaded && position().is_some_and(|at| self.run.ranks[at].threads.len() > 1)
    }

    fn count_early(&mut self, message: &Message) {
        let early = self.early(message);
        let (send, receive) = (&message.send, &message.receive);
        if !self.has_threads(send.rank) && !self.has_threads(receive.rank) {
            self.sums.early.add(early);
            return;
        }
        let threads = (send.thread, receive.thread);
        let key = (message.communicator, send.rank, receive.rank, message.tag);
        let new = ThreadedChannel { threads, shared: false, early: Early::default() };
        let channel = self.sums.channels.entry(key).or_insert(new);
        channel.shared |= channel.threads != threads;
        channel.early.add(early);
    }

    fn row(&mut self, communicator: u32) -> Option<&mut RowSums> {
        let row = *self.row_of.get(communicator as usize)?;
        self.sums.rows.get_mut(row)
    }
}

impl Early {
    fn add(&mut self, other: Self) {
        self.count += other.count;
        self.beyond_bound += other.beyond_bound;
        self.unaligned += other.unaligned;
    }
}

impl TallySums {
    /// Merges the sums of two parts of a run.
    pub fn merged(mut self, other: Self) -> Self {
        self.open_operations.add(other.open_operations);
        self.total.add(other.total);
        self.one_sided.add(other.one_sided);
        self.wildcard_receives += other.wildcard_receives;
        self.early.add(other.early);
        // All messages of a channel are matched in one share.
        self.channels.extend(other.channels);
        for (reason, sides) in other.unmatched {
            self.unmatched.entry(reason).or_default().add_all(sides);
        }
        for (row, other) in self.rows.iter_mut().zip(other.rows) {
            row.messages.add(other.messages);
            row.one_sided.add(other.one_sided);
            row.collectives += other.collectives;
            row.collective_calls += other.collective_calls;
            row.collective_bytes = row.collective_bytes.saturating_add(other.collective_bytes);
        }
        for (traffic, other) in self.sizes.iter_mut().zip(other.sizes) {
            traffic.add(other);
        }
        for (pair, traffic) in other.pairs {
            self.pairs.entry(pair).or_default().add(traffic);
        }
        self
    }
}

impl MatchSink for Tally<'_> {
    fn take(&mut self, finding: &MatchFinding) {
        match finding {
            MatchFinding::Message(message) => self.message(message),
            MatchFinding::Access(access) => self.access(access),
            MatchFinding::Active(operation) => self.sums.open_operations.active(operation),
            MatchFinding::Collective(instance) => self.collective(instance),
            MatchFinding::Unmatched(unmatched) => self.unmatched(unmatched),
            _ => {}
        }
    }
}

impl Tally<'_> {
    fn message(&mut self, message: &Message) {
        let (send, receive) = (&message.send, &message.receive);
        if !self.selects(send.rank, send.begin_ticks) {
            return;
        }
        let traffic = Traffic { count: 1, bytes: message.bytes };
        self.sums.total.add(traffic);
        self.sums.wildcard_receives += u64::from(message.wildcard);
        self.count_early(message);
        self.sums.pairs.entry((send.rank, receive.rank)).or_default().add(traffic);
        self.sums.sizes[class_of_size(message.bytes) as usize].add(traffic);
        if let Some(row) = self.row(message.communicator) {
            row.messages.add(traffic);
        }
    }

    fn access(&mut self, access: &Access) {
        let Access { origin, target, communicator, put_bytes, got_bytes, .. } = *access;
        if !self.selects(origin, access.call.begin_ticks) {
            return;
        }
        let one = OneSided { accesses: 1, put_bytes, got_bytes };
        self.sums.one_sided.add(one);
        if let Some(row) = self.row(communicator) {
            row.one_sided.add(one);
        }
        for (pair, bytes) in [((origin, target), put_bytes), ((target, origin), got_bytes)] {
            if bytes > 0 {
                self.sums.pairs.entry(pair).or_default().add(Traffic { count: 1, bytes });
            }
        }
    }

    fn collective(&mut self, instance: &CollectiveInstance) {
        self.sums.open_operations.collective(instance, self.run, self.communicators);
        let mut calls = 0;
        let mut bytes = 0u64;
        for member in &instance.members {
            if self.selects(member.rank, member.begin_ticks) {
                calls += 1;
                bytes = bytes.saturating_add(member.sent_bytes);
            }
        }
        if let Some(row) = self.row(instance.communicator).filter(|_| calls > 0) {
            row.collectives += 1;
            row.collective_calls += calls;
            row.collective_bytes = row.collective_bytes.saturating_add(bytes);
        }
    }

    fn unmatched(&mut self, unmatched: &Unmatched) {
        if self.selects(unmatched.rank, unmatched.begin_ticks) {
            self.sums.unmatched.entry(unmatched.reason).or_default().add(unmatched.side);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn size_classes_lie_between_powers_of_two() {
        for (bytes, from, to) in [
            (0, 0, 0),
            (1, 1, 1),
            (2, 2, 3),
            (1023, 512, 1023),
            (1024, 1024, 2047),
            (u64::MAX, 1 << 63, u64::MAX),
        ] {
            let class = size_class(class_of_size(bytes), Traffic::default());
            assert_eq!((class.from_bytes, class.to_bytes), (from, to));
        }
    }

    #[test]
    fn heaviest_pairs_come_first() {
        let traffic = |count, bytes| Traffic { count, bytes };
        let pairs = [((0, 1), traffic(1, 5)), ((1, 0), traffic(9, 9)), ((2, 0), traffic(2, 5))];
        let matrix = Matrix { pairs: pairs.into_iter().collect() };
        let ranks: Vec<_> = matrix.heaviest(2).into_iter().map(|(pair, _)| pair).collect();
        assert_eq!(ranks, [(1, 0), (2, 0)]);
    }
}
