//! What matching found in a share of the run: conditions, and what they are made of.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::longest::{CountsOfProcess, Duration, Longest};
use super::receipts::{CountOfProcess, Receipts};
use super::semantics::CallKind;
use super::side::Side;
use super::states::State;
use super::windows::WindowCalls;

/// Something a partner did that a call needed.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct Condition {
    /// The call: its line, and when it was entered (E) and left (L).
    pub line: u32,
    pub entered: i64,
    pub left: i64,
    /// When the partner fulfilled the condition (A), and the partner's line.
    pub fulfilled: i64,
    pub partner: u32,
    /// Largest error between the two clocks (β), in ticks.
    pub bound: i64,
    pub state: State,
    /// What kind of call it is.
    pub call: CallKind,
    /// The call's function on its rank.
    pub function: u16,
    /// Number of the slot within the rank, truncated.
    pub number: u32,
    /// A send that the library may have taken before its receive was posted.
    pub may_be_eager: bool,
}

/// A call that lasted longer than the partner's part explains. `condition` describes its wait for
/// the partner to move the message, in case late progress turns out to be the reason.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct Unexplained {
    /// The partner's rank, by its position.
    pub partner: usize,
    /// Up to when the partner's part explains the call.
    pub since: i64,
    pub condition: Condition,
}

impl Duration for Condition {
    /// How long the call would wait if nothing else were later.
    fn length(&self) -> i64 {
        self.fulfilled - self.entered
    }

    /// A call that needs all of its conditions waits for the last.
    fn is_optional(&self) -> bool {
        self.call == CallKind::All
    }
}

impl Duration for Unexplained {
    fn length(&self) -> i64 {
        self.condition.left - self.since
    }

    fn is_optional(&self) -> bool {
        true
    }
}

/// A collective operation that all members were inside at the same time, so that their lines
/// synchronised there.
#[derive(Debug, Clone)]
pub(super) struct CollectiveSync {
    /// When the last member entered.
    pub moment: i64,
    /// The members' lines, ascending; most operations of a communicator share one list.
    pub lines: Arc<[u32]>,
}

/// A run of polls that found nothing.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct PollRun {
    pub line: u32,
    pub begin: i64,
    pub end: i64,
    /// Ticks inside the polls.
    pub inside: i64,
    pub function: u16,
    /// Number of the slot within the rank, truncated.
    pub number: u32,
}

/// Most received messages that are kept for each wait that may be kept.
pub(super) const RECEIPTS_FOR_EACH_WAIT: usize = 8;

/// What one share of the run yielded.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct MatchedConditions {
    pub conditions: Longest<Condition>,
    #[serde(with = "sync_lists")]
    pub collective_syncs: Vec<CollectiveSync>,
    pub polls: Vec<PollRun>,
    pub unexplained: Longest<Unexplained>,
    pub receipts: Receipts,
    /// Probes, each with the call that received its message.
    pub(super) probes: Vec<(Side, Entry)>,
    /// Sends of messages that were probed, keyed by the call that received them.
    pub(super) probed: Vec<(Entry, Side)>,
    /// Conditions fulfilled after the call had returned, by more than the clock error.
    pub violations: u64,
    /// Collective operations with missing members.
    pub incomplete: u64,
    /// Neighbourhood collectives of ranks whose neighbours are not known.
    pub neighbourhoods: u64,
    /// Epochs of one-sided communication.
    pub windows: WindowCalls,
}

/// Sends synchronisations to another process, each list of lines once.
mod sync_lists {
    use std::sync::Arc;

    use rustc_hash::FxHashMap;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::CollectiveSync;

    /// The lists, and moment and list of each synchronisation.
    #[derive(Serialize, Deserialize)]
    struct Listed(Vec<Vec<u32>>, Vec<(i64, usize)>);

    pub fn serialize<S: Serializer>(syncs: &[CollectiveSync], to: S) -> Result<S::Ok, S::Error> {
        let mut numbers: FxHashMap<*const u32, usize> = FxHashMap::default();
        let mut lists = Vec::new();
        let listed = syncs.iter().map(|CollectiveSync { moment, lines }| {
            let list = numbers.entry(lines.as_ptr()).or_insert_with(|| {
                lists.push(lines.to_vec());
                lists.len() - 1
            });
            (*moment, *list)
        });
        let listed = listed.collect();
        Listed(lists, listed).serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Vec<CollectiveSync>, D::Error> {
        let Listed(lists, listed) = Listed::deserialize(from)?;
        let lists: Vec<Arc<[u32]>> = lists.into_iter().map(Arc::from).collect();
        let sync =
            |(moment, list): (i64, usize)| CollectiveSync { moment, lines: lists[list].clone() };
        Ok(listed.into_iter().map(sync).collect())
    }
}

/// A call's line, and when it was entered.
pub(super) type Entry = (u32, i64);

/// How much is kept, of the whole run and in this process.
#[derive(Debug, Clone)]
pub(super) struct Limits {
    most_waits: usize,
    /// How many shares of the run are matched in this process.
    shares: usize,
    conditions: CountsOfProcess,
    unexplained: CountsOfProcess,
    receipts: CountOfProcess,
}

impl Limits {
    /// Keeps at most this many waits of a run.
    pub fn new(most_waits: usize) -> Self {
        let shares = rayon::current_num_threads().max(1);
        let (conditions, unexplained, receipts) = Default::default();
        Self { most_waits, shares, conditions, unexplained, receipts }
    }
}

impl MatchedConditions {
    pub(super) fn within(limits: &Limits) -> Self {
        let Limits { most_waits, shares, conditions, unexplained, receipts } = limits;
        Self {
            conditions: Longest::new(*most_waits, *shares, conditions),
            unexplained: Longest::new(*most_waits, *shares, unexplained),
            receipts: Receipts::new(RECEIPTS_FOR_EACH_WAIT * most_waits, receipts),
            ..Self::default()
        }
    }

    /// Adds what another share or process found.
    pub fn merge(mut self, other: Self) -> Self {
        self.conditions.merge(other.conditions);
        self.collective_syncs.extend(other.collective_syncs);
        self.polls.extend(other.polls);
        self.unexplained.merge(other.unexplained);
        self.receipts.merge(other.receipts);
        self.probes.extend(other.probes);
        self.probed.extend(other.probed);
        self.violations += other.violations;
        self.incomplete += other.incomplete;
        self.neighbourhoods += other.neighbourhoods;
        self.windows.merge(other.windows);
        self
    }
}
