//! Which rank waits for which in a run that did not finish or is still running.
//!
//! A rank inside MPI_Recv waits for the sender, inside MPI_Wait for the partner of the request's
//! operation, inside a collective operation for the members that have not arrived, and with
//! MPI_ANY_SOURCE for any member. The graph of these dependences shows which ranks wait in a cycle
//! (a deadlock), and which rank the others ultimately wait for. What a call waits for is known only
//! if it was recorded (level 1).

mod graph;
mod needs;
mod open_collective;
mod open_operations;
mod position;
mod stacks;

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};

use crate::analysis::{Analysis, RankView};
use crate::timeline::LastActivity;
use crate::timeline::calls::EventReader;
use crate::timeline::communicators::CommunicatorTable;
use crate::trace::ended_ranks::EndedRank;
use crate::trace::snapshot::Unanswered;
use crate::trace::symbols::{SourceLocation, Symbols};
use crate::trace::{ProcessState, RankTrace, Run};

use graph::Node;
pub use needs::{Awaited, Need, WaitsFor};
use needs::{Needs, WaitsForPart};
use open_collective::{MAX_RANKS, members};
pub use open_collective::{OpenCollective, Ranks};
pub(super) use open_operations::OpenOperations;
pub use position::{Arguments, CallRecord, Partner};
use position::{RankContext, RecentCalls};
pub use stacks::{StackFunction, ThreadStack};

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(into = "ThreadPositionPart")]
pub struct ThreadPosition {
    /// Thread number in the file.
    pub thread: u32,
    /// Its last calls, oldest first, including one that it is inside.
    pub last_calls: Vec<CallRecord>,
    /// Where the program made the call, or the polls, that it is inside, or else its last call.
    pub place: SourceLocation,
    /// What it waits for, if it is inside a call or a run of polls.
    pub waits_for: Option<WaitsFor>,
    /// Where a watcher found it since.
    pub stack: Option<ThreadStack>,
}

impl ThreadPosition {
    /// The call, or the run of polls, that it is inside.
    pub fn inside(&self) -> Option<&CallRecord> {
        self.waits_for.as_ref().and(self.last_calls.last())
    }
}

/// The position of a thread.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct ThreadPositionPart {
    /// Thread number in the file: 0 called MPI first.
    thread: u32,
    /// The call, or the last run of polls, that it is inside.
    inside: Option<CallRecord>,
    /// File of the program that made this call, or else its last.
    file: Option<String>,
    /// Line in it.
    line: Option<u32>,
    /// What it waits for; null outside calls.
    waits_for: Option<WaitsForPart>,
    /// At most five, oldest first, including one that it is inside.
    last_calls: Vec<CallRecord>,
    /// Where a watcher found it since its last call began or ended; null: it was not asked, or did not answer.
    stack: Option<ThreadStack>,
}

impl From<ThreadPosition> for ThreadPositionPart {
    fn from(from: ThreadPosition) -> Self {
        let inside = from.inside().cloned();
        let ThreadPosition { thread, last_calls, place, waits_for, stack } = from;
        let (file, line) = (place.file, place.line);
        let waits_for = waits_for.map(WaitsForPart::from);
        Self { thread, inside, file, line, waits_for, last_calls, stack }
    }
}

fn name_of_process<S: Serializer>(of: &ProcessState, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(of.name())
}

/// A rank that did not return from MPI_Finalize.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct UnfinishedRank {
    /// Rank in MPI_COMM_WORLD.
    pub rank: u32,
    /// State of its process: `on a core`, `asleep`, `stopped`, `gone`, or `unknown` (another host).
    #[serde(serialize_with = "name_of_process")]
    #[cfg_attr(test, schemars(with = "String"))]
    pub process: ProcessState,
    /// Whether its last event is known; false if recording ended earlier or its file is damaged.
    pub known: bool,
    /// Its last time stamp, global seconds.
    pub last_stamp_s: f64,
    /// Threads with calls.
    #[cfg_attr(test, schemars(with = "Vec<ThreadPositionPart>"))]
    pub threads: Vec<ThreadPosition>,
    /// Whether it is stuck: it waits in a cycle, or for something that will never act.
    pub stuck: bool,
    /// Why a watcher that asked for its stack has none; null: it has one, or did not ask.
    pub unanswered: Option<Unanswered>,
}

impl UnfinishedRank {
    /// The thread that determines the rank's position: the first one inside a call, else the one
    /// that called last.
    pub fn position(&self) -> Option<&ThreadPosition> {
        let inside = self.threads.iter().find(|thread| thread.waits_for.is_some());
        let begin_s = |thread: &&ThreadPosition| thread.last_calls.last().map(|call| call.begin_s);
        let begin = |thread: &&ThreadPosition| begin_s(thread).unwrap_or(f64::NEG_INFINITY);
        let last = || self.threads.iter().max_by(|a, b| begin(a).total_cmp(&begin(b)));
        inside.or_else(last)
    }

    /// Whether its first thread is outside every call.
    pub fn is_outside(&self) -> bool {
        self.threads.iter().all(|thread| thread.thread != 0 || thread.waits_for.is_none())
    }

    /// Whether its first thread is outside every call while another is inside one.
    pub fn waits_in_other_thread(&self) -> bool {
        self.is_outside() && self.threads.iter().any(|thread| thread.waits_for.is_some())
    }

    /// Whether one of its threads waits for a collective operation, given by its index in
    /// [`Unfinished::collectives`].
    fn waits_for_collective(&self, number: usize) -> bool {
        let waits = self.threads.iter().filter_map(|thread| thread.waits_for.as_ref());
        waits.into_iter().any(|wait| match wait {
            WaitsFor::Needs { needs, .. } => {
                needs.iter().any(|need| need.awaited == Awaited::Missing(number))
            }
            _ => false,
        })
    }
}

/// The state of a rank that others wait for, and that waits for no other rank itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum CauseKind {
    /// It returned from MPI_Finalize.
    #[serde(rename = "finalized")]
    Finalized,
    /// It left no readable file.
    #[serde(rename = "without a file")]
    WithoutFile,
    /// Its recording ended before the program did.
    #[serde(rename = "not recorded")]
    NotRecorded,
    /// Its process ended before the others.
    #[serde(rename = "died")]
    Died,
    /// It is outside MPI, or was so when the run ended.
    #[serde(rename = "outside MPI")]
    OutsideMpi,
    /// It called MPI_Abort.
    #[serde(rename = "aborts")]
    Aborts,
    /// It is inside a call that needs no other rank, or whose needs were not recorded.
    #[serde(rename = "inside a call")]
    InsideCall,
}

/// Where a chain of waiting ranks ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Cause {
    /// Rank in MPI_COMM_WORLD.
    pub rank: u32,
    /// Its state.
    pub kind: CauseKind,
    /// Ranks that wait for it, directly or indirectly.
    pub waiting: Ranks,
}

/// Ranks that wait for each other in a cycle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Deadlock {
    /// Each waits for the next, the last for the first.
    pub ranks: Vec<u32>,
    /// Whether nothing unrecorded can resolve it: none of its ranks polls or has several threads.
    pub certain: bool,
}

/// The ranks that did not finish, and which rank waits for which.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Unfinished {
    /// Whether a process of the run is known to be still running.
    pub running: bool,
    /// Moment up to which this state held, global seconds: the time of inspection, the end of the
    /// launcher, or the last time stamp of all ranks.
    pub until_s: f64,
    /// Whether `until_s` is only the last time stamp, so that the run may have continued after it.
    pub at_least: bool,
    /// Ranks that did not return from MPI_Finalize, ascending.
    pub ranks: Vec<UnfinishedRank>,
    /// Collective operations that they are inside.
    pub collectives: Vec<OpenCollective>,
    /// Cycles of waiting ranks.
    pub deadlocks: Vec<Deadlock>,
    /// Ends of the chains, those that most ranks wait for first.
    pub causes: Vec<Cause>,
}

/// How many ends of chains are examined for their waiting ranks.
const MAX_CAUSES: usize = 64;

impl Unfinished {
    /// Examines the ranks that did not finish; `None` if all did. If the analysis is divided, all
    /// processes call this, and the first one's `open_operations` are those of the whole run.
    pub(super) fn new(analysis: &Analysis, open_operations: OpenOperations) -> Option<Self> {
        let Analysis { run, timeline, .. } = *analysis;
        let unfinished = |trace: &&RankTrace| !trace.facts.finalized();
        if run.world_size > MAX_RANKS {
            return None;
        }
        let LastActivity { at_s: until_s, at_least, running } = timeline.last_activity?;
        let communicators = analysis.communicators();
        let context = |position: usize| {
            let (trace, time) = (&run.ranks[position], &timeline.ranks[position]);
            RankContext { reading: EventReader::new(position, trace, communicators), time }
        };
        let begin = |rank: RankView<'_>| {
            unfinished(&rank.trace).then(|| (rank.position, RecentCalls::of_threads(rank.trace)))
        };
        let tails = analysis.events(begin, |(_, tails), thread, event| tails[thread].add(event));
        let tails = analysis.processes.join(tails).into_iter();
        let tails = tails.map(|(position, tails)| (context(position), tails));
        let tails: Vec<(RankContext, Vec<RecentCalls>)> = tails.collect();
        let mut needs = Needs::new(analysis, open_operations, &tails, running);
        let mut symbols = Symbols::for_run(analysis.run);
        let snapshot = run.description.as_ref().and_then(|run| run.snapshot.as_ref());
        let unanswered = snapshot.map(|snapshot| &snapshot.unanswered);
        let mut ranks: Vec<UnfinishedRank> = tails
            .iter()
            .map(|(at, tails)| UnfinishedRank {
                rank: at.reading.trace.rank,
                process: at.reading.trace.process,
                known: position::is_known(at.reading.trace, at.time),
                last_stamp_s: at.time.clock.seconds(last_stamp(at)),
                threads: tails
                    .iter()
                    .map(|tail| ThreadPosition {
                        thread: tail.thread,
                        last_calls: tail.calls.iter().map(|event| at.record(event)).collect(),
                        place: tail
                            .calls
                            .back()
                            .map_or_else(Default::default, |event| at.place(event, &mut symbols)),
                        waits_for: tail.inside().map(|event| needs.waits_for(at, event)),
                        stack: ThreadStack::of_thread(at, tail, &mut symbols),
                    })
                    .collect(),
                stuck: false,
                unanswered: unanswered.and_then(|of| of.get(&at.reading.trace.rank)).copied(),
            })
            .collect();
        let collectives = needs.collectives();
        let nodes = nodes(run, &ranks, &collectives, communicators, running);
        let free = graph::free(&nodes);
        for rank in &mut ranks {
            let acts = nodes[rank.rank as usize] == Node::Never;
            rank.stuck = !acts && !free[rank.rank as usize];
        }
        let deadlocks = deadlocks(
            &graph::cycles(&nodes, &free, run.world_size as usize),
            &ranks,
            run.world_size,
        );
        let causes = causes(run, &nodes, &ranks);
        Some(Self { running, until_s, at_least, ranks, collectives, deadlocks, causes })
    }

    /// The collective operations that some rank waits for.
    pub fn awaited_collectives(&self) -> impl Iterator<Item = &OpenCollective> {
        let awaited =
            |number: usize| self.ranks.iter().any(|rank| rank.waits_for_collective(number));
        let all = self.collectives.iter().enumerate();
        all.filter(move |(number, _)| awaited(*number)).map(|(_, open)| open)
    }

    pub fn rank(&self, rank: u32) -> Option<&UnfinishedRank> {
        let index = self.ranks.binary_search_by_key(&rank, |unfinished| unfinished.rank).ok()?;
        self.ranks.get(index)
    }
}

/// Counter of a rank's last time stamp; its start if it has none.
fn last_stamp(at: &RankContext) -> u64 {
    let last = at.reading.trace.threads.iter().filter_map(|thread| thread.last_ticks).max();
    last.map_or(at.time.begin_ticks, |last| last.max(at.time.begin_ticks))
}

/// Builds the graph: one node per rank of the world, in order of their numbers, then nodes for
/// collective operations, for communicators (any member), and for threads of ranks with several.
fn nodes(
    run: &Run,
    ranks: &[UnfinishedRank],
    collectives: &[OpenCollective],
    communicators: &CommunicatorTable,
    running: bool,
) -> Vec<Node> {
    let world = run.world_size as usize;
    let mut nodes = vec![Node::Acts; world];
    for trace in run.ranks.iter().filter(|trace| trace.facts.finalized()) {
        nodes[trace.rank as usize] = Node::Never;
    }
    let collective = |number: usize| world + number;
    for open in collectives {
        // Unknown members may still arrive.
        nodes.push(match open.missing_unknown {
            0 => Node::All(open.missing.0.iter().map(|rank| *rank as usize).collect()),
            _ => Node::Acts,
        });
    }
    let waits = ranks.iter().flat_map(|rank| &rank.threads).filter_map(|t| t.waits_for.as_ref());
    let mut any_of: BTreeMap<u32, usize> = BTreeMap::new();
    for wait in waits {
        let WaitsFor::Needs { needs, .. } = wait else { continue };
        for need in needs {
            if let Awaited::AnyOf(communicator) = need.awaited
                && let Some(entry) = communicators.get(communicator)
            {
                any_of.entry(communicator).or_insert_with(|| {
                    // Unknown members may still send.
                    nodes.push(match members(entry, run.world_size) {
                        (members, 0) => {
                            Node::Any(members.iter().map(|rank| *rank as usize).collect())
                        }
                        _ => Node::Acts,
                    });
                    nodes.len() - 1
                });
            }
        }
    }
    for rank in ranks {
        let node = if running && rank.process == ProcessState::Gone {
            Node::Never
        } else if !rank.known || rank.is_outside() {
            Node::Acts
        } else {
            let waits = rank.threads.iter().filter_map(|thread| thread.waits_for.as_ref());
            let mut threads: Vec<Node> = waits
                .map(|wait| match wait {
                    WaitsFor::Needs { needs, any } => {
                        let known = needs.len();
                        let needs = needs.iter().filter_map(|need| match need.awaited {
                            Awaited::Rank(rank) => Some(rank as usize).filter(|rank| *rank < world),
                            Awaited::AnyOf(communicator) => any_of.get(&communicator).copied(),
                            Awaited::Missing(number) => Some(collective(number)),
                        });
                        let needs: Vec<usize> = needs.collect();
                        match any {
                            _ if needs.len() < known => Node::Acts,
                            true => Node::Any(needs),
                            false => Node::All(needs),
                        }
                    }
                    WaitsFor::Nobody => Node::All(Vec::new()),
                    WaitsFor::Unknown | WaitsFor::Aborts => Node::Acts,
                })
                .collect();
            match threads.len() {
                1 => threads.remove(0),
                _ => {
                    let first = nodes.len();
                    nodes.append(&mut threads);
                    Node::Any((first..nodes.len()).collect())
                }
            }
        };
        nodes[rank.rank as usize] = node;
    }
    nodes
}

fn deadlocks(cycles: &[Vec<usize>], ranks: &[UnfinishedRank], world_size: u32) -> Vec<Deadlock> {
    let of = |number: u32| {
        let index = ranks.binary_search_by_key(&number, |rank| rank.rank).ok()?;
        ranks.get(index)
    };
    let cycles = cycles.iter().map(|cycle| {
        let members = cycle.iter().filter_map(|node| u32::try_from(*node).ok());
        let ranks: Vec<u32> = members.filter(|rank| *rank < world_size).collect();
        let certain = ranks.iter().filter_map(|rank| of(*rank)).all(|rank| {
            let polls =
                |thread: &ThreadPosition| thread.inside().is_some_and(|c| c.polls.is_some());
            rank.threads.len() == 1 && !rank.threads.iter().any(polls)
        });
        Deadlock { ranks, certain }
    });
    cycles.collect()
}

fn causes(run: &Run, nodes: &[Node], ranks: &[UnfinishedRank]) -> Vec<Cause> {
    let world = run.world_size as usize;
    let ended = run.description.as_ref().map_or(&[][..], |run| &run.ended_ranks);
    let first = EndedRank::first(ended).map(|ended| ended.rank);
    let mut direct = vec![0u32; nodes.len()];
    for node in nodes {
        if let Node::All(needs) | Node::Any(needs) = node {
            needs.iter().for_each(|need| direct[*need] += 1);
        }
    }
    let ends = |node: &Node| match node {
        Node::Acts | Node::Never => true,
        Node::All(needs) | Node::Any(needs) => needs.is_empty(),
    };
    let mut found: Vec<usize> =
        (0..world).filter(|rank| direct[*rank] > 0 && ends(&nodes[*rank])).collect();
    found.sort_by_key(|rank| std::cmp::Reverse(direct[*rank]));
    found.truncate(MAX_CAUSES);
    let mut causes: Vec<Cause> = found
        .into_iter()
        .map(|node| {
            let rank = node as u32;
            let waiting = graph::waiting_for(nodes, node).into_iter();
            let waiting = waiting.filter(|node| *node < world).map(|node| node as u32);
            let kind = match run.position_of(rank).map(|index| &run.ranks[index]) {
                None => CauseKind::WithoutFile,
                Some(trace) if trace.facts.finalized() => CauseKind::Finalized,
                Some(_) => ranks
                    .binary_search_by_key(&rank, |unfinished| unfinished.rank)
                    .map_or(CauseKind::NotRecorded, |at| kind_of(&ranks[at], &nodes[node], first)),
            };
            Cause { rank, kind, waiting: Ranks(waiting.collect()) }
        })
        // A collective operation that was started but is not waited for delays no rank, even if
        // members are missing.
        .filter(|cause| !cause.waiting.0.is_empty())
        .collect();
    causes.sort_by_key(|cause| (std::cmp::Reverse(cause.waiting.0.len()), cause.rank));
    causes
}

/// The state of such a rank; `first` is the rank that died before all others.
fn kind_of(rank: &UnfinishedRank, node: &Node, first: Option<u32>) -> CauseKind {
    let aborts = |thread: &ThreadPosition| thread.waits_for == Some(WaitsFor::Aborts);
    if *node == Node::Never {
        CauseKind::Died
    } else if rank.threads.iter().any(aborts) {
        CauseKind::Aborts
    } else if first == Some(rank.rank) {
        CauseKind::Died
    } else if !rank.known {
        CauseKind::NotRecorded
    } else if rank.is_outside() {
        CauseKind::OutsideMpi
    } else {
        CauseKind::InsideCall
    }
}

#[cfg(test)]
mod tests;
