//! Finds what a call that has not returned waits for: ranks and collective operations.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use trace_format::meaning::{Class, Meaning, Synchronises};
use trace_format::reader::Event;

use crate::analysis::{Analysis, RankView};
use crate::timeline::calls::{Call, EventReader};
use crate::timeline::matching::{ActiveOperation, ActiveWork};
use crate::trace::{ProcessState, RankTrace, Run};

use super::open_collective::{OpenCollective, Ranks, members};
use super::open_operations::OpenOperations;
use super::position::{Partner, RankContext, RecentCalls};

/// What a rank waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Awaited {
    Rank(u32),
    /// Any member of the communicator at this index of the table.
    AnyOf(u32),
    /// The missing members of a collective operation, given by its index in
    /// [`super::Unfinished::collectives`].
    Missing(usize),
}

/// A condition for a call to return.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Need {
    /// What has to act.
    pub awaited: Awaited,
    /// Operation of the waiting rank: `send`, `receive`, `probe`, or `collective`.
    pub operation: &'static str,
    /// Tag of the message; `None` for MPI_ANY_TAG and collective operations.
    pub tag: Option<i32>,
    /// Name of the communicator.
    pub communicator: String,
    /// Whether both sides have begun, so that the other one only has to call MPI.
    pub begun: bool,
    /// Number of operations with this condition.
    pub count: u64,
}

/// What a call waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WaitsFor {
    /// These conditions.
    Needs {
        /// At least one.
        needs: Vec<Need>,
        /// Whether one of them is enough.
        any: bool,
    },
    /// Nothing: all its conditions are met.
    Nobody,
    /// What it waits for is not recorded.
    Unknown,
    /// Nothing: it is MPI_Abort, which ends the run.
    Aborts,
}

/// What a call waits for: all or one of its needs.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct WaitsForPart {
    /// `all` or `any` of the `needs`, `nobody` (all that it needs is there), `unknown` (not recorded) or `aborts`
    /// (MPI_Abort, which ends the run).
    kind: &'static str,
    /// Its conditions.
    needs: Vec<NeedPart>,
}

impl From<WaitsFor> for WaitsForPart {
    fn from(from: WaitsFor) -> Self {
        let (kind, needs) = match from {
            WaitsFor::Needs { needs, any: false } => ("all", needs),
            WaitsFor::Needs { needs, any: true } => ("any", needs),
            WaitsFor::Nobody => ("nobody", Vec::new()),
            WaitsFor::Unknown => ("unknown", Vec::new()),
            WaitsFor::Aborts => ("aborts", Vec::new()),
        };
        Self { kind, needs: needs.into_iter().map(NeedPart::from).collect() }
    }
}

/// A condition for a call to return. One of `rank`, `any_of` and `collective` is not null.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct NeedPart {
    /// Operation of the waiting rank: `send`, `receive`, `probe` or `collective`.
    operation: &'static str,
    /// The rank that has to act.
    rank: Option<u32>,
    /// The communicator of which any member has to act.
    any_of: Option<String>,
    /// Position in `unfinished.collectives` of the operation whose missing members have to act.
    collective: Option<usize>,
    /// Tag of the message; null for MPI_ANY_TAG and collective operations.
    tag: Option<i32>,
    /// Name of the communicator.
    communicator: String,
    /// Whether both sides have begun, so that the other one need only call MPI.
    begun: bool,
    /// Number of operations with this condition.
    count: u64,
}

impl From<Need> for NeedPart {
    fn from(from: Need) -> Self {
        let Need { awaited, operation, tag, communicator, begun, count } = from;
        let (rank, any_of, collective) = match awaited {
            Awaited::Rank(rank) => (Some(rank), None, None),
            Awaited::AnyOf(_) => (None, Some(communicator.clone()), None),
            Awaited::Missing(number) => (None, None, Some(number)),
        };
        Self { operation, rank, any_of, collective, tag, communicator, begun, count }
    }
}

/// Function and communicator of a synchronising call.
type Synchronising = (&'static str, u32);

/// Finds what calls wait for.
#[derive(Debug)]
pub(super) struct Needs<'a> {
    run: &'a Run,
    open_operations: OpenOperations,
    /// Ranks with a thread inside a call, so that their library makes progress. While the run goes on, without those
    /// whose process is gone.
    inside: BTreeSet<u32>,
    /// Index among the collectives of synchronising calls, by call and its number on the rank.
    synchronising: BTreeMap<(Synchronising, u64), usize>,
    /// Number of synchronising calls that each world rank made.
    made: BTreeMap<(Synchronising, u32), u64>,
    finalize: Option<usize>,
}

impl<'a> Needs<'a> {
    pub fn new(
        analysis: &Analysis<'a>,
        open_operations: OpenOperations,
        tails: &[(RankContext, Vec<RecentCalls>)],
        running: bool,
    ) -> Self {
        let mut needs = Self {
            run: analysis.run,
            open_operations,
            inside: BTreeSet::new(),
            synchronising: BTreeMap::new(),
            made: BTreeMap::new(),
            finalize: None,
        };
        let mut open: BTreeSet<Synchronising> = BTreeSet::new();
        for (at, tails) in tails {
            let inside = tails.iter().filter_map(RecentCalls::inside);
            for event in inside {
                if !running || at.reading.trace.process != ProcessState::Gone {
                    needs.inside.insert(at.reading.trace.rank);
                }
                open.extend(at.call(event).as_ref().and_then(synchronising));
            }
        }
        if !open.is_empty() {
            needs.count_synchronising(analysis, &open);
        }
        needs
    }

    /// The collective operations that some rank is inside.
    pub fn collectives(self) -> Vec<OpenCollective> {
        self.open_operations.collectives
    }

    /// What a call that has not returned waits for.
    pub fn waits_for(&mut self, at: &RankContext, event: &Event) -> WaitsFor {
        let rank = at.reading.trace.rank;
        let Some(call) = at.call(event) else { return WaitsFor::Unknown };
        match call.meaning.name.as_str() {
            "MPI_Abort" => return WaitsFor::Aborts,
            "MPI_Finalize" => return self.finalize(),
            _ if at.reading.constants.is_none() => return WaitsFor::Unknown,
            _ => {}
        }
        match call.meaning.class {
            Class::Collective => match self.open_operations.calls.get(&(rank, event.begin)) {
                Some(number) => self.missing(*number),
                None => WaitsFor::Unknown,
            },
            Class::Probe => self.probe(at, &call),
            Class::PointToPoint => {
                let begun = |o: &&ActiveOperation| {
                    o.request.is_none() && o.begin_ticks == Some(event.begin)
                };
                self.operations(at, self.active(rank).filter(begun).copied().collect(), false)
            }
            Class::Completion => self.completion(at, &call),
            _ => match synchronising(&call) {
                Some(call) => self.synchronising(at, call),
                None => WaitsFor::Unknown,
            },
        }
    }

    fn active(&self, rank: u32) -> impl Iterator<Item = &ActiveOperation> {
        self.open_operations.active.get(&rank).into_iter().flatten()
    }

    fn completion(&self, at: &RankContext, call: &Call) -> WaitsFor {
        let rank = at.reading.trace.rank;
        let mut handles: Vec<u32> = call.requests().map(|state| state.request).collect();
        handles.extend(call.request());
        handles.retain(|handle| *handle != 0);
        let any = call.meaning.completes_any;
        if handles.is_empty() {
            // The requests are recorded only after the call, so any active one may be among them.
            return match any {
                true => self.operations(at, self.active(rank).copied().collect(), true),
                false => WaitsFor::Unknown,
            };
        }
        handles.sort_unstable();
        handles.dedup();
        let mut operations = Vec::new();
        for handle in handles {
            let of_handle = || self.active(rank).filter(|o| o.request == Some(handle));
            // A handle may have been used for several operations; the first active one counts.
            let first = of_handle().next().map(|first| first.begin_ticks);
            operations.extend(of_handle().filter(|o| Some(o.begin_ticks) == first).copied());
        }
        match operations.is_empty() {
            true => WaitsFor::Unknown,
            false => self.operations(at, operations, any),
        }
    }

    fn operations(
        &self,
        at: &RankContext,
        operations: Vec<ActiveOperation>,
        any: bool,
    ) -> WaitsFor {
        if operations.is_empty() {
            return WaitsFor::Unknown;
        }
        let mut needs: BTreeMap<Need, u64> = BTreeMap::new();
        let mut unknown = false;
        for operation in operations {
            match self.operation(at, &operation) {
                Ok(Some(need)) => *needs.entry(need).or_default() += 1,
                Ok(None) if any => return WaitsFor::Nobody,
                Ok(None) => {}
                Err(()) => unknown = true,
            }
        }
        if needs.is_empty() {
            return if unknown { WaitsFor::Unknown } else { WaitsFor::Nobody };
        }
        if any && unknown {
            return WaitsFor::Unknown;
        }
        let needs = needs.into_iter().map(|(need, count)| Need { count, ..need }).collect();
        WaitsFor::Needs { needs, any }
    }

    /// What an operation needs, if anything; an error if that is unknown.
    fn operation(&self, at: &RankContext, o: &ActiveOperation) -> Result<Option<Need>, ()> {
        let label = |communicator| at.reading.communicators.label(communicator);
        let need = |awaited, operation, tag, communicator, begun| {
            let communicator = label(communicator);
            Some(Need { awaited, operation, tag, communicator, begun, count: 1 })
        };
        match o.work {
            ActiveWork::Send { to, tag, communicator, met } => {
                // A receive that has completed needs no more of its sender. Otherwise the receiver
                // still has to call MPI.
                let rank = at.reading.trace.rank;
                let receives = self.active(to).any(|other| {
                    matches!(other.work, ActiveWork::Receive { from, communicator: on, met: true, .. }
                        if from.is_none_or(|from| from == rank) && on == communicator)
                });
                let progresses = met && (!receives || self.inside.contains(&to));
                let awaited = Awaited::Rank(to);
                Ok(need(awaited, "send", Some(tag), communicator, met).filter(|_| !progresses))
            }
            ActiveWork::Receive { from: Some(from), tag, communicator, met } => {
                // A send that has completed at its sender is on its way. Otherwise the sender still
                // has to call MPI.
                let rank = at.reading.trace.rank;
                let sends = self.active(from).any(|other| {
                    matches!(other.work, ActiveWork::Send { to, communicator: on, met: true, .. }
                        if to == rank && on == communicator)
                });
                let progresses = met && (!sends || self.inside.contains(&from));
                let awaited = Awaited::Rank(from);
                Ok(need(awaited, "receive", tag, communicator, met).filter(|_| !progresses))
            }
            ActiveWork::Receive { from: None, tag, communicator, met } => {
                let awaited = Awaited::AnyOf(communicator);
                Ok(need(awaited, "receive", tag, communicator, false).filter(|_| !met))
            }
            ActiveWork::Collective { .. } => {
                let key = o.begin_ticks.map(|begin| (o.rank, begin));
                let number = key.and_then(|key| self.open_operations.calls.get(&key)).ok_or(())?;
                Ok(self.missing_need(*number))
            }
            ActiveWork::Other => Err(()),
        }
    }

    fn missing_need(&self, number: usize) -> Option<Need> {
        let open = self.open_operations.collectives.get(number)?;
        let complete = open.missing.0.is_empty() && open.missing_unknown == 0;
        (!complete).then(|| Need {
            awaited: Awaited::Missing(number),
            operation: "collective",
            tag: None,
            communicator: open.communicator.clone(),
            begun: false,
            count: 1,
        })
    }

    fn missing(&self, number: usize) -> WaitsFor {
        match self.missing_need(number) {
            Some(need) => WaitsFor::Needs { needs: vec![need], any: false },
            None => WaitsFor::Nobody,
        }
    }

    fn probe(&self, at: &RankContext, call: &Call) -> WaitsFor {
        let (Some(peer), Some(tag), Some(on)) = (call.peer(), call.tag(), call.communicator())
        else {
            return WaitsFor::Unknown;
        };
        let awaited = match at.partner(call, peer) {
            Partner::Rank(rank) => Awaited::Rank(rank),
            Partner::Any => Awaited::AnyOf(on.communicator),
            Partner::Nobody => return WaitsFor::Nobody,
            Partner::Unknown => return WaitsFor::Unknown,
        };
        let need = Need {
            awaited,
            operation: "probe",
            tag: tag.known(),
            communicator: at.reading.communicators.label(on.communicator),
            begun: false,
            count: 1,
        };
        WaitsFor::Needs { needs: vec![need], any: false }
    }

    /// In all known libraries, no rank returns from MPI_Finalize before all have entered it.
    fn finalize(&mut self) -> WaitsFor {
        let number = match self.finalize {
            Some(number) => number,
            None => {
                let entered = |rank: u32| {
                    let trace = self.run.position_of(rank).map(|index| &self.run.ranks[index]);
                    trace.is_some_and(|trace| {
                        trace.facts.end_ticks.is_some()
                            || trace.threads.iter().any(|thread| thread.calls_finalize)
                    })
                };
                let (inside, missing) = (0..self.run.world_size).partition(|rank| entered(*rank));
                let number = self.push("MPI_Finalize", "MPI_COMM_WORLD".into(), inside, missing);
                *self.finalize.insert(number)
            }
        };
        self.missing(number)
    }

    fn push(
        &mut self,
        function: &str,
        communicator: String,
        inside: Vec<u32>,
        missing: Vec<u32>,
    ) -> usize {
        self.open_operations.collectives.push(OpenCollective {
            function: function.to_owned(),
            communicator,
            number: None,
            inside: Ranks(inside),
            missing: Ranks(missing),
            missing_unknown: 0,
            mismatched: false,
        });
        self.open_operations.collectives.len() - 1
    }

    /// Counts the calls of all ranks to the synchronising functions that some rank is inside.
    fn count_synchronising(&mut self, analysis: &Analysis<'a>, open: &BTreeSet<Synchronising>) {
        let communicators = analysis.communicators();
        let begin = |rank: RankView<'a>| {
            let reading = EventReader::new(rank.position, rank.trace, communicators);
            Some((rank.trace.rank, reading, BTreeMap::<Synchronising, u64>::new()))
        };
        let counted = analysis.events(begin, |(_, reading, made), _, event| {
            let call = reading.call(event);
            let call = call.as_ref().and_then(synchronising);
            if let Some(call) = call.filter(|call| open.contains(call)) {
                *made.entry(call).or_default() += 1;
            }
        });
        // Between processes, a call is named by its position in `open`, which all have.
        let numbered = |(rank, _, made): (u32, _, BTreeMap<Synchronising, u64>)| {
            let counts = open.iter().map(|call| made.get(call).copied().unwrap_or(0));
            (rank, counts.collect::<Vec<u64>>())
        };
        let counted = analysis.processes.join(counted.into_iter().map(numbered).collect());
        for (rank, counts) in counted {
            let made = open.iter().zip(counts).filter(|(_, count)| *count > 0);
            self.made.extend(made.map(|(call, count)| ((*call, rank), count)));
        }
    }

    fn synchronising(&mut self, at: &RankContext, call: Synchronising) -> WaitsFor {
        let made = self.made.get(&(call, at.reading.trace.rank)).copied().unwrap_or(0);
        let Some(entry) = at.reading.communicators.get(call.1) else { return WaitsFor::Unknown };
        let has_totals = |trace: &RankTrace| trace.file.threads.iter().any(|t| t.totals.is_some());
        if self.run.ranks.iter().any(has_totals) {
            // Calls kept only as totals cannot be counted by communicator.
            return WaitsFor::Unknown;
        }
        if let Some(number) = self.synchronising.get(&(call, made)) {
            return self.missing(*number);
        }
        let (mut inside, mut missing) = (Vec::new(), Vec::new());
        let (all, unknown) = members(entry, self.run.world_size);
        if unknown > 0 {
            return WaitsFor::Unknown;
        }
        for rank in all {
            match self.made.get(&(call, rank)).copied().unwrap_or(0) {
                fewer if fewer < made => missing.push(rank),
                _ => inside.push(rank),
            }
        }
        let number = self.push(call.0, at.reading.communicators.label(call.1), inside, missing);
        self.synchronising.insert((call, made), number);
        self.missing(number)
    }
}

/// Function and communicator of a call that is not a collective operation but waits for all members
/// of its communicator.
fn synchronising(call: &Call) -> Option<Synchronising> {
    let Meaning { name, class, synchronises, .. } = call.meaning;
    let waits = *synchronises == Synchronises::All && *class != Class::Collective;
    if !waits || call.event.polls.is_some() {
        return None;
    }
    Some((name.as_str(), call.communicator()?.communicator))
}
