//! Collects what matching leaves open: incomplete collective operations, and operations that are
//! still active.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::timeline::communicators::CommunicatorTable;
use crate::timeline::matching::{ActiveOperation, CollectiveInstance};
use crate::trace::Run;

use super::open_collective::{MAX_RANKS, OpenCollective, Ranks, members};

/// The operations of a run that matching left open.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(in crate::metrics) struct OpenOperations {
    pub(super) collectives: Vec<OpenCollective>,
    /// Index of the collective operation, by world rank and counter at the call's start.
    pub(super) calls: HashMap<(u32, u64), usize>,
    /// Active operations by world rank.
    pub(super) active: HashMap<u32, Vec<ActiveOperation>>,
}

impl OpenOperations {
    /// Adds a collective operation that gets no more members, if a rank is still inside it.
    pub fn collective(
        &mut self,
        instance: &CollectiveInstance,
        run: &Run,
        communicators: &CommunicatorTable,
    ) {
        let open = |member: &&crate::timeline::matching::CollectiveMember| {
            run.world_size <= MAX_RANKS
                && member.complete_s.is_none()
                && run.position_of(member.rank).is_some_and(|i| !run.ranks[i].facts.finalized())
        };
        let inside: Vec<_> = instance.members.iter().filter(open).collect();
        if inside.is_empty() {
            return;
        }
        let number = self.collectives.len();
        let mut present: Vec<u32> = instance.members.iter().map(|member| member.rank).collect();
        present.sort_unstable();
        present.dedup();
        let mut inside_ranks: Vec<u32> = inside.iter().map(|member| member.rank).collect();
        inside_ranks.sort_unstable();
        for member in inside {
            self.calls.insert((member.rank, member.begin_ticks), number);
        }
        let (mut missing, mut unknown) = (Vec::new(), 0u32);
        if let Some(entry) = communicators.get(instance.communicator) {
            (missing, unknown) = members(entry, run.world_size);
            missing.retain(|rank| present.binary_search(rank).is_err());
        }
        // Of the unknown members, no more are missing than the operation lacks.
        let unknown = unknown.min(instance.missing.saturating_sub(missing.len() as u32));
        self.collectives.push(OpenCollective {
            function: instance.function.clone(),
            communicator: communicators.label(instance.communicator),
            number: Some(instance.number),
            inside: Ranks(inside_ranks),
            missing: Ranks(missing),
            missing_unknown: unknown,
            mismatched: instance.mismatched,
        });
    }

    /// Adds the open operations of another share of the run.
    pub fn add(&mut self, other: Self) {
        let first = self.collectives.len();
        self.collectives.extend(other.collectives);
        self.calls.extend(other.calls.into_iter().map(|(call, number)| (call, first + number)));
        for (rank, operations) in other.active {
            self.active.entry(rank).or_default().extend(operations);
        }
    }

    /// Brings the collective operations into an order that does not depend on how the run was
    /// divided.
    pub fn sort(&mut self) {
        let key = |number: &usize| {
            let open: &OpenCollective = &self.collectives[*number];
            (&open.communicator, open.number, &open.function, &open.inside.0)
        };
        let mut order: Vec<usize> = (0..self.collectives.len()).collect();
        order.sort_by(|a, b| key(a).cmp(&key(b)));
        let mut position = vec![0; order.len()];
        (0..).zip(&order).for_each(|(to, from)| position[*from] = to);
        self.calls.values_mut().for_each(|number| *number = position[*number]);
        self.collectives = order.iter().map(|from| self.collectives[*from].clone()).collect();
    }

    /// Adds an operation that is still active.
    pub fn active(&mut self, operation: &ActiveOperation) {
        self.active.entry(operation.rank).or_default().push(*operation);
    }
}
