use super::*;
use crate::processes::in_threads;
use crate::synthetic_messages::{Attributes, completed, on_world};
use crate::synthetic_trace::{RunDirectory, SyntheticRank};
use crate::timeline::matching::Reason::*;
use trace_format::header::COMMUNICATOR_SELF;
use trace_format::header::Definition;
use trace_format::layout::{CANCELLED, COMPLETED};

mod collective_tests;
mod completion_tests;
mod failure_tests;
mod lifetime_tests;
mod order_tests;
mod share_tests;

/// First tick of the synthetic ranks' calls, and end of the ranks.
const T: u64 = 2_000_000;
const END: u64 = 100_000_000;

fn at(ticks: u64) -> u64 {
    T + ticks
}

/// What matching found. The methods give times in ticks since `T`.
#[derive(Debug, Default)]
struct Found {
    messages: Vec<Message>,
    instances: Vec<CollectiveInstance>,
    unmatched: Vec<Unmatched>,
    active: Vec<ActiveOperation>,
}

impl MatchSink for Found {
    fn take(&mut self, finding: &MatchFinding) {
        match finding {
            MatchFinding::Message(message) => self.messages.push(*message),
            MatchFinding::Collective(instance) => self.instances.push(instance.clone()),
            MatchFinding::Unmatched(unmatched) => self.unmatched.push(*unmatched),
            MatchFinding::Active(operation) => self.active.push(*operation),
            _ => {}
        }
    }
}

impl Found {
    /// (source, begin of send, destination, begin of receive) of the messages, sorted.
    fn pairs(&self) -> Vec<(u32, u64, u32, u64)> {
        let pairs = self.messages.iter().map(|m| {
            let (s, r) = (m.send, m.receive);
            (s.rank, s.begin_ticks - T, r.rank, r.begin_ticks - T)
        });
        let mut pairs: Vec<_> = pairs.collect();
        pairs.sort_unstable();
        pairs
    }

    /// (side, reason, rank, begin) of sends and receives without a partner, sorted.
    fn alone(&self) -> Vec<(Side, Reason, u32, u64)> {
        let alone = self.unmatched.iter().map(|u| (u.side, u.reason, u.rank, u.begin_ticks - T));
        let mut alone: Vec<_> = alone.collect();
        alone.sort_unstable();
        alone
    }
}

/// What matching with at most one, two and three shares finds.
fn in_one_to_three_shares<S: MatchSink + Default + Send>(
    run: &Run,
) -> [Option<Vec<(MatchingSummary, S)>>; 3] {
    let timeline = GlobalTimeline::new(run);
    let communicators = CommunicatorTable::new(run);
    [1, 2, 3].map(|most| {
        match_in_shares(run, &timeline, &communicators, &ProcessShare::whole(run, most), S::default)
    })
}

fn match_directory(directory: &RunDirectory) -> (Found, MatchingSummary) {
    let run = Run::open(directory.path()).unwrap();
    assert_eq!(run.diagnoses, []);
    let timeline = GlobalTimeline::new(&run);
    let communicators = CommunicatorTable::new(&run);
    let mut found = Found::default();
    let summary = match_run(&run, &timeline, &communicators, &mut found);
    assert_eq!(summary.matched as usize, found.messages.len());
    let counted = summary.unmatched.values().map(|sides| sides.sends + sides.receives);
    assert_eq!(counted.sum::<u64>() as usize, found.unmatched.len());
    for shares in in_one_to_three_shares::<Found>(&run).into_iter().flatten() {
        assert_alike((&found, &summary), shares);
    }
    for count in 2..=3 {
        let shares = in_threads::run(count, |processes| {
            let run = Run::open_in(directory.path(), &processes).unwrap();
            let timeline = GlobalTimeline::new(&run);
            let communicators = CommunicatorTable::new(&run);
            let here = ProcessShare { processes, ranks: run.own.clone(), max_shares: 2 };
            match_in_shares(&run, &timeline, &communicators, &here, Found::default)
        });
        let shares: Option<Vec<_>> = shares.into_iter().collect();
        if let Some(shares) = shares {
            assert_alike((&found, &summary), shares.into_iter().flatten().collect());
        }
    }
    (found, summary)
}

/// Asserts that the shares together find what matching all at once finds, apart from the order and
/// the completions of collective members.
fn assert_alike(
    (found, summary): (&Found, &MatchingSummary),
    shares: Vec<(MatchingSummary, Found)>,
) {
    let (mut all, mut sum) = (Found::default(), MatchingSummary::default());
    for (summary, found) in shares {
        sum.add(&summary);
        all.messages.extend(found.messages);
        all.instances.extend(found.instances);
        all.unmatched.extend(found.unmatched);
        all.active.extend(found.active);
    }
    let lines = |found: &Found| {
        let mut lines: Vec<String> = found.messages.iter().map(|m| format!("{m:?}")).collect();
        // Shares do not track active operations of ranks that finished.
        lines.extend(found.active.iter().map(|a| format!("{a:?}")));
        lines.extend(found.unmatched.iter().map(|u| format!("{u:?}")));
        lines.extend(found.instances.iter().map(|instance| {
            let CollectiveInstance { communicator, number, missing, mismatched, .. } = instance;
            let member = |m: &CollectiveMember| {
                (m.rank, m.thread, m.begin_ticks, m.sent_bytes, m.received_bytes)
            };
            let mut members: Vec<_> = instance.members.iter().map(member).collect();
            members.sort_unstable();
            format!("{communicator} {number} {missing} {mismatched} {members:?}")
        }));
        lines.sort();
        lines
    };
    assert_eq!(lines(&all), lines(found));
    assert_eq!(&sum, summary);
}

/// Matches ranks; those that were not killed call MPI_Finalize first.
fn match_ranks(ranks: &[SyntheticRank]) -> (Found, MatchingSummary) {
    let directory = RunDirectory::new();
    for rank in ranks {
        let mut rank = rank.clone();
        if rank.definitions.iter().any(|d| matches!(d, Definition::Finalized { .. })) {
            rank.finalize(END, END + 10);
        }
        directory.write(&rank);
    }
    match_directory(&directory)
}

/// Ranks of a world, before any call.
fn world<const P: usize>() -> [SyntheticRank; P] {
    std::array::from_fn(|rank| SyntheticRank::level_1(rank as u32, P as u32, END))
}
