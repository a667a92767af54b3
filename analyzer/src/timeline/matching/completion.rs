//! What waits, tests, cancels and frees do to the operations of a rank: events on requests come in;
//! receives with their status, sends that are settled, collective calls that are complete go out.

use trace_format::layout::{CANCELLED, COMPLETED};
use trace_format::reader::Event;

use crate::timeline::communicators::Peer;

use super::Matching;
use super::channels::{ChannelKey, Receive};
use super::operations::Operation;
use super::outcome::{Reason, Side};
use super::rank_state::{RankState, Said};
use super::requests::{Found, Place, Posted, Requests, Work};

impl RankState<'_> {
    /// Takes an event on requests that exist.
    pub(super) fn complete_event(&mut self, event: &Event, operation: Operation, m: &mut Matching) {
        match operation {
            Operation::CompleteOne if event.communicator & COMPLETED != 0 => {
                let said = Said {
                    peer: event.peer,
                    tag: event.tag,
                    bytes: event.sent,
                    end_ticks: event.end,
                    error: event.error,
                };
                self.complete(event.request, event.communicator & CANCELLED != 0, &said, m);
            }
            Operation::CompleteSeveral => {
                let file = self.file;
                for state in file.requests(event).filter(|state| state.completed) {
                    let said = Said {
                        peer: state.peer,
                        tag: state.tag,
                        bytes: state.bytes,
                        end_ticks: event.end,
                        error: state.error,
                    };
                    self.complete(state.request, state.cancelled, &said, m);
                }
            }
            Operation::Cancel => {
                let active = self.requests.active(event.request);
                // A share does not know of all sends what their requests stand for.
                m.given_up |= m.share.is_some()
                    && !matches!(active, None | Some(Work::Receive(_) | Work::Collective { .. }));
                if let Some(
                    Work::Send { key, number, .. } | Work::Both { send: Some((key, number)), .. },
                ) = active
                {
                    m.channels.doubt(key, number);
                }
            }
            Operation::FreeRequest => match self.requests.freed(event.request) {
                Found::Active(work) => self.lose(&work, Reason::Freed, m),
                Found::Inactive => {}
                Found::Unknown => {
                    m.outlet.summary.unknown_requests += u64::from(event.request != 0);
                }
            },
            _ => {}
        }
    }

    fn complete(&mut self, handle: u32, cancelled: bool, said: &Said, m: &mut Matching) {
        if handle == 0 {
            return;
        }
        let failed = said.error != 0 && !self.is_truncated(said.error);
        if failed && m.share.is_some() {
            // A share does not know of all sends what their requests stand for.
            m.given_up = true;
            return;
        }
        match self.requests.completed(handle) {
            Found::Unknown => m.outlet.summary.unknown_requests += 1,
            Found::Inactive | Found::Active(Work::Nothing) => {}
            Found::Active(work) if failed => self.fail(&work, said, m),
            Found::Active(Work::Send { key, number, .. }) => {
                self.complete_send(key, number, cancelled, m);
            }
            Found::Active(Work::Receive(posted)) if cancelled => {
                self.withdraw(&posted, Reason::Cancelled, m);
            }
            Found::Active(Work::Receive(posted)) => self.complete_receive(&posted, said, m),
            Found::Active(Work::Both { send, receive }) => {
                if let Some((key, number)) = send {
                    self.complete_send(key, number, cancelled, m);
                }
                let wildcard = matches!(receive.place, Place::Wildcard { .. });
                // MPICH (4.0) leaves the status of MPI_Isendrecv as it was: it says nothing.
                let says_nothing = self.file.header.mpi_family == "mpich";
                match says_nothing {
                    _ if cancelled => self.withdraw(&receive, Reason::Cancelled, m),
                    true if wildcard => self.drop_wildcard(&receive, Reason::SourceUnknown, m),
                    true => self.complete_receive(&receive, &Said { bytes: u64::MAX, ..*said }, m),
                    false => self.complete_receive(&receive, said, m),
                }
            }
            Found::Active(Work::Collective { sequence, number, place, .. }) => {
                m.collectives.completed(sequence, number, place, said.end_ticks);
            }
        }
    }

    /// A send request is complete. Libraries leave the status of a send mostly unwritten: that it
    /// was cancelled is believed only where MPI_Cancel was called.
    fn complete_send(&self, key: ChannelKey, number: u64, cancelled: bool, m: &mut Matching) {
        if cancelled && m.channels.is_in_doubt(key, number) {
            if let Some(send) = m.channels.cancel_send(key, number) {
                m.outlet.unmatched_send(key, &send, Reason::Cancelled);
            }
            return;
        }
        m.channels.settle(key, number);
        m.drop_orphaned_sends(key);
    }

    /// A receive that takes no message.
    fn withdraw(&self, posted: &Posted, reason: Reason, m: &mut Matching) {
        match posted.place {
            Place::Channel(key) => {
                m.channels.cancel_receive(key, posted.sequence);
                let receive = Receive::waiting(posted.sequence, posted.post);
                m.outlet.unmatched_receive(key, &receive, reason);
            }
            Place::Wildcard { .. } => self.drop_wildcard(posted, reason, m),
        }
    }

    /// An operation that ended with an error: it moved nothing.
    fn fail(&self, work: &Work, said: &Said, m: &mut Matching) {
        let fail_send = |(key, number): (ChannelKey, u64), m: &mut Matching| {
            if let Some(send) = m.channels.cancel_send(key, number) {
                m.outlet.unmatched_send(key, &send, Reason::Failed);
            }
        };
        match *work {
            Work::Nothing => {}
            Work::Send { key, number, .. } => fail_send((key, number), m),
            Work::Receive(posted) => self.withdraw(&posted, Reason::Failed, m),
            Work::Both { send, receive } => {
                if let Some(send) = send {
                    fail_send(send, m);
                }
                self.withdraw(&receive, Reason::Failed, m);
            }
            Work::Collective { sequence, number, place, .. } => {
                m.collectives.completed(sequence, number, place, said.end_ticks);
            }
        }
    }

    pub(super) fn drop_wildcard(&self, posted: &Posted, reason: Reason, m: &mut Matching) {
        if let Place::Wildcard { communicator, wanted } = posted.place {
            let index = communicator.communicator;
            m.channels.resolve((index, self.rank), wanted, posted.sequence, None);
            m.outlet.unplaced(Side::Receive, reason, &posted.post, Some(index), 0);
        }
    }

    pub(super) fn complete_receive(&self, posted: &Posted, said: &Said, m: &mut Matching) {
        let Posted { sequence, post, place } = *posted;
        let receive = Receive::complete(sequence, post, said.end_ticks, said.bytes)
            .cut_if(self.is_truncated(said.error));
        match place {
            Place::Channel(key) => {
                m.channels.complete(key, receive);
                m.drop_orphaned_receives(key);
            }
            Place::Wildcard { communicator: standing, wanted } => {
                let Peer::World(source) = m.communicators.peer(standing, said.peer) else {
                    return self.drop_wildcard(posted, Reason::SourceUnknown, m);
                };
                let (communicator, destination) = (standing.communicator, self.rank);
                let tag = said.tag;
                let key = ChannelKey { communicator, source, destination, tag, lane: 0 };
                let at = (communicator, self.rank);
                m.channels.resolve(at, wanted, sequence, Some((key, receive)));
                m.drop_orphaned_receives(key);
            }
        }
    }

    /// What becomes of an operation whose completion will not be seen.
    pub(super) fn lose(&self, work: &Work, reason: Reason, m: &mut Matching) {
        match *work {
            Work::Nothing => {}
            Work::Send { key, number, .. } => self.complete_send(key, number, false, m),
            Work::Receive(posted) => self.lose_receive(&posted, reason, m),
            Work::Both { send, receive } => {
                if let Some((key, number)) = send {
                    self.complete_send(key, number, false, m);
                }
                self.lose_receive(&receive, reason, m);
            }
            Work::Collective { sequence, number, place, .. } => {
                m.collectives.completed(sequence, number, place, None);
            }
        }
    }

    fn lose_receive(&self, posted: &Posted, reason: Reason, m: &mut Matching) {
        match posted.place {
            Place::Channel(key) => {
                m.channels.lose(key, posted.sequence, reason);
                m.drop_orphaned_receives(key);
            }
            Place::Wildcard { .. } => self.drop_wildcard(posted, reason, m),
        }
    }

    /// The rank has no more events.
    pub(super) fn finish(mut self, m: &mut Matching) {
        for work in std::mem::take(&mut self.hanging) {
            self.leave(None, work, m);
        }
        let requests = std::mem::replace(&mut self.requests, Requests::new(false));
        for (handle, work) in requests.left() {
            self.leave(Some(handle), work, m);
        }
        let mut messages: Vec<_> = std::mem::take(&mut self.messages).into_iter().collect();
        messages.sort_unstable_by_key(|(handle, _)| *handle);
        let probed = messages.into_iter().flat_map(|(_, queue)| queue).flatten();
        for posted in probed {
            self.lose_receive(&posted, Reason::Open, m);
        }
    }
}
