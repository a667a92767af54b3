//! What the end of a call depends on: the one place that says how messages and collective operations work. It
//! is asked twice: forwards for times, backwards for what they would change by.

use super::graph::{Collective, Graph, LinkKind, Member, Message, NO_OP, Needs, OpNumber};
use super::network::{Amount, Costs};

/// From when on something takes its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Since {
    /// The call's own begin.
    Begin,
    /// Another call's begin.
    Entered(OpNumber),
    /// The end of the rounds of a collective operation for this member; what they take is not in the time.
    Exchanged(u32),
    /// The begin of the last of the parts that a collective operation's members need of each other.
    Gathered(u32),
}

/// Says for each thing that a call's end depends on from when on it takes how long: the end is the latest of
/// all. The call's own work behind what it waited for is in each.
#[inline]
pub(super) fn branches<T: Amount>(
    graph: &Graph,
    costs: &Costs<T>,
    op: OpNumber,
    mut branch: impl FnMut(Since, T),
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
    branch(Since::Begin, before + after);
    for link in links {
        match link.kind {
            LinkKind::Send | LinkKind::CompleteSend => {
                let message = &graph.messages[link.of as usize];
                if costs.needs_receiver(message) {
                    met(costs, message, |since, time| {
                        branch(since, time + costs.moved(message) + after)
                    });
                }
            }
            LinkKind::Receive | LinkKind::CompleteReceive => {
                let message = &graph.messages[link.of as usize];
                match costs.needs_receiver(message) {
                    true => met(costs, message, |since, time| {
                        let time = time + costs.moved(message) + costs.latency(message);
                        branch(since, time + after)
                    }),
                    false => {
                        branch(Since::Entered(message.send), costs.eager(message) + after);
                    }
                }
            }
            LinkKind::Collective | LinkKind::CompleteCollective => {
                let member = &graph.members[link.of as usize];
                let collective = &graph.collectives[member.collective as usize];
                if collective.needs == Needs::Everybody {
                    branch(Since::Exchanged(link.of), after);
                    continue;
                }
                let time = costs.collective(collective) + after;
                needed(graph, (link.of, member), collective, |since| branch(since, time));
            }
            LinkKind::PostSend | LinkKind::PostReceive | LinkKind::PostCollective => {}
        }
    }
}

/// From when on both sides of a message know of each other.
#[inline]
fn met<T: Amount>(costs: &Costs<T>, message: &Message, mut since: impl FnMut(Since, T)) {
    since(Since::Entered(message.send), costs.announced(message));
    since(Since::Entered(message.receive), costs.network.overhead);
}

/// Whose parts a member of a collective operation needs.
#[inline]
fn needed(
    graph: &Graph,
    (number, member): (u32, &Member),
    collective: &Collective,
    mut since: impl FnMut(Since),
) {
    let posted = |number: u32| graph.members[number as usize].posted;
    match collective.needs {
        Needs::All if member.receives => since(Since::Gathered(member.collective)),
        Needs::Root if member.receives => since(Since::Entered(posted(collective.root))),
        Needs::AtRoot if number == collective.root => since(Since::Gathered(member.collective)),
        Needs::Lower => (collective.members.start..=number)
            .for_each(|lower| since(Since::Entered(posted(lower)))),
        Needs::Everybody | Needs::All | Needs::Root | Needs::AtRoot => {}
    }
}

/// The calls of a gathering: those of the members that send.
pub(super) fn gathered<'g>(
    graph: &'g Graph<'_>,
    collective: u32,
) -> impl Iterator<Item = OpNumber> + 'g {
    let members = graph.collectives[collective as usize].members.clone();
    let members = &graph.members[members.start as usize..members.end as usize];
    members.iter().filter(|member| member.sends && member.posted != NO_OP).map(|m| m.posted)
}
