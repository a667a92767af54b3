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

/// A target and its channel.
#[derive(Debug, Clone, Copy)]
struct Route {
    /// `None` where no target leads here again.
    target: Option<Target>,
    address: Address,
}

/// What one rank has named lately.
#[derive(Debug, Clone)]
pub(super) struct Routes {
    /// Position of the rank in the run.
    rank: usize,
    ids: [Option<Meaning>; IDS],
    /// Empty before the first; the last place is for those that are not kept.
    routes: Vec<Route>,
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

    /// The place of a target's channel, if it was kept.
    #[inline]
    pub fn find(&self, target: &Target) -> Option<usize> {
        let place = target.place();
        let kept = self.routes.get(place).is_some_and(|route| route.target == Some(*target));
        kept.then_some(place)
    }

    /// Keeps a channel, for a target or only until the next one is kept; gives its place.
    pub fn keep(&mut self, target: Option<Target>, key: ChannelKey) -> usize {
        let route = Route { target, address: (key, UNKNOWN) };
        if self.routes.is_empty() {
            self.routes = vec![Route { target: None, ..route }; ROUTES + 1];
        }
        let place = target.map_or(ROUTES, |target| target.place());
        self.routes[place] = route;
        place
    }

    /// The channel at a place, to be told where it stands.
    #[inline]
    pub fn address(&mut self, place: usize) -> &mut Address {
        &mut self.routes[place].address
    }
}
