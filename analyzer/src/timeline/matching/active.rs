//! What had begun and was not complete when its rank's events ended: the operations of calls that
//! never returned and of requests that nobody completed come in, each rank's as it ends; what each of
//! them still waits for goes out when all ranks have ended.

use std::collections::{HashMap, HashSet};

use super::Matching;
use super::channel::takes;
use super::channels::Address;
use super::rank_state::RankState;
use super::requests::{Place, Posted, Work};
use super::settlement::Fate;

/// An operation that was not complete when its rank's events ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ActiveOperation {
    /// Rank in MPI_COMM_WORLD.
    pub rank: u32,
    /// Its request, shortened; `None` of a call that did not return.
    pub request: Option<u32>,
    /// Counter of the rank when the call that began the operation (of a persistent one its start)
    /// began; `None` where the operation is not known.
    pub begin_ticks: Option<u64>,
    /// What it is.
    pub work: ActiveWork,
}

/// What an active operation waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ActiveWork {
    /// A send.
    Send {
        /// World rank of the receiver.
        to: u32,
        /// Tag.
        tag: i32,
        /// Position of the communicator in the table.
        communicator: u32,
        /// Whether a receive for it is posted.
        met: bool,
    },
    /// A receive.
    Receive {
        /// World rank of the sender; `None` for MPI_ANY_SOURCE.
        from: Option<u32>,
        /// Tag; `None` for MPI_ANY_TAG.
        tag: Option<i32>,
        /// Position of the communicator in the table.
        communicator: u32,
        /// Whether a send for it has begun.
        met: bool,
    },
    /// A collective operation that does not block.
    Collective {
        /// Position of the communicator in the table.
        communicator: u32,
    },
    /// Something else, or with a partner that is not known.
    Other,
}

/// What a rank leaves behind.
#[derive(Debug, Clone)]
struct Left {
    rank: u32,
    request: Option<u32>,
    work: Work,
}

/// What all ranks have left behind so far.
#[derive(Debug, Clone, Default)]
pub(super) struct Leavings {
    left: Vec<Left>,
    /// Communicators and ranks with a wildcard receive that is not complete: sends to them are kept.
    wildcards: HashSet<(u32, u32)>,
}

impl Leavings {
    /// Whether a rank that has no more events may still take any message on a communicator.
    pub fn has_wildcard(&self, communicator: u32, rank: u32) -> bool {
        self.wildcards.contains(&(communicator, rank))
    }
}

impl RankState<'_> {
    /// An operation will not be completed any more: the rank has no more events.
    pub(super) fn leave(&self, request: Option<u32>, work: Work, m: &mut Matching) {
        match &work {
            Work::Nothing => {}
            Work::Send { to, number, .. } => m.settle(*to, *number, Fate::Left),
            Work::Receive(posted) => self.leave_receive(posted, m),
            Work::Both(both) => {
                if let Some((to, number)) = both.send {
                    m.settle(to, number, Fate::Left);
                }
                self.leave_receive(&both.receive, m);
            }
            Work::Collective { sequence, number, place, .. } => {
                m.complete_collective(*sequence, *number, (self.index, *place), None);
            }
        }
        m.leavings.left.push(Left { rank: self.rank, request, work });
    }

    fn leave_receive(&self, posted: &Posted, m: &mut Matching) {
        match &posted.place {
            Place::Channel(from) => m.channels.leave_receive(*from, posted.sequence),
            Place::Wildcard(wildcard) => {
                let communicator = wildcard.communicator.communicator;
                m.leavings.wildcards.insert((communicator, self.rank));
                self.drop_wildcard(posted, super::Reason::Open, m);
            }
        }
    }
}

/// Whether sends met a receive that were left behind: asked of the channels that they are in.
#[derive(Debug, Default)]
pub(super) struct MetSends(HashSet<u64>);

impl MetSends {
    /// Of what `left` lists: those sends for which `is_unmet` does not hold.
    pub fn ask(left: &Leavings, is_unmet: impl Fn(Address, u64) -> bool) -> Self {
        let sends = left.left.iter().filter_map(|left| match &left.work {
            Work::Send { to, number, .. } => Some((*to, *number)),
            Work::Both(both) => both.send,
            _ => None,
        });
        Self(sends.filter(|(to, number)| !is_unmet(*to, *number)).map(|(_, n)| n).collect())
    }
}

impl Matching<'_> {
    /// Hands on what its ranks left behind.
    pub(super) fn hand_on_active(&mut self, met: &MetSends) {
        let left = std::mem::take(&mut self.leavings.left);
        let sends = match self.leavings.wildcards.is_empty() {
            true => HashMap::new(),
            false => self.channels.unmet_sends(),
        };
        for Left { rank, request, work } in left {
            let receive = |posted: &Posted, m: &Self| {
                let (from, tag, communicator, met) = match &posted.place {
                    Place::Channel((key, at)) => {
                        let unmet = m.channels.is_unmet_receive((*key, *at), posted.sequence);
                        (Some(key.source), Some(key.tag), key.communicator, !unmet)
                    }
                    Place::Wildcard(wildcard) => {
                        let wanted = wildcard.wanted;
                        let communicator = wildcard.communicator.communicator;
                        let there = sends.get(&(communicator, rank));
                        let met = there.is_some_and(|keys| keys.iter().any(|k| takes(wanted, k)));
                        (wanted.0, wanted.1, communicator, met)
                    }
                };
                let work = ActiveWork::Receive { from, tag, communicator, met };
                (Some(posted.begin_ticks), work)
            };
            let send = |(key, _): Address, number: u64| ActiveWork::Send {
                to: key.destination,
                tag: key.tag,
                communicator: key.communicator,
                met: met.0.contains(&number),
            };
            let mut works = Vec::with_capacity(2);
            match work {
                Work::Nothing => works.push((None, ActiveWork::Other)),
                Work::Send { to, number, begin_ticks } => {
                    works.push((Some(begin_ticks), send(to, number)));
                }
                Work::Receive(posted) => works.push(receive(&posted, self)),
                Work::Both(both) => {
                    if let Some((to, number)) = both.send {
                        works.push((Some(both.receive.begin_ticks), send(to, number)));
                    }
                    works.push(receive(&both.receive, self));
                }
                Work::Collective { sequence, begin_ticks, .. } => {
                    let communicator = sequence.communicator;
                    works.push((Some(begin_ticks), ActiveWork::Collective { communicator }));
                }
            }
            for (begin_ticks, work) in works {
                let operation = ActiveOperation { rank, request, begin_ticks, work };
                self.outlet.active(&operation);
            }
        }
    }
}
