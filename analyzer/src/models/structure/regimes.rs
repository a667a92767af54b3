//! Where calls begin to be carried out in another way than in any run.

use super::labels::{Key, Kind};
use super::library::Library;
use super::quantities::Asked;
use super::rules::by_rule;

/// From a rank count on, a call is carried out in another way than in the largest run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Regime {
    pub p: u32,
    pub change: Change,
}

/// What changes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Change {
    /// The library chooses another algorithm.
    Algorithm { library: Library, from: &'static str, to: &'static str },
    /// Messages get to the other side of the size up to which they are sent at once, which was measured.
    Eager { limit: f64, is_below: bool },
}

impl Asked<'_> {
    /// The first change of a label's calls between the largest run and the rank count that is asked for.
    pub(super) fn regime(&self, key: Key, kind: Kind) -> Option<Regime> {
        if matches!(kind, Kind::Computation | Kind::Other) {
            return None;
        }
        let largest = self.runs.last()?.p;
        let at = |p: u32| Asked { p: f64::from(p), ..*self };
        let first = |is_changed: &dyn Fn(&Asked) -> bool| {
            let (mut before, mut after) = (largest, self.p as u32);
            if after <= before || is_changed(&at(before)) || !is_changed(&at(after)) {
                return None;
            }
            while after - before > 1 {
                let middle = before + (after - before) / 2;
                match is_changed(&at(middle)) {
                    true => after = middle,
                    false => before = middle,
                }
            }
            Some(after)
        };
        let algorithm = |asked: &Asked| {
            let library = asked.machine.library;
            let call = asked.call(key, asked.bytes(key).value);
            let chosen = by_rule(library, kind, call.bytes, call.shape).into_iter().next();
            chosen.flatten().filter(|_| library.is_some()).map(|work| work.algorithm)
        };
        if let (Some(library), Some(from), Some(to)) =
            (self.machine.library, algorithm(&at(largest)), algorithm(self))
        {
            // What some run shows is no change.
            let is_known = self.runs.iter().any(|run| algorithm(&at(run.p)) == Some(to));
            let p = first(&|asked| algorithm(asked) == Some(to)).filter(|_| !is_known)?;
            return Some(Regime { p, change: Change::Algorithm { library, from, to } });
        }
        let times = self.machine.other_host.as_ref().or(self.machine.same_host.as_ref())?;
        let limit = times.eager_limit.filter(|_| kind == Kind::Messages)?;
        let is_below = |asked: &Asked| asked.bytes(key).value <= limit;
        let was_below = is_below(&at(largest));
        let p = first(&|asked| is_below(asked) != was_below)?;
        Some(Regime { p, change: Change::Eager { limit, is_below: !was_below } })
    }
}
