//! What is shared by all ranks while matching.

use crate::timeline::communicators::CommunicatorTable;

use super::call::Call;
use super::channel_key::Address;
use super::channels::Channels;
use super::collectives::{CallCounts, Collectives};
use super::emitter::Emitter;
use super::fate::{SendTracking, Unsettled};
use super::findings::{MatchFinding, Reason};
use super::in_flight::Send;
use super::pairs::Pair;
use super::requests::{Posted, Queue};
use super::share::Share;
use super::unfinished::{MatchedSends, Unfinished};

/// What is shared by all ranks while matching.
#[derive(Debug, Clone)]
pub(super) struct Matching<'a> {
    pub(super) communicators: &'a CommunicatorTable,
    pub(super) channels: Channels,
    pub(super) collectives: Collectives,
    pub(super) unfinished: Unfinished,
    pub(super) emitter: Emitter<'a>,
    /// Each rank with a file as a partner of others, ascending by its rank in the world.
    pub(super) partners: Vec<(u32, Partner)>,
    /// Some rank has no more events, or never had any, so that messages to or from it may never be
    /// matched.
    pub(super) some_ended: bool,
    /// Pairs whose sends are not complete yet.
    pub(super) unsettled: Unsettled,
    /// Pairs whose sends are complete.
    pub(super) settled: Vec<Pair>,
    /// The share of the run that is matched here; `None` for all of it.
    pub(super) share: Option<Share>,
}

/// A rank as the partner of others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Partner {
    /// Whether it has more events.
    pub(super) live: bool,
    /// Why a message to or from it may have no partner.
    pub(super) reason: Reason,
}

impl Matching<'_> {
    /// Adds a send, or forwards it to the share that matches it; returns its number. A `pending`
    /// send completes later.
    #[inline(always)]
    pub(super) fn send(&mut self, to: &mut Address, call: Call, bytes: u64, pending: bool) -> u64 {
        let number = self.channels.next_number();
        let tracking = self.share.as_ref().map_or(SendTracking::Completed, Share::tracking);
        let send = Send {
            number,
            call,
            bytes,
            blocking: !pending,
            unconfirmed: pending && tracking == SendTracking::Confirmed,
            doubtful: false,
            active: pending && tracking >= SendTracking::Completed,
        };
        if let Some(share) = &mut self.share
            && share.forwards_send(to.0, send)
        {
            return number;
        }
        self.add_send(to, send);
        number
    }

    /// Makes the call that receives a message by its handle the poster of the receive, at the
    /// position of the probe.
    pub(super) fn repost(&mut self, posted: Posted, call: Call) -> Posted {
        let Posted { sequence, mut queue, .. } = posted;
        match &mut queue {
            Queue::Channel(from) => self.channels.repost(*from, sequence, call),
            Queue::Wildcard(wildcard) => wildcard.call = call,
        }
        Posted { sequence, begin_ticks: call.begin_ticks, queue }
    }

    /// Adds a send that is matched here.
    #[inline(always)]
    pub(super) fn add_send(&mut self, to: &mut Address, send: Send) {
        self.channels.send(to, send);
        self.drop_orphaned_sends(*to);
    }

    /// Handles the end of the events of the rank at a position of the run.
    pub(super) fn end_of_rank(&mut self, position: usize, calls: &CallCounts) {
        self.some_ended = true;
        self.partners[position].1.live = false;
        self.collectives.end_of_rank(position, calls, self.communicators);
    }

    /// Emits what has been matched since the last call.
    pub(super) fn emit_matched(&mut self) {
        if !self.channels.matched.is_empty() || !self.settled.is_empty() {
            self.take_ready(|m, pair| {
                if let Some(message) = m.emitter.message(pair) {
                    m.emitter.add(MatchFinding::Message(message));
                }
            });
        }
        let Self { collectives, emitter, .. } = self;
        collectives.drain(|instance| emitter.instance(instance));
    }

    /// Emits the sends of a channel that will never be received.
    #[inline]
    pub(super) fn drop_orphaned_sends(&mut self, to: Address) {
        if self.some_ended {
            self.drop_orphaned_sends_now(to);
        }
    }

    pub(super) fn drop_orphaned_sends_now(&mut self, to: Address) {
        let key = to.0;
        let partner = self.partner(key.destination);
        if !partner.live && !self.unfinished.has_wildcard(key.communicator, key.destination) {
            for send in self.channels.orphaned_sends(to) {
                let reason = if send.doubtful { Reason::Cancelled } else { partner.reason };
                self.emitter.unmatched_send(key, &send, reason);
            }
        }
    }

    /// Emits the receives of a channel that will never get a message.
    #[inline]
    pub(super) fn drop_orphaned_receives(&mut self, from: Address) {
        if self.some_ended {
            self.drop_orphaned_receives_now(from);
        }
    }

    pub(super) fn drop_orphaned_receives_now(&mut self, from: Address) {
        let key = from.0;
        let partner = self.partner(key.source);
        if !partner.live {
            for receive in self.channels.orphaned_receives(from) {
                let reason = receive.why_alone().unwrap_or(partner.reason);
                self.emitter.unmatched_receive(key, &receive, reason);
            }
        }
    }

    pub(super) fn partner(&self, world_rank: u32) -> Partner {
        // If no file is missing, the position is the rank.
        if let Some((rank, partner)) = self.partners.get(world_rank as usize)
            && *rank == world_rank
        {
            return *partner;
        }
        let missing = Partner { live: false, reason: Reason::FileMissing };
        let found = self.partners.binary_search_by_key(&world_rank, |(rank, _)| *rank);
        found.map_or(missing, |index| self.partners[index].1)
    }

    /// Emits what will not become more certain.
    pub(super) fn begin_to_finish(&mut self) {
        self.collectives.finish();
        self.give_up_unsettled();
        self.emit_matched();
    }

    /// The unfinished sends of these ranks that met a receive.
    pub(super) fn matched_sends(&self, is_unmet: impl Fn(Address, u64) -> bool) -> MatchedSends {
        MatchedSends::new(&self.unfinished, is_unmet)
    }

    /// Emits everything that is left.
    pub(super) fn finish(&mut self, met: &MatchedSends) {
        self.report_active(met);
        let (sends, receives) = self.channels.take_remaining();
        for (key, send) in sends {
            let reason = match send.doubtful {
                true => Reason::Cancelled,
                false => self.partner(key.destination).reason,
            };
            self.emitter.unmatched_send(key, &send, reason);
        }
        for (key, receive) in receives {
            let reason = match receive.why_alone() {
                Some(reason) => reason,
                None => self.partner(key.source).reason,
            };
            self.emitter.unmatched_receive(key, &receive, reason);
        }
    }
}
