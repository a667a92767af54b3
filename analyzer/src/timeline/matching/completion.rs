//! What waits, tests, cancels and frees do to the operations of a rank: events on requests come in;
//! receives with their status, sends that are settled, collective calls that are complete go out.

use trace_format::meaning::Operation;
use trace_format::reader::StoredEvent;

use crate::timeline::communicators::{Peer, Standing};

use super::Matching;
use super::call::Call;
use super::channel::Receive;
use super::channels::{ChannelKey, UNKNOWN};
use super::collectives::Calls;
use super::findings::{Reason, Side};
use super::rank_state::{RankState, Said};
use super::requests::{Both, Found, Place, Posted, Requests, Wildcard, Work};
use super::settlement::Fate;

impl RankState<'_> {
    /// Takes an event on requests that exist.
    pub(super) fn complete_event(
        &mut self,
        by: Call,
        event: &StoredEvent<'_>,
        operation: Operation,
        m: &mut Matching,
    ) {
        let head = &event.head;
        match operation {
            Operation::CompleteOne if head.completion().0 => {
                let said = Said {
                    peer: head.peer(),
                    tag: head.tag(),
                    bytes: event.sent(),
                    by: &by,
                    error: event.error(),
                };
                self.complete(head.request(), head.completion().1, &said, m);
            }
            Operation::CompleteSeveral => {
                for state in event.requests().filter(|state| state.completed) {
                    let said = Said {
                        peer: state.peer,
                        tag: state.tag,
                        bytes: state.bytes,
                        by: &by,
                        error: state.error,
                    };
                    self.complete(state.request, state.cancelled, &said, m);
                }
            }
            Operation::Cancel => {
                let sent = match self.requests.active(head.request()) {
                    Some(Work::Send { to, number, .. }) => Some((to, number)),
                    Some(Work::Both(both)) => both.send,
                    _ => None,
                };
                if let Some((to, number)) = sent {
                    m.doubt(to, number);
                }
            }
            Operation::FreeRequest => match self.requests.freed(head.request()) {
                Found::Active(work) => self.lose(&work, Reason::Freed, m),
                Found::Inactive => {}
                Found::Unknown => {
                    m.outlet.summary.unknown_requests += u64::from(head.request() != 0);
                }
            },
            _ => {}
        }
    }

    fn complete(&mut self, handle: u32, cancelled: bool, said: &Said<'_>, m: &mut Matching) {
        if handle == 0 {
            return;
        }
        let failed = said.error != 0 && !self.is_truncated(said.error);
        match self.requests.completed(handle) {
            Found::Unknown => m.outlet.summary.unknown_requests += 1,
            Found::Inactive | Found::Active(Work::Nothing) => {}
            Found::Active(work) if failed => self.fail(work, said, m),
            Found::Active(Work::Send { to, number, .. }) => {
                m.settle(to, number, Fate::of(cancelled, *said.by));
            }
            Found::Active(Work::Receive(posted)) if cancelled => {
                self.withdraw(&posted, Reason::Cancelled, m);
            }
            Found::Active(Work::Receive(posted)) => self.complete_receive(&posted, said, m),
            Found::Active(Work::Both(both)) => {
                let Both { send, receive } = *both;
                if let Some((to, number)) = send {
                    m.settle(to, number, Fate::of(cancelled, *said.by));
                }
                let wildcard = matches!(receive.place, Place::Wildcard(_));
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
                m.complete_collective(sequence, number, (self.index, place), Some(*said.by));
            }
        }
    }

    /// A receive that takes no message.
    fn withdraw(&self, posted: &Posted, reason: Reason, m: &mut Matching) {
        match &posted.place {
            Place::Channel(from) => {
                if let Some(receive) = m.channels.cancel_receive(*from, posted.sequence) {
                    m.outlet.unmatched_receive(from.0, &receive, reason);
                }
            }
            Place::Wildcard(_) => self.drop_wildcard(posted, reason, m),
        }
    }

    /// An operation that ended with an error: it moved nothing.
    fn fail(&self, work: Work, said: &Said<'_>, m: &mut Matching) {
        match work {
            Work::Nothing => {}
            Work::Send { to, number, .. } => m.settle(to, number, Fate::Failed),
            Work::Receive(posted) => self.withdraw(&posted, Reason::Failed, m),
            Work::Both(both) => {
                let Both { send, receive } = *both;
                if let Some((to, number)) = send {
                    m.settle(to, number, Fate::Failed);
                }
                self.withdraw(&receive, Reason::Failed, m);
            }
            Work::Collective { sequence, number, place, .. } => {
                m.complete_collective(sequence, number, (self.index, place), Some(*said.by));
            }
        }
    }

    pub(super) fn drop_wildcard(&self, posted: &Posted, reason: Reason, m: &mut Matching) {
        if let Place::Wildcard(wildcard) = &posted.place {
            let Wildcard { communicator: Standing { communicator, .. }, wanted, call } = **wildcard;
            m.channels.resolve((communicator, self.rank), wanted, posted.sequence, None);
            m.outlet.unplaced(Side::Receive, reason, (self.rank, call), Some(communicator), 0);
        }
    }

    #[inline(always)]
    pub(super) fn complete_receive(&self, posted: &Posted, said: &Said<'_>, m: &mut Matching) {
        let sequence = posted.sequence;
        let truncated = self.is_truncated(said.error);
        match &posted.place {
            Place::Channel(from) => {
                m.channels.complete(*from, sequence, said.by, said.bytes, truncated);
                m.drop_orphaned_receives(*from);
            }
            Place::Wildcard(wildcard) => {
                let Wildcard { communicator: standing, wanted, call } = **wildcard;
                let Peer::World(source) = m.communicators.peer(standing, said.peer) else {
                    return self.drop_wildcard(posted, Reason::SourceUnknown, m);
                };
                let (communicator, destination) = (standing.communicator, self.rank);
                let tag = said.tag;
                let key = ChannelKey { communicator, source, destination, tag, lane: 0 };
                let receive = Receive::complete(sequence, call, *said.by, said.bytes);
                let receive = receive.cut_if(truncated);
                let at = (communicator, self.rank);
                m.channels.resolve(at, wanted, sequence, Some((key, receive)));
                m.drop_orphaned_receives((key, UNKNOWN));
            }
        }
    }

    /// What becomes of an operation whose completion will not be seen.
    pub(super) fn lose(&self, work: &Work, reason: Reason, m: &mut Matching) {
        match *work {
            Work::Nothing => {}
            Work::Send { to, number, .. } => m.settle(to, number, Fate::Sent(None)),
            Work::Receive(ref posted) => self.lose_receive(posted, reason, m),
            Work::Both(ref both) => {
                let Both { send, receive } = &**both;
                if let Some((to, number)) = *send {
                    m.settle(to, number, Fate::Sent(None));
                }
                self.lose_receive(receive, reason, m);
            }
            Work::Collective { sequence, number, place, .. } => {
                m.complete_collective(sequence, number, (self.index, place), None);
            }
        }
    }

    fn lose_receive(&self, posted: &Posted, reason: Reason, m: &mut Matching) {
        match posted.place {
            Place::Channel(from) => {
                m.channels.lose(from, posted.sequence, reason);
                m.drop_orphaned_receives(from);
            }
            Place::Wildcard(_) => self.drop_wildcard(posted, reason, m),
        }
    }

    /// The rank has no more events. Gives how many collective calls it made.
    pub(super) fn finish(mut self, m: &mut Matching) -> Calls {
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
        for taken in probed {
            self.lose_receive(&taken.posted, Reason::Open, m);
        }
        self.calls
    }
}
