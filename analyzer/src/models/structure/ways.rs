//! The usual ways to carry out a call.

use super::labels::{Kind, Pattern};
use super::shape::Shape;
use super::work::{ALL, Messages, Work};

/// Bytes from which on what is moved is divided into parts.
const DIVIDED: f64 = 512.0;

/// The usual ways to carry out a call with these messages and bytes, in the same order whatever the numbers are; `None`
/// if it is no way to move so little.
pub(super) fn ways(kind: Kind, messages: f64, bytes: f64, shape: Shape) -> Vec<Option<Work>> {
    let of: Vec<Option<Vec<Messages>>> = match kind {
        Kind::Messages => messages_of(messages.max(1.0), bytes, shape),
        Kind::Collective(pattern) => of_pattern(pattern, bytes, shape),
        Kind::Computation | Kind::Other => Vec::new(),
    };
    of.into_iter().map(|messages| messages.map(Work::usual)).collect()
}

/// One after another, or all that a call completes at once, of which half may be received while the others are sent.
fn messages_of(count: f64, bytes: f64, shape: Shape) -> Vec<Option<Vec<Messages>>> {
    let each = bytes / count;
    let half = (count / 2.0).max(1.0);
    let are_several = count >= 2.0;
    // The ranks at the edge of a host send to others, or all its ranks do.
    let senders = [1.0 / shape.groups, shape.per_host];
    let in_turn = senders.map(|of| Some(vec![shape.far(count, each, of)]));
    let at_once = |count, each, of| {
        let messages = Messages { at_once: ALL, ..shape.far(count, each, of) };
        are_several.then(|| vec![messages])
    };
    let posted = senders.into_iter().flat_map(|of| {
        [(count, each), (half, 2.0 * each), (half, each)]
            .map(|(count, each)| at_once(count, each, of))
    });
    in_turn.into_iter().chain(posted).collect()
}

fn of_pattern(pattern: Pattern, bytes: f64, shape: Shape) -> Vec<Option<Vec<Messages>>> {
    let q = shape.members;
    let rounds_there_and_back = |ranks: f64| 2.0 * ranks.log2().ceil();
    let all_there_rounds_back = |ranks: f64| ranks - 1.0 + ranks.log2().ceil();
    let is_divided = bytes >= DIVIDED;
    let whole = |ways: Vec<Vec<Messages>>| ways.into_iter().map(Some).collect::<Vec<_>>();
    match pattern {
        Pattern::Synchronise => whole(vec![
            shape.doubling(|_| 0.0),
            shape.folded(shape.doubling(|_| 0.0), 0.0),
            shape.all(0.0),
            [shape.tree(0.0), shape.tree(0.0)].concat(),
            shape.by_hosts(0.0, |ranks| ranks - 1.0),
            shape.by_hosts(0.0, rounds_there_and_back),
            shape.by_hosts(0.0, all_there_rounds_back),
            // Ranks beyond a power of two take part in the rounds of others.
            vec![shape.far(q.log2().floor(), 0.0, shape.per_host)],
            shape.shifts(|_| 0.0),
        ]),
        Pattern::FromRoot | Pattern::Combine | Pattern::CombineAtRoot | Pattern::CombineParts => {
            let parts = [
                [shape.halves(bytes), shape.halves(bytes)].concat(),
                [shape.halves(bytes), shape.around(bytes / q)].concat(),
            ];
            let whole = whole(vec![
                shape.doubling(|_| bytes),
                shape.tree(bytes),
                // The root sends to all its children at once.
                shape.tree(f64::from(shape.rounds()) * bytes),
                shape.folded(shape.doubling(|_| bytes), bytes),
                shape.all(bytes),
                vec![shape.far(1.0, bytes, 1.0)],
                shape.by_hosts(bytes, |ranks| ranks - 1.0),
                shape.by_hosts(bytes, rounds_there_and_back),
                shape.by_hosts(bytes, all_there_rounds_back),
            ]);
            whole.into_iter().chain(parts.map(|of| is_divided.then_some(of))).collect()
        }
        Pattern::Collect | Pattern::CollectUneven | Pattern::ToRoot => whole(vec![
            shape.blocks(bytes),
            shape.folded(shape.blocks(bytes), bytes),
            shape.around(bytes),
            vec![shape.far(1.0, bytes, 1.0)],
        ]),
        Pattern::Exchange | Pattern::ExchangeUneven => {
            let passed = shape.passed_on() * bytes / f64::from(shape.rounds());
            whole(vec![shape.shifts(|_| passed), shape.all(bytes / q)])
        }
    }
}
