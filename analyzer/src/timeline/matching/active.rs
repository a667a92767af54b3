//! What had begun and was not complete when its rank's events ended: the operations of calls that
//! never returned and of requests that nobody completed come in, each rank's as it ends; what each of
//! them still waits for goes out when all ranks have ended.

use std::collections::{HashMap, HashSet};

use super::Matching;
use super::channels::takes;
use super::rank_state::RankState;
use super::requests::{Place, Posted, Work};

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
#[derive(Debug, Clone, Copy)]
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
        match work {
            Work::Nothing => {}
            Work::Send { key, number, .. } => m.channels.leave_send(key, number),
            Work::Receive(posted) => self.leave_receive(&posted, m),
            Work::Both { send, receive } => {
                if let Some((key, number)) = send {
                    m.channels.leave_send(key, number);
                }
                self.leave_receive(&receive, m);
            }
            Work::Collective { sequence, number, place, .. } => {
                m.collectives.completed(sequence, number, place, None);
            }
        }
        m.leavings.left.push(Left { rank: self.rank, request, work });
    }

    fn leave_receive(&self, posted: &Posted, m: &mut Matching) {
        match posted.place {
            Place::Channel(key) => m.channels.leave_receive(key, posted.sequence),
            Place::Wildcard { communicator, .. } => {
                m.leavings.wildcards.insert((communicator.communicator, self.rank));
                self.drop_wildcard(posted, super::Reason::Open, m);
            }
        }
    }
}

impl Matching<'_> {
    /// Hands on what all ranks left behind.
    pub(super) fn hand_on_active(&mut self) {
        let left = std::mem::take(&mut self.leavings.left);
        let sends = match self.leavings.wildcards.is_empty() {
            true => HashMap::new(),
            false => self.channels.unmet_sends(),
        };
        for Left { rank, request, work } in left {
            let receive = |posted: &Posted, m: &Self| {
                let (from, tag, communicator, met) = match posted.place {
                    Place::Channel(key) => {
                        let unmet = m.channels.is_unmet_receive(key, posted.sequence);
                        (Some(key.source), Some(key.tag), key.communicator, !unmet)
                    }
                    Place::Wildcard { communicator, wanted } => {
                        let communicator = communicator.communicator;
                        let there = sends.get(&(communicator, rank));
                        let met = there.is_some_and(|keys| keys.iter().any(|k| takes(wanted, k)));
                        (wanted.0, wanted.1, communicator, met)
                    }
                };
                let work = ActiveWork::Receive { from, tag, communicator, met };
                (Some(posted.post.begin_ticks), work)
            };
            let send = |key: super::ChannelKey, number, m: &mut Self| ActiveWork::Send {
                to: key.destination,
                tag: key.tag,
                communicator: key.communicator,
                met: !m.channels.is_unmet_send(key, number),
            };
            let mut works = Vec::with_capacity(2);
            match work {
                Work::Nothing => works.push((None, ActiveWork::Other)),
                Work::Send { key, number, begin_ticks } => {
                    works.push((Some(begin_ticks), send(key, number, self)));
                }
                Work::Receive(posted) => works.push(receive(&posted, self)),
                Work::Both { send: sending, receive: posted } => {
                    if let Some((key, number)) = sending {
                        works.push((Some(posted.post.begin_ticks), send(key, number, self)));
                    }
                    works.push(receive(&posted, self));
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
