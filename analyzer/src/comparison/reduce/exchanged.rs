//! Counts messages and collective operations.

use std::collections::BTreeMap;

use super::super::partners::Partners;
use super::super::record::Counts;
use crate::analysis::Analysis;
use crate::timeline::matching::{CollectiveInstance, MatchFinding, MatchSink, Message};
use crate::trace::Run;

/// Counts of messages and collective operations.
#[derive(Debug, Default)]
pub(super) struct Exchanged {
    /// Messages by sender and receiver.
    pairs: BTreeMap<(u32, u32), u64>,
    /// Messages by size class.
    sizes: BTreeMap<u64, u64>,
    bytes: u64,
    /// Collective operations by function, number of ranks and size class.
    collectives: BTreeMap<(String, u32, u64), u64>,
}

/// The largest power of two that does not exceed a size; 0 for 0.
fn class(bytes: u64) -> u64 {
    bytes.checked_ilog2().map_or(0, |log| 1 << log)
}

impl MatchSink for Exchanged {
    fn take(&mut self, finding: &MatchFinding) {
        match finding {
            MatchFinding::Message(message) => self.message(message),
            MatchFinding::Collective(instance) => self.collective(instance),
            _ => {}
        }
    }
}

impl Exchanged {
    fn message(&mut self, message: &Message) {
        *self.pairs.entry((message.send.rank, message.receive.rank)).or_default() += 1;
        *self.sizes.entry(class(message.bytes)).or_default() += 1;
        self.bytes += message.bytes;
    }

    fn collective(&mut self, instance: &CollectiveInstance) {
        let members = instance.members.iter();
        let most = members.map(|member| member.sent_bytes.max(member.received_bytes)).max();
        let ranks = instance.members.len() as u32 + instance.missing;
        let key = (instance.function.clone(), ranks, class(most.unwrap_or(0)));
        *self.collectives.entry(key).or_default() += 1;
    }
}

fn add<K: Ord>(sums: &mut BTreeMap<K, u64>, more: BTreeMap<K, u64>) {
    for (key, count) in more {
        *sums.entry(key).or_default() += count;
    }
}

impl Exchanged {
    /// Counts those of a run; `None` if no rank recorded attributes.
    pub fn count(analysis: &Analysis) -> Option<Self> {
        let (_, shares) = analysis.matches(Self::default)?;
        shares.into_iter().reduce(|mut sum, share| {
            add(&mut sum.pairs, share.pairs);
            add(&mut sum.sizes, share.sizes);
            add(&mut sum.collectives, share.collectives);
            sum.bytes += share.bytes;
            sum
        })
    }

    /// Adds the counts to `counts`; returns the partners.
    pub fn into_counts(self, run: &Run, counts: &mut Counts) -> Partners {
        counts.messages = Some(self.pairs.values().sum());
        counts.message_bytes = Some(self.bytes);
        counts.sizes = self.sizes;
        let named = self.collectives.into_iter();
        counts.collectives = named
            .map(|((function, ranks, bytes), count)| (format!("{function}/{ranks}/{bytes}"), count))
            .collect();
        let hosts: Vec<&str> =
            run.ranks.iter().map(|rank| rank.file.header.host.as_str()).collect();
        let host_of = |rank: u32| {
            let host = run.position_of(rank).map(|position| hosts[position]);
            hosts.iter().position(|other| Some(*other) == host).unwrap_or(usize::MAX)
        };
        let by_rank: Vec<usize> = (0..run.world_size).map(host_of).collect();
        Partners::new(&self.pairs, |rank| by_rank.get(rank as usize).copied().unwrap_or(usize::MAX))
    }
}
