//! Operations that were not complete when their rank's events ended: those of calls that never
//! returned, and of requests that were never completed. They are collected as each rank ends. When
//! all ranks have ended, each is reported with what it is still waiting for.

use std::collections::HashMap;

use super::channel_key::Address;
use super::fate::Fate;
use super::findings::{ActiveOperation, ActiveWork, MatchFinding, Reason};
use super::in_flight::accepts;
use super::rank_state::RankState;
use super::requests::{Posted, Queue, Work};
use super::state::Matching;
use super::unfinished::{MatchedSends, UnfinishedOperation};

impl RankState<'_> {
    /// Adds an operation that will never complete, because the rank has no more events.
    pub(super) fn add_unfinished(&self, request: Option<u32>, work: Work, m: &mut Matching) {
        match &work {
            Work::Nothing => {}
            Work::UnknownMessage(call) => self.message_unknown(*call, m),
            Work::Send { to, number, .. } => m.settle(*to, *number, Fate::Unfinished),
            Work::Receive(posted) => self.add_unfinished_receive(posted, m),
            Work::SendReceive(both) => {
                if let Some((to, number)) = both.send {
                    m.settle(to, number, Fate::Unfinished);
                }
                self.add_unfinished_receive(&both.receive, m);
            }
            Work::Collective { sequence, number, member, .. } => {
                m.complete_collective(*sequence, *number, (self.index, *member), None);
            }
        }
        m.unfinished.operations.push(UnfinishedOperation { rank: self.rank, request, work });
    }

    fn add_unfinished_receive(&self, posted: &Posted, m: &mut Matching) {
        match &posted.queue {
            Queue::Channel(from) => m.channels.release_receive(*from, posted.sequence),
            Queue::Wildcard(wildcard) => {
                let communicator = wildcard.communicator.communicator;
                m.unfinished.wildcards.insert((communicator, self.rank));
                self.drop_wildcard(posted, Reason::Open, m);
            }
        }
    }
}

impl Matching<'_> {
    /// Reports the unfinished operations.
    pub(super) fn report_active(&mut self, met: &MatchedSends) {
        let operations = std::mem::take(&mut self.unfinished.operations);
        let sends = match self.unfinished.wildcards.is_empty() {
            true => HashMap::new(),
            false => self.channels.unmet_sends(),
        };
        for UnfinishedOperation { rank, request, work } in operations {
            let receive = |posted: &Posted, m: &Self| {
                let (from, tag, communicator, met) = match &posted.queue {
                    Queue::Channel((key, at)) => {
                        let unmet = m.channels.is_unmet_receive((*key, *at), posted.sequence);
                        (Some(key.source), Some(key.tag), key.communicator, !unmet)
                    }
                    Queue::Wildcard(wildcard) => {
                        let pattern = wildcard.pattern;
                        let communicator = wildcard.communicator.communicator;
                        let there = sends.get(&(communicator, rank));
                        let met =
                            there.is_some_and(|keys| keys.iter().any(|k| accepts(pattern, k)));
                        (pattern.0, pattern.1, communicator, met)
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
                Work::UnknownMessage(call) => {
                    works.push((Some(call.begin_ticks), ActiveWork::Other));
                }
                Work::Send { to, number, begin_ticks } => {
                    works.push((Some(begin_ticks), send(to, number)));
                }
                Work::Receive(posted) => works.push(receive(&posted, self)),
                Work::SendReceive(both) => {
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
                self.emitter.add(MatchFinding::Active(operation));
            }
        }
    }
}
