//! Applies waits, tests, cancels and frees to the operations of a rank: completes receives with
//! their status, settles sends and completes collective calls.

use trace_format::meaning::Operation;
use trace_format::reader::StoredEvent;

use crate::timeline::communicators::{Membership, Peer};

use super::call::Call;
use super::channel_key::{ChannelKey, UNKNOWN_INDEX};
use super::collectives::CallCounts;
use super::fate::Fate;
use super::findings::{Reason, Side};
use super::in_flight::Receive;
use super::rank_state::{RankState, Status};
use super::requests::{Lookup, Posted, Queue, Requests, SendReceive, Wildcard, Work};
use super::state::Matching;

impl RankState<'_> {
    /// Handles an event on existing requests.
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
                let status = Status {
                    peer: head.peer(),
                    tag: head.tag(),
                    bytes: event.sent(),
                    by: &by,
                    error: event.error(),
                };
                self.complete(head.request(), head.completion().1, &status, m);
            }
            Operation::CompleteSeveral => {
                for state in event.requests().filter(|state| state.completed) {
                    let status = Status {
                        peer: state.peer,
                        tag: state.tag,
                        bytes: state.bytes,
                        by: &by,
                        error: state.error,
                    };
                    self.complete(state.request, state.cancelled, &status, m);
                }
            }
            Operation::RequestStatus if head.completion() == (true, true) => {
                // It will not take part any more, whatever becomes of the request.
                if let Some(work) = self.requests.replace(head.request(), Work::Nothing) {
                    self.cancelled(work, &by, m);
                }
            }
            Operation::Cancel => match self.requests.active(head.request()) {
                Some(Work::Send { to, number, .. }) => m.cancel_requested(to, number),
                Some(Work::Receive(posted)) => self.receive_cancelled(&posted, by, m),
                Some(Work::SendReceive(both)) => {
                    if let Some((to, number)) = both.send {
                        m.cancel_requested(to, number);
                    }
                    self.receive_cancelled(&both.receive, by, m);
                }
                _ => {}
            },
            Operation::FreeRequest => match self.requests.freed(head.request()) {
                Lookup::Active(work) => self.lose(&work, Reason::Freed, m),
                Lookup::Inactive => {}
                Lookup::Unknown => {
                    m.emitter.summary.unknown_requests += u64::from(head.request() != 0);
                }
            },
            _ => {}
        }
    }

    fn complete(&mut self, handle: u32, cancelled: bool, status: &Status<'_>, m: &mut Matching) {
        if handle == 0 {
            return;
        }
        let failed = status.error != 0 && !self.is_truncated(status.error);
        match self.requests.completed(handle) {
            Lookup::Unknown => m.emitter.summary.unknown_requests += 1,
            Lookup::Inactive | Lookup::Active(Work::Nothing) => {}
            Lookup::Active(work) if failed => self.fail(work, status, m),
            Lookup::Active(Work::UnknownMessage(call)) => {
                if status.peer != self.constants.proc_null {
                    self.message_unknown(call, m);
                }
            }
            Lookup::Active(Work::Send { to, number, .. }) => {
                m.settle(to, number, Fate::completed(cancelled, *status.by));
            }
            Lookup::Active(Work::Receive(posted)) if cancelled => {
                self.withdraw(&posted, Reason::Cancelled, m);
            }
            Lookup::Active(Work::Receive(posted)) => self.complete_receive(&posted, status, m),
            Lookup::Active(Work::SendReceive(both)) => {
                let SendReceive { send, receive } = *both;
                if let Some((to, number)) = send {
                    m.settle(to, number, Fate::completed(cancelled, *status.by));
                }
                let wildcard = matches!(receive.queue, Queue::Wildcard(_));
                // MPICH 4.0 does not write the status of MPI_Isendrecv.
                let status_is_unset = self.file.header.mpi_family == "mpich";
                match status_is_unset {
                    _ if cancelled => self.withdraw(&receive, Reason::Cancelled, m),
                    true if wildcard => self.drop_wildcard(&receive, Reason::SourceUnknown, m),
                    true => {
                        self.complete_receive(&receive, &Status { bytes: u64::MAX, ..*status }, m)
                    }
                    false => self.complete_receive(&receive, status, m),
                }
            }
            Lookup::Active(Work::Collective { sequence, number, member, .. }) => {
                m.complete_collective(sequence, number, (self.index, member), Some(*status.by));
            }
        }
    }

    /// Records that MPI_Cancel was called on a receive: if its completion is not seen, it took no
    /// message that was sent later.
    fn receive_cancelled(&self, posted: &Posted, by: Call, m: &mut Matching) {
        let Queue::Channel(from) = posted.queue else { return };
        let Some(returned) = by.end_ticks() else { return };
        let seconds = m.emitter.seconds(self.rank, returned);
        if let Some(ticks) = seconds.and_then(|seconds| m.emitter.ticks(from.0.source, seconds)) {
            m.channels.cancel_requested_on_receive(from, posted.sequence, ticks);
        }
    }

    /// Handles an operation that is known to have been cancelled, although its request still exists.
    fn cancelled(&self, work: Work, by: &Call, m: &mut Matching) {
        match work {
            Work::Nothing | Work::Collective { .. } => {}
            Work::UnknownMessage(call) => self.message_unknown(call, m),
            Work::Send { to, number, .. } => m.settle(to, number, Fate::Cancelled(*by)),
            Work::Receive(posted) => self.withdraw(&posted, Reason::Cancelled, m),
            Work::SendReceive(both) => {
                let SendReceive { send, receive } = *both;
                if let Some((to, number)) = send {
                    m.settle(to, number, Fate::Cancelled(*by));
                }
                self.withdraw(&receive, Reason::Cancelled, m);
            }
        }
    }

    /// Removes a receive that takes no message.
    fn withdraw(&self, posted: &Posted, reason: Reason, m: &mut Matching) {
        match &posted.queue {
            Queue::Channel(from) => {
                if let Some(receive) = m.channels.cancel_receive(*from, posted.sequence) {
                    m.emitter.unmatched_receive(from.0, &receive, reason);
                }
            }
            Queue::Wildcard(_) => self.drop_wildcard(posted, reason, m),
        }
    }

    /// Handles an operation that ended with an error and transferred nothing.
    fn fail(&self, work: Work, status: &Status<'_>, m: &mut Matching) {
        match work {
            Work::Nothing => {}
            Work::UnknownMessage(call) => self.message_unknown(call, m),
            Work::Send { to, number, .. } => m.settle(to, number, Fate::Failed),
            Work::Receive(posted) => self.withdraw(&posted, Reason::Failed, m),
            Work::SendReceive(both) => {
                let SendReceive { send, receive } = *both;
                if let Some((to, number)) = send {
                    m.settle(to, number, Fate::Failed);
                }
                self.withdraw(&receive, Reason::Failed, m);
            }
            Work::Collective { sequence, number, member, .. } => {
                m.complete_collective(sequence, number, (self.index, member), Some(*status.by));
            }
        }
    }

    pub(super) fn drop_wildcard(&self, posted: &Posted, reason: Reason, m: &mut Matching) {
        if let Queue::Wildcard(wildcard) = &posted.queue {
            let Wildcard { communicator: Membership { communicator, .. }, pattern, call } =
                **wildcard;
            m.channels.resolve((communicator, self.rank), pattern, posted.sequence, None);
            m.emitter.unmatched_without_channel(
                Side::Receive,
                reason,
                (self.rank, call),
                Some(communicator),
                0,
            );
        }
    }

    #[inline(always)]
    pub(super) fn complete_receive(&self, posted: &Posted, status: &Status<'_>, m: &mut Matching) {
        let sequence = posted.sequence;
        let truncated = self.is_truncated(status.error);
        match &posted.queue {
            Queue::Channel(from) => {
                m.channels.complete(*from, sequence, status.by, status.bytes, truncated);
                m.drop_orphaned_receives(*from);
            }
            Queue::Wildcard(wildcard) => {
                let Wildcard { communicator: membership, pattern, call } = **wildcard;
                let Peer::World(source) = m.communicators.peer(membership, status.peer) else {
                    return self.drop_wildcard(posted, Reason::SourceUnknown, m);
                };
                let (communicator, destination) = (membership.communicator, self.rank);
                let tag = status.tag;
                let key = ChannelKey { communicator, source, destination, tag, lane: 0 };
                let receive = Receive::complete(sequence, call, *status.by, status.bytes);
                let receive = receive.truncated_if(truncated);
                let at = (communicator, self.rank);
                m.channels.resolve(at, pattern, sequence, Some((key, receive)));
                m.drop_orphaned_receives((key, UNKNOWN_INDEX));
            }
        }
    }

    /// Handles an operation whose completion will never be seen.
    pub(super) fn lose(&self, work: &Work, reason: Reason, m: &mut Matching) {
        match *work {
            Work::Nothing => {}
            Work::UnknownMessage(call) => self.message_unknown(call, m),
            Work::Send { to, number, .. } => m.settle(to, number, Fate::Unseen),
            Work::Receive(ref posted) => self.lose_receive(posted, reason, m),
            Work::SendReceive(ref both) => {
                let SendReceive { send, receive } = &**both;
                if let Some((to, number)) = *send {
                    m.settle(to, number, Fate::Unseen);
                }
                self.lose_receive(receive, reason, m);
            }
            Work::Collective { sequence, number, member, .. } => {
                m.complete_collective(sequence, number, (self.index, member), None);
            }
        }
    }

    fn lose_receive(&self, posted: &Posted, reason: Reason, m: &mut Matching) {
        match posted.queue {
            Queue::Channel(from) => {
                m.channels.lose(from, posted.sequence, reason);
                m.drop_orphaned_receives(from);
            }
            Queue::Wildcard(_) => self.drop_wildcard(posted, reason, m),
        }
    }

    /// Handles the end of the rank's events; returns how many collective calls it made.
    pub(super) fn finish(mut self, m: &mut Matching) -> CallCounts {
        for work in std::mem::take(&mut self.never_returned) {
            self.add_unfinished(None, work, m);
        }
        let requests = std::mem::replace(&mut self.requests, Requests::new(false));
        for (handle, work) in requests.left() {
            self.add_unfinished(Some(handle), work, m);
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
