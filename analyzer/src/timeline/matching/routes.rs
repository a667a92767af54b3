//! Where a rank's messages go and come from: a communicator's local id, a peer and a tag come in; the
//! channel goes out. A program names few of them again and again, so what was found is kept in small
//! tables, each place for one.

use crate::timeline::communicators::{CommunicatorTable, Standing};

use super::channels::{Address, ChannelKey, UNKNOWN};

/// Places for communicators' ids; a power of two.
const IDS: usize = 4;
/// Places for channels; a power of two.
const ROUTES: usize = 32;

#[derive(Debug, Clone, Copy)]
struct Meaning {
    id: u16,
    standing: Option<Standing>,
    /// Counter from which on it may mean something else.
    until: u64,
}

/// What tells one channel of a rank from others: a place in it, an argument's peer and tag, and whether
/// it is sent to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Target {
    pub standing: Standing,
    pub peer: i32,
    pub tag: i32,
    pub sends: bool,
}

impl Target {
    #[inline]
    fn place(&self) -> usize {
        let mixed = (self.peer as u32).wrapping_mul(5)
            ^ (self.tag as u32).wrapping_mul(3)
            ^ self.standing.communicator.wrapping_mul(9);
        (mixed.wrapping_mul(2) | u32::from(self.sends)) as usize % ROUTES
    }
}

/// What one rank has named lately.
#[derive(Debug, Clone)]
pub(super) struct Routes {
    /// Position of the rank in the run.
    rank: usize,
    ids: [Option<Meaning>; IDS],
    /// Empty before the first.
    routes: Vec<Option<(Target, Address)>>,
}

impl Routes {
    pub fn new(rank: usize) -> Self {
        Self { rank, ids: [None; IDS], routes: Vec::new() }
    }

    /// What a local id means at a moment that is not before the last one asked for.
    #[inline]
    pub fn standing(&mut self, id: u16, ticks: u64, table: &CommunicatorTable) -> Option<Standing> {
        let place = &mut self.ids[usize::from(id) % IDS];
        match place {
            Some(meaning) if meaning.id == id && ticks < meaning.until => meaning.standing,
            _ => {
                let (standing, until) = table.resolve_until(self.rank, id, ticks);
                *place = Some(Meaning { id, standing, until });
                standing
            }
        }
    }

    /// The channel of a target, if it was kept.
    #[inline]
    pub fn get(&self, target: &Target) -> Option<Address> {
        match self.routes.get(target.place()) {
            Some(Some((kept, address))) if kept == target => Some(*address),
            _ => None,
        }
    }

    /// Keeps a channel.
    pub fn keep(&mut self, target: Target, key: ChannelKey) -> Address {
        if self.routes.is_empty() {
            self.routes = vec![None; ROUTES];
        }
        self.routes[target.place()] = Some((target, (key, UNKNOWN)));
        (key, UNKNOWN)
    }

    /// Keeps where the channel of a target stands.
    #[inline]
    pub fn stands(&mut self, target: &Target, at: u32) {
        if let Some(Some((kept, address))) = self.routes.get_mut(target.place())
            && kept == target
        {
            address.1 = at;
        }
    }
}
