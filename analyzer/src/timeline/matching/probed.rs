//! Messages that a probe found: which call receives them. A matched probe takes its message out of the queue, to
//! be received by its handle: it is posted at the probe's place.

use trace_format::reader::StoredEvent;

use super::Matching;
use super::call::Call;
use super::findings::{Probed, Reason, Side};
use super::rank_state::{RankState, Said, Taken};
use super::requests::{Posted, Work};

impl RankState<'_> {
    /// A probe found a message: the next receive on that channel takes it.
    pub(super) fn probe(&mut self, call: Call, event: &StoredEvent<'_>, m: &mut Matching) {
        let arguments = self.arguments(event, m);
        if call.end_ticks().is_some()
            && let Ok(place) = self.channel(&arguments, false, m)
        {
            // Further probes of the same message find it at once.
            self.probes.entry(self.routes.address(place).0).or_insert(call);
        }
    }

    /// A call receives the next message on a channel.
    #[inline(always)]
    pub(super) fn receives_probed(&mut self, place: usize, call: Call, m: &mut Matching) {
        if !self.probes.is_empty()
            && let Some(probe) = self.probes.remove(&self.routes.address(place).0)
        {
            m.outlet.probed(Probed { rank: self.rank, probe, posted: call });
        }
    }

    /// A matched probe takes its message at once; it is received later.
    pub(super) fn matched_probe(&mut self, call: Call, event: &StoredEvent<'_>, m: &mut Matching) {
        let handle = event.head.request();
        if call.end_ticks().is_none() || handle == 0 {
            return;
        }
        let arguments = self.arguments(event, m);
        let posted = self.post_receive(call, &arguments, m);
        let taken = posted.map(|posted| Taken { posted, probe: call });
        self.messages.entry(handle).or_default().push_back(taken);
    }

    /// The message that a handle stands for, which a call receives.
    fn matched(&mut self, handle: u32, call: Call, m: &mut Matching) -> Option<Option<Posted>> {
        let queue = self.messages.get_mut(&handle)?;
        let first = queue.pop_front();
        if queue.is_empty() {
            self.messages.remove(&handle);
        }
        let first = first?;
        Some(first.map(|Taken { posted, probe }| {
            m.outlet.probed(Probed { rank: self.rank, probe, posted: call });
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
                self.complete_receive(&posted, &Said { peer, tag, bytes, by: &call, error }, m);
            }
            Some(posted) => self.hanging.extend(posted.map(Work::Receive)),
            None if head.peer() == self.constants.proc_null => {}
            None => {
                let who = (self.rank, call);
                m.outlet.unplaced(Side::Receive, Reason::UnknownHandle, who, None, 0);
            }
        }
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
            None => {
                let who = (self.rank, call);
                m.outlet.unplaced(Side::Receive, Reason::UnknownHandle, who, None, 0);
                Work::Nothing
            }
        };
        self.made(event.head.request(), work, m);
    }
}
