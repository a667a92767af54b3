//! Which ranks run on this rank's host, for totals by class of peer.
//!
//! Given the host of every rank and the members of each communicator, it determines the
//! [`PeerClass`] of a communicator's rank.

use std::collections::HashMap;
use std::sync::OnceLock;

use trace_format::header::COMMUNICATOR_UNKNOWN;
use trace_format::totals::PeerClass;

use crate::host::lock::{Shared, SharedLock};

/// Communicators with more members than this are ignored: their peers are unknown.
const MAX_MEMBERS: usize = 1 << 20;

struct Hosts {
    rank: usize,
    /// A bit for each world rank on this host.
    same: Vec<u64>,
}

static HOSTS: OnceLock<Hosts> = OnceLock::new();
static MEMBERS: SharedLock<Option<Members>> = SharedLock::new(None);

/// By local id of a communicator, the class of each of its ranks, two bits each.
type Members = HashMap<u16, Vec<u8>>;

/// Stores the host of every world rank. `rank` is this one.
pub fn set_hosts(hosts: &[u64], rank: u32) {
    let mut same = vec![0u64; hosts.len().div_ceil(64)];
    for (other, _) in hosts.iter().enumerate().filter(|(_, h)| **h == hosts[rank as usize]) {
        same[other / 64] |= 1 << (other % 64);
    }
    let _ = HOSTS.set(Hosts { rank: rank as usize, same });
}

fn class_of_world(hosts: &Hosts, rank: i64) -> PeerClass {
    let Ok(rank) = usize::try_from(rank) else { return PeerClass::Unknown };
    match hosts.same.get(rank / 64) {
        _ if rank == hosts.rank => PeerClass::Itself,
        Some(word) if word >> (rank % 64) & 1 == 1 => PeerClass::SameHost,
        Some(_) => PeerClass::OtherHost,
        None => PeerClass::Unknown,
    }
}

/// Stores a communicator's members as world ranks (-1 outside the world).
pub fn set_members(communicator: u16, world_ranks: &[i64]) {
    let Some(hosts) = HOSTS.get() else { return };
    if communicator == COMMUNICATOR_UNKNOWN || world_ranks.len() > MAX_MEMBERS {
        return;
    }
    let mut classes = vec![0u8; world_ranks.len().div_ceil(4)];
    for (index, rank) in world_ranks.iter().enumerate() {
        let code = match class_of_world(hosts, *rank) {
            PeerClass::Itself => 1,
            PeerClass::SameHost => 2,
            PeerClass::OtherHost => 3,
            PeerClass::None | PeerClass::Unknown => 0,
        };
        classes[index / 4] |= code << (index % 4 * 2);
    }
    let mut members = MEMBERS.write();
    members.get_or_insert_default().insert(communicator, classes);
}

/// The classes of all communicators' ranks, locked for reading.
pub struct Peers(Shared<'static, Option<Members>>);

/// Locks the classes for reading.
pub fn peers() -> Peers {
    Peers(MEMBERS.read())
}

impl Peers {
    /// Class of a rank of a communicator.
    pub fn class(&self, communicator: u16, rank: i32) -> PeerClass {
        let classes = self.0.as_ref().and_then(|members| members.get(&communicator));
        let index = usize::try_from(rank).ok();
        let code = classes.zip(index).and_then(|(classes, index)| {
            classes.get(index / 4).map(|byte| byte >> (index % 4 * 2) & 3)
        });
        match code {
            Some(1) => PeerClass::Itself,
            Some(2) => PeerClass::SameHost,
            Some(3) => PeerClass::OtherHost,
            _ => PeerClass::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // A single test, because the hosts are a global of the process.
    #[test]
    fn classifies_peers_by_host() {
        set_members(1, &[0, 1]);
        assert_eq!(peers().class(1, 0), PeerClass::Unknown, "no host is known yet");
        set_hosts(&[7, 7, 9, 7, 9], 1);
        set_members(2, &[0, 1, 2, 3, 4]);
        set_members(5, &[4, -1, 3, 99]);
        let classes = |communicator, ranks: std::ops::Range<i32>| {
            let peers = peers();
            ranks.map(|rank| peers.class(communicator, rank)).collect::<Vec<_>>()
        };
        use PeerClass::{Itself, OtherHost, SameHost, Unknown};
        assert_eq!(classes(2, 0..5), [SameHost, Itself, OtherHost, SameHost, OtherHost]);
        assert_eq!(classes(5, 0..4), [OtherHost, Unknown, SameHost, Unknown]);
        assert_eq!(classes(5, -1..0), [Unknown]);
        assert_eq!(classes(2, 8..9), [Unknown]);
        assert_eq!(classes(6, 0..1), [Unknown]);
        // A reused id stands for other ranks.
        set_members(5, &[1]);
        assert_eq!(classes(5, 0..1), [Itself]);
    }
}
