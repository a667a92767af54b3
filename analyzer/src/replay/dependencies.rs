//! What the end of a call depends on: the only place that defines how messages and collective
//! operations work. It is used forwards to compute times, and backwards to compute their
//! derivatives.

use super::graph::{Collective, Graph, LinkKind, Member, Message, NO_OP, OpNumber};
use super::movement::Needs;
use super::network::{Amount, Costs};

/// The point from which a duration counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StartPoint {
    /// The call's own begin.
    Begin,
    /// Another call's begin.
    Entered(OpNumber),
    /// The end of the rounds of a collective operation for this member; their duration is not
    /// included in the time.
    RoundsDone(u32),
    /// The begin of the last of the members that send in this collective operation.
    LastSender(u32),
}

/// Calls `dependency` with the start point and the duration of everything that a call's end depends
/// on: the end is the latest of all. The call's own work after what it waited for is included in
/// each.
#[inline]
pub(super) fn dependencies<T: Amount>(
    graph: &Graph,
    costs: &Costs<T>,
    op: OpNumber,
    mut dependency: impl FnMut(StartPoint, T),
) {
    let links = graph.links(op);
    let overhead = costs.network.overhead;
    let (mut before, mut after) = (T::ZERO, T::ZERO);
    let (mut begins, mut completes) = (false, false);
    for link in links {
        let message = || &graph.messages[link.of as usize];
        begins |= link.kind.begins();
        completes |= link.kind.completes();
        match link.kind {
            LinkKind::Send | LinkKind::PostSend => before = before + costs.copying(message()),
            LinkKind::Receive | LinkKind::CompleteReceive => {
                after = after + costs.copying(message());
            }
            _ => {}
        }
    }
    if begins {
        before = before + overhead;
    }
    if completes {
        after = after + overhead;
    }
    dependency(StartPoint::Begin, before + after);
    for link in links {
        match link.kind {
            LinkKind::Send | LinkKind::CompleteSend => {
                let message = &graph.messages[link.of as usize];
                if costs.needs_receiver(message) {
                    handshake(costs, message, |start, time| {
                        dependency(start, time + costs.moved(message) + after)
                    });
                }
            }
            LinkKind::Receive | LinkKind::CompleteReceive => {
                let message = &graph.messages[link.of as usize];
                match costs.needs_receiver(message) {
                    true => handshake(costs, message, |start, time| {
                        let time = time + costs.moved(message) + costs.latency(message);
                        dependency(start, time + after)
                    }),
                    false => {
                        dependency(StartPoint::Entered(message.send), costs.eager(message) + after);
                    }
                }
            }
            LinkKind::Collective | LinkKind::CompleteCollective => {
                let member = &graph.members[link.of as usize];
                let collective = &graph.collectives[member.collective as usize];
                if collective.needs == Needs::Everybody {
                    dependency(StartPoint::RoundsDone(link.of), after);
                    continue;
                }
                if collective.needs == Needs::Root && link.of == collective.root {
                    let start = match link.kind {
                        LinkKind::Collective => StartPoint::Begin,
                        _ => StartPoint::Entered(member.posted),
                    };
                    dependency(start, costs.busy_root(collective) + after);
                    continue;
                }
                let time = costs.collective(collective) + after;
                needed(graph, (link.of, member), collective, |start| dependency(start, time));
            }
            LinkKind::PostSend | LinkKind::PostReceive | LinkKind::PostCollective => {}
        }
    }
}

/// Calls `start` with the points from which both sides of a message know of each other.
#[inline]
fn handshake<T: Amount>(costs: &Costs<T>, message: &Message, mut start: impl FnMut(StartPoint, T)) {
    start(StartPoint::Entered(message.send), costs.announced(message));
    start(StartPoint::Entered(message.receive), costs.network.overhead);
}

/// Calls `start` with the members whose contributions a member of a collective operation needs.
#[inline]
fn needed(
    graph: &Graph,
    (number, member): (u32, &Member),
    collective: &Collective,
    mut start: impl FnMut(StartPoint),
) {
    let posted = |number: u32| graph.members[number as usize].posted;
    match collective.needs {
        Needs::All if member.receives => start(StartPoint::LastSender(member.collective)),
        Needs::Root if member.receives => start(StartPoint::Entered(posted(collective.root))),
        Needs::AtRoot if number == collective.root => {
            start(StartPoint::LastSender(member.collective))
        }
        Needs::Lower => (collective.members.start..=number)
            .for_each(|lower| start(StartPoint::Entered(posted(lower)))),
        Needs::Everybody | Needs::All | Needs::Root | Needs::AtRoot => {}
    }
}

/// The calls of the members that send in a collective operation.
pub(super) fn senders<'g>(
    graph: &'g Graph<'_>,
    collective: u32,
) -> impl Iterator<Item = OpNumber> + 'g {
    let members = graph.collectives[collective as usize].members.clone();
    let members = &graph.members[members.start as usize..members.end as usize];
    members.iter().filter(|member| member.sends && member.posted != NO_OP).map(|m| m.posted)
}
