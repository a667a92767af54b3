//! The conditions of collective operations: which members wait for which.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use trace_format::meaning::{Meaning, Synchronises};

use crate::timeline::communicators::Peer;
use crate::timeline::matching::{CollectiveInstance, CollectiveMember};

use super::conditions::ConditionCollector;
use super::matched_conditions::{CollectiveSync, Condition};
use super::side::Side;
use super::states::State;

/// Non-blocking operations with more members are not examined for late progress, because each member
/// would be compared with each.
const MAX_MEMBERS_FOR_PROGRESS: usize = 64;

/// A member of a collective operation.
#[derive(Debug, Clone, Copy)]
struct Member {
    rank: u32,
    /// Its position in the communicator.
    position: u32,
    group: usize,
    posted: Side,
    completed: Side,
    sent: u64,
    received: u64,
}

/// How all members of an operation wait for each other.
#[derive(Debug, Clone, Copy)]
struct WaitForLast {
    state: State,
    /// Only members that move data take part.
    moves_data: bool,
    /// Members wait only for members of the other group.
    inter: bool,
    /// No member returns before all have entered.
    is_certain: bool,
}

/// Whether a member of an all-to-all operation may exchange data with some members only.
fn has_counts_by_partner(function: &str) -> bool {
    let name = function.trim_end_matches("_init").trim_end_matches("_c").to_ascii_lowercase();
    name.ends_with("alltoallv") || name.ends_with("alltoallw")
}

impl ConditionCollector<'_, '_> {
    /// Adds the conditions of a collective operation.
    pub(super) fn collective_conditions(&mut self, instance: &CollectiveInstance) {
        if instance.missing > 0 || instance.mismatched {
            self.found.incomplete += 1;
            return;
        }
        let Some(members) = self.members(instance) else {
            self.found.incomplete += 1;
            return;
        };
        self.note_sync(instance, &members);
        self.unexplained_members(&instance.function, &members);
        let inter = self.is_inter(instance);
        let root =
            |members: &[Member]| members.iter().find(|m| Some(m.rank) == instance.root).copied();
        match Meaning::by_name(&instance.function).synchronises {
            Synchronises::All | Synchronises::Exchanging => {
                let is_barrier = instance.function == "MPI_Barrier";
                let state = if is_barrier { State::WaitAtBarrier } else { State::WaitAtNxn };
                // Who exchanges data with whom is not recorded: the last may be no partner.
                let is_certain = !has_counts_by_partner(&instance.function);
                let how = WaitForLast { state, moves_data: !is_barrier, inter, is_certain };
                self.wait_for_last(&members, how)
            }
            Synchronises::FromRoot => {
                let Some(root) = root(&members).filter(|root| root.sent > 0) else { return };
                for member in members.iter().filter(|m| m.rank != root.rank && m.received > 0) {
                    let found =
                        self.condition(&member.completed, &root.posted, State::LateBroadcast);
                    self.add(found);
                }
            }
            Synchronises::ToRoot => {
                let Some(root) = root(&members) else { return };
                let senders = members.iter().filter(|m| m.rank != root.rank && m.sent > 0);
                let last =
                    senders.max_by_key(|m| (m.posted.entered, std::cmp::Reverse(m.posted.line)));
                if let Some(last) = last {
                    let found = self.condition(&root.completed, &last.posted, State::EarlyReduce);
                    self.add(found);
                }
            }
            Synchronises::Prefix => {
                // All members give the same count, but the first receives nothing in MPI_Exscan, and
                // the last has nobody to send to.
                let mut ordered = members;
                ordered.retain(|member| member.sent > 0 || member.received > 0);
                ordered.sort_by_key(|member| member.position);
                let mut last: Option<Member> = None;
                for member in ordered {
                    if let Some(last) = last {
                        let found =
                            self.condition(&member.completed, &last.posted, State::EarlyScan);
                        self.add(found);
                    }
                    if last.is_none_or(|last| member.posted.entered > last.posted.entered) {
                        last = Some(member);
                    }
                }
            }
            Synchronises::Neighbours => self.wait_for_neighbours(instance.communicator, &members),
            Synchronises::Nobody | Synchronises::Group | Synchronises::Target => {}
        }
    }

    /// Adds the conditions of an operation that all members did together.
    pub(super) fn implicit_collective_conditions(&mut self, instance: &CollectiveInstance) {
        let members = self.members(instance).filter(|_| instance.missing == 0);
        let Some(members) = members else {
            self.found.incomplete += 1;
            return;
        };
        self.note_sync(instance, &members);
        let is_fence = instance.function == "MPI_Win_fence";
        let state = if is_fence { State::OneSided } else { State::WaitAtNxn };
        let inter = self.is_inter(instance);
        self.wait_for_last(
            &members,
            WaitForLast { state, moves_data: false, inter, is_certain: false },
        );
    }

    /// A rank's position in a communicator; positions in an intercommunicator's second group follow
    /// those in the first.
    fn position(&mut self, communicator: u32, world_rank: u32) -> Option<u32> {
        let communicators = self.analysis.communicators();
        let positions = self.positions.entry(communicator).or_insert_with(|| {
            let entry = communicators.get(communicator);
            let groups = entry.iter().flat_map(|entry| &entry.groups);
            let mut positions = FxHashMap::default();
            for group in groups {
                for position in 0..group.size() {
                    if let Peer::World(rank) = group.peer(position as i32) {
                        let next = positions.len() as u32;
                        positions.entry(rank).or_insert(next);
                    }
                }
            }
            positions
        });
        positions.get(&world_rank).copied()
    }

    /// Every member waits for the last one that takes part.
    fn wait_for_last(&mut self, members: &[Member], how: WaitForLast) {
        // A rank that sends nothing cannot be late; one that receives nothing does not wait.
        let WaitForLast { state, moves_data, inter, .. } = how;
        let mut order: Vec<usize> =
            (0..members.len()).filter(|at| !moves_data || members[*at].sent > 0).collect();
        order.sort_by_key(|at| {
            (std::cmp::Reverse(members[*at].posted.entered), members[*at].posted.line)
        });
        for (at, member) in members.iter().enumerate() {
            if moves_data && member.received == 0 {
                continue;
            }
            let counts = |other: &&usize| {
                **other != at && (!inter || members[**other].group != member.group)
            };
            if let Some(last) = order.iter().find(counts) {
                let found = self.condition(&member.completed, &members[*last].posted, state);
                // A call that does not have to wait may have returned before.
                let waited = |found: &Condition| how.is_certain || found.fulfilled <= found.left;
                self.add(found.filter(waited));
            }
        }
    }

    /// Records the members that completed a non-blocking operation long after all had begun it. Any
    /// other member may not have moved its part.
    fn unexplained_members(&mut self, function: &str, members: &[Member]) {
        if members.len() > MAX_MEMBERS_FOR_PROGRESS {
            return;
        }
        let state = match Meaning::by_name(function).synchronises {
            Synchronises::FromRoot => State::LateBroadcast,
            Synchronises::ToRoot => State::EarlyReduce,
            Synchronises::Prefix => State::EarlyScan,
            _ if function == "MPI_Barrier" => State::WaitAtBarrier,
            _ => State::WaitAtNxn,
        };
        let Some(begun) = members.iter().map(|member| member.posted.entered).max() else { return };
        for waiter in members.iter().filter(|member| member.posted.call != member.completed.call) {
            let Some(left) = waiter.completed.left else { continue };
            let since = waiter.completed.entered.max(begun);
            for other in members.iter().filter(|other| other.rank != waiter.rank) {
                let sides = (&waiter.completed, &other.posted);
                self.unexplained_since(sides.0, sides.1, (since, left), state);
            }
        }
    }

    /// Every member waits for the last neighbour that it receives from.
    fn wait_for_neighbours(&mut self, communicator: u32, members: &[Member]) {
        let neighbours = self.neighbours;
        let sources = |member: &Member| neighbours.sources(communicator, member.completed.rank);
        if members.iter().any(|member| sources(member).is_none()) {
            self.found.neighbourhoods += 1;
            return;
        }
        let by_rank: FxHashMap<u32, &Member> = members.iter().map(|m| (m.rank, m)).collect();
        for member in members.iter().filter(|member| member.received > 0) {
            let others = sources(member).into_iter().flatten().filter(|rank| **rank != member.rank);
            let senders = others.filter_map(|rank| by_rank.get(rank)).filter(|m| m.sent > 0);
            let last = senders.max_by_key(|m| (m.posted.entered, std::cmp::Reverse(m.posted.line)));
            let found = last
                .and_then(|last| self.condition(&member.completed, &last.posted, State::WaitAtNxn));
            // Counts by neighbour are not recorded: the last one may have had nothing to send.
            self.add(found.filter(|found| found.fulfilled <= found.left));
        }
    }

    fn members(&mut self, instance: &CollectiveInstance) -> Option<Vec<Member>> {
        let communicators = self.analysis.communicators();
        let entry = communicators.get(instance.communicator)?;
        let (inter, first_group) = (entry.inter, entry.groups[0].size());
        let synchronises = Meaning::by_name(&instance.function).synchronises;
        let by_position = inter || synchronises == Synchronises::Prefix;
        let mut members = Vec::with_capacity(instance.members.len());
        for of_instance in &instance.members {
            let CollectiveMember { rank, posted, completed, sent_bytes, received_bytes, .. } =
                *of_instance;
            let position = match by_position {
                true => self.position(instance.communicator, rank).unwrap_or(0),
                false => 0,
            };
            members.push(Member {
                rank,
                position,
                group: usize::from(inter && position >= first_group),
                posted: self.side(rank, posted)?,
                completed: self.side(rank, completed?)?,
                sent: sent_bytes,
                received: received_bytes,
            });
        }
        Some(members)
    }

    fn is_inter(&self, instance: &CollectiveInstance) -> bool {
        self.analysis.communicators().get(instance.communicator).is_some_and(|of| of.inter)
    }

    /// Records that the members synchronised, if all were inside at the same time.
    fn note_sync(&mut self, instance: &CollectiveInstance, members: &[Member]) {
        let entered = members.iter().map(|m| m.posted.entered).max();
        let left = members.iter().filter_map(|m| m.completed.left).min();
        let together = entered.zip(left).filter(|(entered, left)| entered < left);
        if let Some((moment, _)) = together.filter(|_| members.len() > 1) {
            let mut lines: Vec<u32> = members.iter().map(|m| m.completed.line).collect();
            lines.sort_unstable();
            let communicator = instance.communicator;
            let known = self.sync_lines.get(&communicator).filter(|known| ***known == lines[..]);
            let lines = known.cloned().unwrap_or_else(|| Arc::from(lines));
            self.sync_lines.insert(communicator, lines.clone());
            self.found.collective_syncs.push(CollectiveSync { moment, lines });
        }
    }
}
