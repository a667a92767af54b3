//! Finds the calls that receive messages found by probes. A matched probe removes its message from
//! the queue, to be received by its handle, so the receive counts as posted at the probe.

use trace_format::reader::StoredEvent;

use super::call::Call;
use super::findings::{MatchFinding, ProbedMessage, Reason, Side};
use super::rank_state::{RankState, Status, TakenMessage};
use super::requests::{Posted, Work};
use super::state::Matching;

impl RankState<'_> {
    /// Handles a probe that found a message, which the next receive on the channel takes.
    pub(super) fn probe(&mut self, call: Call, event: &StoredEvent<'_>, m: &mut Matching) {
        let arguments = self.arguments(event, m);
        if call.end_ticks().is_some()
            && let Ok(route) = self.channel(&arguments, false, m)
        {
            // Only the first probe of a message may have waited for it.
            self.probes.entry(self.routes.address(route).0).or_insert(call);
        }
    }

    /// Reports the probe of the message that a call receives on a channel, if there was one.
    #[inline(always)]
    pub(super) fn note_probed(&mut self, route: usize, call: Call, m: &mut Matching) {
        if !self.probes.is_empty()
            && let Some(probe) = self.probes.remove(&self.routes.address(route).0)
        {
            let probed = ProbedMessage { rank: self.rank, probe, posted: call };
            m.emitter.add(MatchFinding::Probed(probed));
        }
    }

    /// Handles a matched probe, which takes its message at once.
    pub(super) fn matched_probe(&mut self, call: Call, event: &StoredEvent<'_>, m: &mut Matching) {
        let handle = event.head.request();
        if call.end_ticks().is_none() || handle == 0 {
            return;
        }
        let arguments = self.arguments(event, m);
        let posted = self.post_receive(call, &arguments, m);
        let taken = posted.map(|posted| TakenMessage { posted, probe: call });
        self.messages.entry(handle).or_default().push_back(taken);
    }

    /// Takes the message of a handle, which a call receives. The inner `None` is
    /// MPI_MESSAGE_NO_PROC.
    fn matched(&mut self, handle: u32, call: Call, m: &mut Matching) -> Option<Option<Posted>> {
        let queue = self.messages.get_mut(&handle)?;
        let first = queue.pop_front();
        if queue.is_empty() {
            self.messages.remove(&handle);
        }
        let first = first?;
        Some(first.map(|TakenMessage { posted, probe }| {
            let probed = ProbedMessage { rank: self.rank, probe, posted: call };
            m.emitter.add(MatchFinding::Probed(probed));
            posted
        }))
    }

    pub(super) fn matched_receive(
        &mut self,
        call: Call,
        event: &StoredEvent<'_>,
        m: &mut Matching,
    ) {
        let head = &event.head;
        match self.matched(head.request(), call, m) {
            Some(Some(posted)) if call.end_ticks().is_some() => {
                let posted = m.repost(posted, call);
                let (peer, tag, bytes, error) =
                    (head.peer(), head.tag(), event.sent(), event.error());
                self.complete_receive(&posted, &Status { peer, tag, bytes, by: &call, error }, m);
            }
            Some(posted) => self.never_returned.extend(posted.map(Work::Receive)),
            None if head.peer() == self.constants.proc_null => {}
            None => self.message_unknown(call, m),
        }
    }

    /// Reports a receive of a message by an unknown handle.
    pub(super) fn message_unknown(&self, call: Call, m: &mut Matching) {
        let (side, reason) = (Side::Receive, Reason::UnknownHandle);
        m.emitter.unmatched_without_channel(side, reason, (self.rank, call), None, 0);
    }

    pub(super) fn matched_ireceive(
        &mut self,
        call: Call,
        event: &StoredEvent<'_>,
        m: &mut Matching,
    ) {
        let handle = event.message().unwrap_or(0);
        let work = match self.matched(handle, call, m) {
            Some(Some(posted)) => Work::Receive(m.repost(posted, call)),
            Some(None) => Work::Nothing,
            None => Work::UnknownMessage(call),
        };
        self.made(event.head.request(), work, m);
    }
}
