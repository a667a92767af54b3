//! Finds which calls belong together: the messages and collective operations of the graph, and what
//! every call does to them.

use rustc_hash::FxHashMap;
use trace_format::meaning::{Meaning, Synchronises};

use crate::analysis::Analysis;
use crate::causes::semantics::CallSemantics;
use crate::causes::{Lines, WholeTicks};
use crate::timeline::communicators::Peer;
use crate::timeline::matching::{
    Call, CollectiveInstance, CollectiveMember, MatchSink, Message as Matched, Unmatched, Wants,
};

use super::algorithm::usual;
use super::graph::{Collective, Link, LinkKind, Member, Message, Movement, NO_OP, Needs};

/// A call that is linked to a message or collective operation.
#[derive(Debug, Clone, Copy)]
pub(super) struct LinkedCall {
    pub line: u32,
    pub begin_ticks: u64,
    pub function: u16,
    pub link: Link,
}

/// The results of matching for one share of the run.
#[derive(Debug, Default)]
pub(super) struct Matches {
    pub keys: Vec<LinkedCall>,
    pub messages: Vec<Message>,
    pub collectives: Vec<Collective>,
    pub members: Vec<Member>,
    /// Meetings, ascending by the operation's number: when the last member entered, in ticks of the
    /// axis.
    pub meetings: Vec<(u32, i64)>,
    /// The lines of each communicator, by number of its group in `Graph::groups`.
    communicators: Vec<(u32, Vec<u32>)>,
}

/// Collects the results of matching.
pub(super) struct Finder<'f, 'a> {
    analysis: &'f Analysis<'a>,
    clock: &'f WholeTicks<'a>,
    lines: &'f Lines,
    semantics: &'f CallSemantics,
    /// The local number of each communicator.
    groups: FxHashMap<u32, u32>,
    found: Matches,
}

impl<'f, 'a> Finder<'f, 'a> {
    pub fn new(
        analysis: &'f Analysis<'a>,
        clock: &'f WholeTicks<'a>,
        (lines, semantics): (&'f Lines, &'f CallSemantics),
    ) -> Self {
        let (groups, found) = Default::default();
        Self { analysis, clock, lines, semantics, groups, found }
    }

    pub fn into_found(self) -> Matches {
        self.found
    }

    fn line(&self, world_rank: u32, thread: u32) -> Option<u32> {
        let position = self.analysis.run.position_of(world_rank)?;
        self.lines.of(position, thread)
    }

    fn key(&mut self, line: u32, call: &Call, kind: LinkKind, of: u32) {
        let (begin_ticks, function) = (call.begin_ticks, call.function);
        self.found.keys.push(LinkedCall { line, begin_ticks, function, link: Link { kind, of } });
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

impl MatchSink for Finder<'_, '_> {
    fn wants(&self) -> Wants {
        Wants { completions: true, waiting: true, ..Wants::default() }
    }

    fn message(&mut self, message: &Matched) {
        let (send, receive) = (&message.send, &message.receive);
        let ends = (self.line(send.rank, send.thread), self.line(receive.rank, receive.thread));
        let (Some(from), Some(to)) = ends else { return };
        let position = self.analysis.run.position_of(send.rank).unwrap_or(0);
        let sending = self.semantics.of(position, send.posted.function).send_mode;
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
        let needs = match Meaning::of(&instance.function).synchronises {
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

    fn together(&mut self, instance: &CollectiveInstance) {
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

    fn unmatched(&mut self, _unmatched: &Unmatched) {}
}

impl Finder<'_, '_> {
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
    /// Merges shares; also returns the lines of each communicator.
    pub fn merge(of_shares: Vec<Self>) -> (Self, Vec<Vec<u32>>) {
        let mut all = Self::default();
        let mut groups: Vec<Vec<u32>> = Vec::new();
        let mut numbers: FxHashMap<u32, u32> = FxHashMap::default();
        for found in of_shares {
            let (messages, members) = (all.messages.len() as u32, all.members.len() as u32);
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
            all.keys.extend(found.keys.into_iter().map(|mut key| {
                let base = if key.link.kind.is_collective() { members } else { messages };
                key.link.of += base;
                key
            }));
            let meetings = found.meetings.into_iter();
            all.meetings.extend(meetings.map(|(of, last)| (of + collectives, last)));
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
