//! What becomes of sends behind their call: completions, cancellations and ends of their ranks come in,
//! from wherever the sender's events are read; the send, where its message is matched, is told.
//!
//! Most observers do not ask when a send was complete, and most sends are sent. Then nothing is kept or
//! passed on for it. There are three who need it:
//!
//! - who asks for [`Wants::completions`](super::Wants): a pair waits until both its sides are complete;
//! - a run with ranks that did not finish: what is left open is said at the end, with whether it was met;
//! - a run with cancelled or failed sends, matched in shares: whether a send was sent is what its
//!   completion says, so it meets a receive only behind that ([`Thoroughness::Doubting`]). A share that
//!   comes upon the first such send has the run matched once more in this way.
//!
//! Matched by time, all at once, a send is sent unless the run says otherwise before it is paired.

use rustc_hash::FxHashMap;

use super::Matching;
use super::call::Call;
use super::channel::Send;
use super::channels::Address;
use super::findings::Reason;
use super::pairs::Pair;

/// What became of a send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// It was sent; the call that completed it, where that is known.
    Sent(Option<Call>),
    /// As `Sent`, unless MPI_Cancel was called on it: then it was not.
    Cancelled(Call),
    /// Its operation ended with an error.
    Failed,
    /// Its rank has no more events.
    Left,
}

impl Fate {
    /// Of a request that was completed without an error.
    pub fn of(cancelled: bool, by: Call) -> Self {
        if cancelled { Self::Cancelled(by) } else { Self::Sent(Some(by)) }
    }
}

/// How much of its sends a share has to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) enum Thoroughness {
    /// That they were sent.
    #[default]
    Posted,
    /// When they were complete.
    Completed,
    /// Whether they were sent.
    Doubting,
}

/// Pairs whose sends are not complete, by the send's number.
#[derive(Debug, Clone, Default)]
pub(super) struct Unsettled(FxHashMap<u64, Pair>);

impl Matching<'_> {
    /// MPI_Cancel was called on a send.
    pub(super) fn doubt(&mut self, to: Address, number: u64) {
        match &mut self.share {
            None => self.channels.doubt(to, number),
            Some(share) => share.doubted(number),
        }
    }

    /// Tells a send what became of it, wherever it is matched.
    pub(super) fn settle(&mut self, to: Address, number: u64, fate: Fate) {
        if let Some(share) = &mut self.share {
            let Some(fate) = share.settles(number, fate) else { return };
            if !share.forwards_fate(to.0, number, fate) {
                self.settle_here(to, number, fate);
            }
        } else {
            // Libraries leave the status of a send mostly unwritten: that it was cancelled is believed
            // only where MPI_Cancel was called.
            let fate = match fate {
                Fate::Cancelled(by) if !self.channels.is_in_doubt(to, number) => {
                    Fate::Sent(Some(by))
                }
                fate => fate,
            };
            self.settle_here(to, number, fate);
        }
    }

    /// As [`Matching::settle`], where it is matched here; who was cancelled is certain.
    pub(super) fn settle_here(&mut self, to: Address, number: u64, fate: Fate) {
        let (there, by) = match fate {
            Fate::Sent(by) => {
                let there = self.channels.settle(to, number, by);
                self.drop_orphaned_sends(to);
                (there, by)
            }
            Fate::Left => (self.channels.leave_send(to, number), None),
            Fate::Cancelled(_) | Fate::Failed => {
                let cancelled = matches!(fate, Fate::Cancelled(_));
                let reason = if cancelled { Reason::Cancelled } else { Reason::Failed };
                if let Some(send) = self.channels.cancel_send(to, number) {
                    self.outlet.unmatched_send(to.0, &send, reason);
                    return;
                }
                (false, None)
            }
        };
        if there || !self.outlet.wants.completions {
            return;
        }
        // It may have met its receive since pairs were last looked at.
        if !self.unsettled.0.contains_key(&number) {
            self.settle_matched();
        }
        if let Some(pair) = self.unsettled.0.remove(&number) {
            self.settled.push(Pair { sent: by, ..pair });
        }
    }

    /// Pairs that are ready to be handed on: all, or those whose send is settled.
    pub(super) fn take_ready(&mut self, mut ready: impl FnMut(&mut Self, &Pair)) {
        if self.outlet.wants.completions {
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

    /// Tells the matched pairs what completed their sends; those of which that is not known yet wait.
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

    /// Pairs whose sends were never complete.
    pub(super) fn give_up_unsettled(&mut self) {
        let mut pairs: Vec<Pair> = std::mem::take(&mut self.unsettled.0).into_values().collect();
        pairs.sort_unstable_by_key(|pair| pair.send.number);
        self.settled.extend(pairs);
    }
}
