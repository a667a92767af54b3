//! Caches the channels that a rank's arguments name, by communicator id, peer and tag. Programs use
//! few of them again and again, so small direct-mapped tables suffice.

use crate::timeline::communicators::{CommunicatorTable, Membership};

use super::channel_key::{Address, ChannelKey, UNKNOWN_INDEX};

/// Slots for communicators' ids; a power of two.
const IDS: usize = 4;
/// Slots for channels; a power of two.
const ROUTES: usize = 32;

#[derive(Debug, Clone, Copy)]
struct Meaning {
    id: u16,
    membership: Option<Membership>,
    /// Counter from which on the id may mean something else.
    until: u64,
}

/// Identifies a channel of a rank: communicator, peer and tag arguments, and direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Target {
    pub membership: Membership,
    pub peer: i32,
    pub tag: i32,
    pub sends: bool,
}

impl Target {
    #[inline]
    fn slot(&self) -> usize {
        let mixed = (self.peer as u32).wrapping_mul(5)
            ^ (self.tag as u32).wrapping_mul(3)
            ^ self.membership.communicator.wrapping_mul(9);
        (mixed.wrapping_mul(2) | u32::from(self.sends)) as usize % ROUTES
    }
}

/// A target and its channel.
#[derive(Debug, Clone, Copy)]
struct Route {
    /// `None` if the route is not to be found again.
    target: Option<Target>,
    address: Address,
}

/// The routes that one rank used recently.
#[derive(Debug, Clone)]
pub(super) struct Routes {
    /// Position of the rank in the run.
    rank: usize,
    ids: [Option<Meaning>; IDS],
    /// Empty before the first use; the last slot is for routes that are not kept.
    routes: Vec<Route>,
}

impl Routes {
    pub fn new(rank: usize) -> Self {
        Self { rank, ids: [None; IDS], routes: Vec::new() }
    }

    /// What a local id means at a moment; moments must not decrease.
    #[inline]
    pub fn membership(
        &mut self,
        id: u16,
        ticks: u64,
        table: &CommunicatorTable,
    ) -> Option<Membership> {
        let slot = &mut self.ids[usize::from(id) % IDS];
        match slot {
            Some(meaning) if meaning.id == id && ticks < meaning.until => meaning.membership,
            _ => {
                let (membership, until) = table.resolve_until(self.rank, id, ticks);
                *slot = Some(Meaning { id, membership, until });
                membership
            }
        }
    }

    /// The slot of a target's channel, if it is cached.
    #[inline]
    pub fn find(&self, target: &Target) -> Option<usize> {
        let slot = target.slot();
        let is_cached = self.routes.get(slot).is_some_and(|route| route.target == Some(*target));
        is_cached.then_some(slot)
    }

    /// Stores a channel for a target, or without one until the next such call; returns its slot.
    pub fn keep(&mut self, target: Option<Target>, key: ChannelKey) -> usize {
        let route = Route { target, address: (key, UNKNOWN_INDEX) };
        if self.routes.is_empty() {
            self.routes = vec![Route { target: None, ..route }; ROUTES + 1];
        }
        let slot = target.map_or(ROUTES, |target| target.slot());
        self.routes[slot] = route;
        slot
    }

    /// The address of the channel at a slot, to be updated.
    #[inline]
    pub fn address(&mut self, slot: usize) -> &mut Address {
        &mut self.routes[slot].address
    }
}
