//! Finds late progress (decision 86): the partner had already done its part, but the message moved
//! only when the partner's rank entered MPI again, because no progress thread of the library moved
//! it.
//!
//! A trace does not show when a message moves. The evidence is that the call returned soon after
//! the partner's rank entered MPI, and that this rank had been outside MPI for almost all of the
//! unexplained time.

use crate::analysis::segments::Functions;
use crate::analysis::spans::{Activity, Span, SpanKind};
use crate::analysis::{Analysis, CallObserver, RankObserver, RankView, ThreadView};

use super::State;
use super::conditions::{Condition, Unexplained};
use super::whole_ticks::WholeTicks;

/// The partner's stretch outside MPI is at least this many times as long as the unexplained time
/// before it, and as the rest of the call after it.
const MIN_RATIO: i64 = 4;

/// The conditions of calls that ended when the partner's rank entered MPI after at least `least`
/// ticks outside.
pub(super) fn conditions(
    analysis: &Analysis,
    clock: &WholeTicks,
    mut unexplained: Vec<Unexplained>,
    least: i64,
) -> Vec<Condition> {
    if unexplained.is_empty() {
        return Vec::new();
    }
    unexplained.sort_unstable_by_key(|of| (of.partner, of.condition.left));
    let mut asked: Vec<&[Unexplained]> = vec![&[]; analysis.run.ranks.len()];
    for of_rank in unexplained.chunk_by(|a, b| a.partner == b.partner) {
        asked[of_rank[0].partner] = of_rank;
    }
    let entries = analysis.calls(&Entries { clock, asked: &asked });
    let found = asked.iter().zip(entries).flat_map(|(asked, of_rank)| {
        // With several threads, any of them may have moved the message.
        let known = if of_rank.threads == 1 { of_rank.last } else { Vec::new() };
        asked.iter().zip(known).filter_map(|(of, last)| late_progress(of, last?, least))
    });
    found.collect()
}

/// The condition of a call, given when the partner's rank last entered MPI before the end of the
/// call (`entered`), and when it had left MPI before that (`left`).
fn late_progress(of: &Unexplained, (left, entered): (i64, i64), least: i64) -> Option<Condition> {
    let from = left.max(of.since);
    let outside = entered - from;
    let rest = (of.condition.left - entered).max(from - of.since);
    if outside < least || rest > outside / MIN_RATIO {
        return None;
    }
    let is_most = outside >= of.since - of.condition.entered;
    let state = if is_most { State::LateProgress } else { of.condition.state };
    Some(Condition { fulfilled: entered, state, ..of.condition })
}

/// Finds each rank's last entry into MPI before the given moments.
struct Entries<'e> {
    clock: &'e WholeTicks<'e>,
    /// By the partner's position, ordered by the end of the call.
    asked: &'e [&'e [Unexplained]],
}

/// The entries of one rank.
struct EntriesOfRank<'e> {
    clock: &'e WholeTicks<'e>,
    asked: &'e [Unexplained],
    position: usize,
    functions: Functions,
    /// For each of these calls when the rank had left MPI and when it entered it again.
    last: Vec<Option<(i64, i64)>>,
    /// Number of threads that called MPI.
    threads: usize,
    /// The last call: end of the call before it, begin, end.
    call: Option<(i64, i64, i64)>,
}

impl<'a, 'e> CallObserver<'a> for Entries<'e> {
    type OfRank = EntriesOfRank<'e>;

    fn begin_rank(&self, rank: RankView<'a>) -> EntriesOfRank<'e> {
        EntriesOfRank {
            clock: self.clock,
            asked: self.asked[rank.position],
            position: rank.position,
            functions: Functions::new(rank.trace),
            last: Vec::new(),
            threads: 0,
            call: None,
        }
    }
}

impl EntriesOfRank<'_> {
    /// Records the last entry for all calls that ended before the next one.
    fn answer(&mut self, before: i64) {
        while let Some(of) =
            self.asked.get(self.last.len()).filter(|of| of.condition.left <= before)
        {
            let entry = self.call.map(|(left, entered, _)| (left, entered));
            self.last.push(entry.filter(|(_, entered)| *entered < of.condition.left));
        }
    }
}

impl<'a> RankObserver<'a> for EntriesOfRank<'_> {
    fn begin_thread(&mut self, _: ThreadView<'a>) {
        self.call = None;
    }

    fn span(&mut self, span: &Span) {
        let is_mpi = match span.kind {
            SpanKind::Call(function) => self.functions.entry(function).1 == Activity::Mpi,
            SpanKind::Polls { .. } => true,
            _ => false,
        };
        if self.asked.is_empty() || !is_mpi {
            return;
        }
        let at = |ticks| self.clock.at(self.position, ticks);
        let (begin, end) = (at(span.begin_ticks), at(span.end_ticks));
        self.threads += usize::from(self.call.is_none());
        self.answer(begin);
        let left = self.call.map_or(i64::MIN, |(.., end)| end);
        self.call = Some((left, begin, end));
    }

    fn end_thread(&mut self) {
        if self.call.is_some() {
            self.answer(i64::MAX);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::semantics::CallKind;
    use super::*;

    /// A call from 0 to 1,000 whose partner did its part at `since`.
    fn of(since: i64) -> Unexplained {
        let condition = Condition {
            line: 0,
            entered: 0,
            left: 1_000,
            fulfilled: since,
            partner: 1,
            bound: 0,
            state: State::LateSender,
            call: CallKind::All,
            function: 0,
            number: 0,
            may_be_eager: false,
        };
        Unexplained { partner: 1, since, condition }
    }

    #[test]
    fn call_that_ends_when_its_partner_enters_mpi_waited_for_progress() {
        let found = |since, last| {
            late_progress(&of(since), last, 100).map(|found| (found.fulfilled, found.state))
        };
        assert_eq!(found(0, (-50, 950)), Some((950, State::LateProgress)));
        assert_eq!(found(0, (i64::MIN, 950)), Some((950, State::LateProgress)));
        // Most of the wait is for a late sender, which then went on computing.
        assert_eq!(found(600, (610, 950)), Some((950, State::LateSender)));
        // The partner left MPI long after its part, or the call outlasted the entry by much.
        assert_eq!(found(0, (500, 950)), None);
        assert_eq!(found(0, (0, 700)), None);
        // Too short; and the partner was inside MPI at the end.
        assert_eq!(found(900, (901, 990)), None);
        assert_eq!(found(0, (990, 1_000)), None);
    }
}
