//! Finds which calls belong together: the messages and collective operations of the graph, and what
//! every call does to them.

use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};
use trace_format::meaning::{Meaning, Synchronises};

use crate::analysis::Analysis;
use crate::causes::semantics::CallSemantics;
use crate::causes::{IntegerTimeline, Lines};
use crate::timeline::communicators::Peer;
use crate::timeline::matching::{
    Call, CollectiveInstance, CollectiveMember, MatchFinding, MatchInterest, MatchSink,
    Message as Matched, Unmatched,
};

use super::algorithm::usual;
use super::graph::{Collective, Link, LinkKind, Member, Message, NO_OP};
use super::movement::{Movement, Needs};

/// A call that is linked to a message or collective operation. One integer, from the top: begin (64
/// bits), function (16), number (32), kind (8). There is one for each link of a run, and they are
/// sorted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LinkedCall(u128);

impl LinkedCall {
    const KINDS: [LinkKind; 9] = [
        LinkKind::Send,
        LinkKind::PostSend,
        LinkKind::CompleteSend,
        LinkKind::Receive,
        LinkKind::PostReceive,
        LinkKind::CompleteReceive,
        LinkKind::Collective,
        LinkKind::PostCollective,
        LinkKind::CompleteCollective,
    ];

    fn new(call: &Call, link: Link) -> Self {
        let call = u128::from(call.begin_ticks) << 64 | u128::from(call.function) << 48;
        Self(call | u128::from(link.of) << 16 | link.kind as u128)
    }

    pub fn begin_ticks(self) -> u64 {
        (self.0 >> 64) as u64
    }

    pub fn function(self) -> u16 {
        (self.0 >> 48) as u16
    }

    pub fn link(self) -> Link {
        Link { kind: Self::KINDS[usize::from(self.0 as u8)], of: (self.0 >> 16) as u32 }
    }

    /// Adds to the number.
    fn renumbered(self, messages: u32, members: u32) -> Self {
        let base = if self.link().kind.is_collective() { members } else { messages };
        Self(self.0 + (u128::from(base) << 16))
    }
}

/// The results of matching for one share of the run.
#[derive(Debug, Default)]
pub(super) struct Matches {
    /// By line; lines after the last one with any may be missing.
    pub keys: Vec<Vec<LinkedCall>>,
    pub messages: Vec<Message>,
    pub collectives: Vec<Collective>,
    pub members: Vec<Member>,
    /// Meetings, ascending by the operation's number: when the last member entered, in ticks of the
    /// axis.
    pub meetings: Vec<(u32, i64)>,
    /// Calls with a partner that was not found: rank and begin.
    pub unmatched: FxHashSet<(u32, u64)>,
    /// The lines of each communicator, by number of its group in `Graph::groups`.
    communicators: Vec<(u32, Vec<u32>)>,
}

/// Collects the results of matching.
pub struct MatchCollector<'f, 'a> {
    analysis: &'f Analysis<'a>,
    clock: &'f IntegerTimeline<'a>,
    lines: &'f Lines,
    semantics: &'f CallSemantics,
    /// The local number of each communicator.
    groups: FxHashMap<u32, u32>,
    found: Matches,
}

impl<'f, 'a> MatchCollector<'f, 'a> {
    pub(super) fn new(
        analysis: &'f Analysis<'a>,
        clock: &'f IntegerTimeline<'a>,
        (lines, semantics): (&'f Lines, &'f CallSemantics),
    ) -> Self {
        let (groups, found) = Default::default();
        Self { analysis, clock, lines, semantics, groups, found }
    }

    pub(super) fn into_found(self) -> Matches {
        self.found
    }

    fn line(&self, world_rank: u32, thread: u32) -> Option<u32> {
        let position = self.analysis.run.position_of(world_rank)?;
        self.lines.number_of(position, thread)
    }

    fn key(&mut self, line: u32, call: &Call, kind: LinkKind, of: u32) {
        let line = line as usize;
        if self.found.keys.len() <= line {
            self.found.keys.resize_with(line + 1, Vec::new);
        }
        self.found.keys[line].push(LinkedCall::new(call, Link { kind, of }));
    }

    fn group(&mut self, instance: &CollectiveInstance) -> u32 {
        let next = self.found.communicators.len() as u32;
        let number = *self.groups.entry(instance.communicator).or_insert(next);
        if number == next {
            let lines = instance.members.iter().filter_map(|m| self.line(m.rank, m.thread));
            let lines = lines.collect();
            self.found.communicators.push((instance.communicator, lines));
        }
        number
    }

    /// Sorts members by their rank in the communicator.
    fn sort(&self, instance: &CollectiveInstance, members: &mut [(u32, usize)]) {
        let Some(entry) = self.analysis.communicators().get(instance.communicator) else { return };
        let mut positions = FxHashMap::default();
        for group in &entry.groups {
            for position in 0..group.size() {
                if let Peer::World(rank) = group.peer(position as i32) {
                    let next = positions.len();
                    positions.entry(rank).or_insert(next);
                }
            }
        }
        members.sort_by_key(|(rank, _)| positions.get(rank).copied());
    }
}

fn movement(function: &str) -> Movement {
    match function {
        "MPI_Barrier" => Movement::Nothing,
        "MPI_Bcast" | "MPI_Reduce" | "MPI_Allreduce" | "MPI_Scan" | "MPI_Exscan" => Movement::Same,
        name if name.contains("lltoall") => Movement::Pairs,
        _ => Movement::Parts,
    }
}

impl MatchSink for MatchCollector<'_, '_> {
    fn wants(&self) -> MatchInterest {
        MatchInterest { completions: true, waiting: true, ..MatchInterest::default() }
    }

    fn take(&mut self, finding: &MatchFinding) {
        match finding {
            MatchFinding::Message(message) => self.message(message),
            MatchFinding::Collective(instance) => self.collective(instance),
            MatchFinding::ImplicitCollective(instance) => self.implicit_collective(instance),
            MatchFinding::Unmatched(unmatched) => self.unmatched(unmatched),
            _ => {}
        }
    }
}

impl MatchCollector<'_, '_> {
    fn message(&mut self, message: &Matched) {
        let (send, receive) = (&message.send, &message.receive);
        let ends = (self.line(send.rank, send.thread), self.line(receive.rank, receive.thread));
        let (Some(from), Some(to)) = ends else { return };
        let position = self.analysis.run.position_of(send.rank).unwrap_or(0);
        let sending = self.semantics.get(position, send.posted.function).send_mode;
        let of = self.found.messages.len() as u32;
        let bytes = message.bytes as f64;
        let lines = [from, to];
        self.found.messages.push(Message { send: NO_OP, receive: NO_OP, lines, sending, bytes });
        // The thread that completes may differ from the one that posts.
        let ends = [
            (send, from, [LinkKind::Send, LinkKind::PostSend, LinkKind::CompleteSend]),
            (receive, to, [LinkKind::Receive, LinkKind::PostReceive, LinkKind::CompleteReceive]),
        ];
        for (end, line, [whole, posts, completes]) in ends {
            match end.completed {
                Some(completed) if completed == end.posted => {
                    self.key(line, &end.posted, whole, of);
                }
                completed => {
                    self.key(line, &end.posted, posts, of);
                    if let Some(completed) = completed
                        && let Some(line) = self.line(end.rank, completed.thread)
                    {
                        self.key(line, &completed, completes, of);
                    }
                }
            }
        }
    }

    fn collective(&mut self, instance: &CollectiveInstance) {
        let needs = match Meaning::by_name(&instance.function).synchronises {
            Synchronises::All | Synchronises::Exchanging => Needs::All,
            Synchronises::FromRoot => Needs::Root,
            Synchronises::ToRoot => Needs::AtRoot,
            Synchronises::Prefix => Needs::Lower,
            _ => return,
        };
        let root = instance.members.iter().position(|m| Some(m.rank) == instance.root);
        let is_rooted = matches!(needs, Needs::Root | Needs::AtRoot);
        if instance.missing > 0 || instance.mismatched || is_rooted && root.is_none() {
            return;
        }
        self.add(instance, (needs, movement(&instance.function)), root);
    }

    fn implicit_collective(&mut self, instance: &CollectiveInstance) {
        let at = |member: &CollectiveMember, ticks: u64| {
            let position = self.analysis.run.position_of(member.rank)?;
            Some(self.clock.at(position, ticks))
        };
        let members = instance.members.iter();
        let last = members.clone().filter_map(|member| at(member, member.begin_ticks)).max();
        let Some(last) = last.filter(|_| instance.missing == 0) else { return };
        // Calls that need not wait may have returned before.
        let end = |member: &CollectiveMember| at(member, member.completed?.end_ticks()?);
        let mut ends = members.map(end);
        if ends.all(|end| end.is_some_and(|end| end >= last)) {
            self.found.meetings.push((self.found.collectives.len() as u32, last));
            self.add(instance, (Needs::All, Movement::Meeting), None);
        }
    }

    fn unmatched(&mut self, unmatched: &Unmatched) {
        self.found.unmatched.insert((unmatched.rank, unmatched.begin_ticks));
    }
}

impl MatchCollector<'_, '_> {
    /// Adds an operation; `root` is an index into the members.
    fn add(
        &mut self,
        instance: &CollectiveInstance,
        (needs, movement): (Needs, Movement),
        root: Option<usize>,
    ) {
        let mut order: Vec<(u32, usize)> =
            instance.members.iter().enumerate().map(|(at, member)| (member.rank, at)).collect();
        match needs {
            Needs::Lower => self.sort(instance, &mut order),
            // Matching passes them on in any order.
            _ => order.sort_unstable(),
        }
        let barrier = matches!(movement, Movement::Nothing | Movement::Meeting);
        let group = self.group(instance);
        let sends = |sent: u64, received: u64| (barrier || sent > 0, barrier || received > 0);
        let is_all = |m: &CollectiveMember| sends(m.sent_bytes, m.received_bytes) == (true, true);
        let everybody = needs == Needs::All
            && movement != Movement::Meeting
            && instance.members.iter().all(is_all);
        let needs = if everybody { Needs::Everybody } else { needs };
        let (collective, first) = (self.found.collectives.len(), self.found.members.len() as u32);
        let (mut bytes, mut root_member) = (0, 0);
        for (_, at) in order {
            let member = &instance.members[at];
            let number = self.found.members.len() as u32;
            bytes = bytes.max(member.sent_bytes).max(member.received_bytes);
            if Some(at) == root {
                root_member = number;
            }
            let line = self.line(member.rank, member.thread);
            let (sends, receives) = sends(member.sent_bytes, member.received_bytes);
            self.found.members.push(Member {
                collective: collective as u32,
                posted: NO_OP,
                sends,
                receives,
            });
            let Some(line) = line else { continue };
            match member.completed {
                Some(completed) if completed == member.posted => {
                    self.key(line, &completed, LinkKind::Collective, number);
                }
                completed => {
                    self.key(line, &member.posted, LinkKind::PostCollective, number);
                    if let Some(completed) = completed
                        && let Some(line) = self.line(member.rank, completed.thread)
                    {
                        self.key(line, &completed, LinkKind::CompleteCollective, number);
                    }
                }
            }
        }
        let members = first..self.found.members.len() as u32;
        let (bytes, root) = (bytes as f64, root_member);
        let algorithm = usual((needs, movement), bytes, members.len());
        self.found.collectives.push(Collective {
            needs,
            movement,
            algorithm,
            bytes,
            members,
            root,
            group,
        });
    }
}

impl Matches {
    /// Merges shares; also returns the lines of each communicator. The keys of each of the `lines`
    /// are ascending by begin, function and number.
    pub fn merge(mut of_shares: Vec<Self>, lines: usize) -> (Self, Vec<Vec<u32>>) {
        let keys = merge_keys(&mut of_shares, lines);
        let mut all = Self { keys, ..Self::default() };
        let mut groups: Vec<Vec<u32>> = Vec::new();
        let mut numbers: FxHashMap<u32, u32> = FxHashMap::default();
        for found in of_shares {
            let members = all.members.len() as u32;
            let collectives = all.collectives.len() as u32;
            let own: Vec<u32> = found
                .communicators
                .into_iter()
                .map(|(communicator, lines)| {
                    *numbers.entry(communicator).or_insert_with(|| {
                        groups.push(lines);
                        groups.len() as u32 - 1
                    })
                })
                .collect();
            let meetings = found.meetings.into_iter();
            all.meetings.extend(meetings.map(|(of, last)| (of + collectives, last)));
            all.unmatched.extend(found.unmatched);
            all.messages.extend(found.messages);
            all.members.extend(found.members.into_iter().map(|mut member| {
                member.collective += collectives;
                member
            }));
            all.collectives.extend(found.collectives.into_iter().map(|mut collective| {
                collective.group = own[collective.group as usize];
                collective.members =
                    collective.members.start + members..collective.members.end + members;
                collective.root += members;
                collective
            }));
        }
        (all, groups)
    }
}

/// The keys of all shares by line, sorted.
fn merge_keys(of_shares: &mut [Matches], lines: usize) -> Vec<Vec<LinkedCall>> {
    let mut merged: Vec<Vec<LinkedCall>> = Vec::new();
    merged.resize_with(lines, Vec::new);
    let (mut messages, mut members) = (0, 0);
    for found in of_shares {
        let of_lines = std::mem::take(&mut found.keys);
        merged.par_iter_mut().zip(of_lines).for_each(|(merged, keys)| {
            let keys = keys.into_iter().map(|key| key.renumbered(messages, members));
            match merged.is_empty() {
                true => *merged = keys.collect(),
                false => merged.extend(keys),
            }
        });
        messages += found.messages.len() as u32;
        members += found.members.len() as u32;
    }
    merged.par_iter_mut().for_each(|keys| keys.sort_unstable());
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integer_of_a_linked_call_keeps_its_parts() {
        let mut call = Call::default();
        (call.begin_ticks, call.function) = (u64::MAX - 1, u16::MAX);
        for kind in LinkedCall::KINDS {
            let key = LinkedCall::new(&call, Link { kind, of: u32::MAX - 7 });
            assert_eq!((key.begin_ticks(), key.function()), (u64::MAX - 1, u16::MAX));
            assert_eq!(key.link(), Link { kind, of: u32::MAX - 7 });
            let of = if kind.is_collective() { u32::MAX - 3 } else { u32::MAX - 5 };
            assert_eq!(key.renumbered(2, 4).link(), Link { kind, of });
        }
    }
}
