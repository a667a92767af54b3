//! Follows sends after their call: completions, cancellations and the ends of their ranks are
//! applied to the send where its message is matched, which may be another share than the sender's.
//!
//! Most sinks do not ask when a send completed, and most sends are neither cancelled nor fail. Then
//! nothing is stored or forwarded. The exceptions are:
//!
//! - A sink asks for [`MatchInterest::completions`](super::MatchInterest). Then a pair waits until both its sides
//!   are complete.
//! - The run has ranks that did not finish. Then the end reports what is still open, and whether it
//!   met its partner.
//! - The run has cancelled or failed sends and is matched in shares. Then only a send's completion
//!   tells whether it was sent, so a send is paired only after that
//!   ([`SendTracking::Confirmed`](super::fate::SendTracking::Confirmed)).
//!   The first share that finds such a send causes the run to be matched again in this way.
//!
//! A send that was cancelled and whose request was then freed has no completion. It counts as sent
//! unless the receive that would have taken it got a message of another size.
//!
//! When a run is matched all at once, in order of time, a send counts as sent unless the contrary
//! is known before it is paired.

use super::channel_key::Address;
use super::fate::Fate;
use super::findings::Reason;
use super::in_flight::Send;
use super::pairs::{Alone, Pair};
use super::state::Matching;

impl Matching<'_> {
    /// Records that MPI_Cancel was called on a send.
    pub(super) fn cancel_requested(&mut self, to: Address, number: u64) {
        match &mut self.share {
            None => self.channels.mark_unconfirmed(to, number),
            Some(share) => share.cancel_requested(number),
        }
    }

    /// Applies the fate of a send where it is matched.
    pub(super) fn settle(&mut self, to: Address, number: u64, fate: Fate) {
        if let Some(share) = &mut self.share {
            let Some(fate) = share.filter_fate(number, fate) else { return };
            if !share.forwards_fate(to.0, number, fate) {
                self.settle_here(to, number, fate);
            }
        } else {
            // Libraries often do not write the status of a send, so it counts as cancelled only if
            // MPI_Cancel was called.
            let fate = match fate {
                Fate::Cancelled(by) if !self.channels.is_unconfirmed(to, number) => {
                    Fate::Sent(Some(by))
                }
                Fate::Unseen if !self.channels.is_unconfirmed(to, number) => Fate::Sent(None),
                fate => fate,
            };
            self.settle_here(to, number, fate);
        }
    }

    /// Like [`Matching::settle`], for a send that is matched here; whether it was cancelled is
    /// certain now.
    pub(super) fn settle_here(&mut self, to: Address, number: u64, fate: Fate) {
        let (there, by) = match fate {
            Fate::Sent(by) => {
                let there = self.channels.settle(to, number, by);
                self.drop_orphaned_sends(to);
                (there, by)
            }
            Fate::Unfinished => (self.channels.release_send(to, number), None),
            Fate::Unseen => {
                self.channels.doubt(to, number);
                self.drop_orphaned_sends(to);
                (false, None)
            }
            Fate::Cancelled(_) | Fate::Failed => {
                let cancelled = matches!(fate, Fate::Cancelled(_));
                let reason = if cancelled { Reason::Cancelled } else { Reason::Failed };
                if let Some(send) = self.channels.cancel_send(to, number) {
                    self.emitter.unmatched_send(to.0, &send, reason);
                    return;
                }
                (false, None)
            }
        };
        if there || !self.emitter.wants.completions {
            return;
        }
        // It may have met its receive since pairs were last examined.
        if !self.unsettled.0.contains_key(&number) {
            self.settle_matched();
        }
        if let Some(pair) = self.unsettled.0.remove(&number) {
            self.settled.push(Pair { sent: by, ..pair });
        }
    }

    /// Passes on the pairs that can be emitted: all, or those whose send is settled.
    pub(super) fn take_ready(&mut self, mut ready: impl FnMut(&mut Self, &Pair)) {
        for (key, alone) in std::mem::take(&mut self.channels.matched.withdrawn) {
            match alone {
                Alone::Send(send) => self.emitter.unmatched_send(key, &send, Reason::Cancelled),
                Alone::Receive(receive) => {
                    self.emitter.unmatched_receive(key, &receive, Reason::Cancelled);
                }
            }
        }
        if self.emitter.wants.completions {
            self.settle_matched();
            let mut settled = std::mem::take(&mut self.settled);
            settled.drain(..).for_each(|pair| ready(self, &pair));
            self.settled = settled;
            return;
        }
        let mut pairs = std::mem::take(&mut self.channels.matched);
        pairs.as_slice().iter().for_each(|pair| ready(self, pair));
        pairs.clear();
        self.channels.matched = pairs;
    }

    /// Adds the completions of sends to the matched pairs; pairs without one have to wait.
    fn settle_matched(&mut self) {
        let mut matched = std::mem::take(&mut self.channels.matched);
        for pair in matched.as_slice() {
            let Send { number, call, blocking, active, .. } = pair.send;
            let sent = match blocking {
                true => Some(call),
                false => self.channels.take_completion(number),
            };
            let pair = Pair { sent, ..*pair };
            if active && sent.is_none() {
                self.unsettled.0.insert(number, pair);
            } else {
                self.settled.push(pair);
            }
        }
        matched.clear();
        self.channels.matched = matched;
    }

    /// Settles the pairs whose sends never completed.
    pub(super) fn give_up_unsettled(&mut self) {
        let mut pairs: Vec<Pair> = std::mem::take(&mut self.unsettled.0).into_values().collect();
        pairs.sort_unstable_by_key(|pair| pair.send.number);
        self.settled.extend(pairs);
    }
}
