//! Finds late progress (decision 86): the partner had already done its part, but the message moved
//! only when the partner's rank entered MPI again, because no progress thread of the library moved
//! it.
//!
//! A trace does not show when a message moves. The evidence is that the call returned soon after
//! the partner's rank entered MPI, and that this rank had been outside MPI for almost all of the
//! unexplained time.

use std::cmp::Reverse;

use crate::analysis::segments::Functions;
use crate::analysis::spans::{Activity, Span, SpanKind};
use crate::analysis::{Analysis, CallObserver, RankObserver, RankView, ThreadView};

use super::integer_timeline::IntegerTimeline;
use super::lines::CommonAxis;
use super::matched_conditions::{Condition, Unexplained};
use super::states::State;

/// The partner's stretch outside MPI is at least this many times as long as the unexplained time
/// before it, and as the rest of the call after it.
const MIN_RATIO: i64 = 4;

/// The conditions of calls that ended when the partner's rank entered MPI after at least `least`
/// ticks outside. If the analysis is divided, the calls are given to the first process, and it gets
/// the conditions; each process looks at the partners that are its own.
pub(super) fn conditions(
    analysis: &Analysis,
    axis: CommonAxis,
    mut unexplained: Vec<Unexplained>,
    least: i64,
) -> Vec<Condition> {
    unexplained.sort_unstable_by_key(|of| (of.partner, of.condition.left));
    let processes = &analysis.processes;
    let ranks = processes.share(analysis.own_ranks());
    let part_of = |process: usize| {
        let ranks = &ranks[process];
        let of_process = unexplained.iter().filter(|of| ranks.contains(&of.partner));
        of_process.copied().collect::<Vec<_>>()
    };
    let own = processes.scatter(processes.is_first().then_some(part_of));
    let own = own.unwrap_or_else(|| part_of(0));
    processes.join_at_first(of_own_partners(analysis, axis, &own, least))
}

/// The same for calls whose partners are read here, ordered by partner and end.
fn of_own_partners(
    analysis: &Analysis,
    CommonAxis { clock, lines }: CommonAxis,
    unexplained: &[Unexplained],
    least: i64,
) -> Vec<Condition> {
    if unexplained.is_empty() {
        return Vec::new();
    }
    let mut asked: Vec<&[Unexplained]> = vec![&[]; analysis.run.ranks.len()];
    for of_rank in unexplained.chunk_by(|a, b| a.partner == b.partner) {
        asked[of_rank[0].partner] = of_rank;
    }
    let entries = analysis.calls(&Entries { clock, asked: &asked });
    let asked = asked[analysis.own_ranks()].iter();
    let found = asked.zip(entries).flat_map(|(asked, of_rank)| {
        asked.iter().enumerate().filter_map(move |(at, of)| {
            let calls = of_rank.threads.iter().filter_map(|last| *last.get(at)?);
            let (thread, last) = last_entry(calls)?;
            let partner = lines.number_of(of.partner, thread)?;
            let found = late_progress(of, last, least)?;
            Some(Condition { partner, ..found })
        })
    });
    found.collect()
}

/// A thread's last call that began before some moment.
#[derive(Debug, Clone, Copy)]
struct LastCall {
    thread: u32,
    /// When the thread had left the call before it.
    outside_since: i64,
    entered: i64,
    left: i64,
}

/// The thread that was the last of a rank to enter MPI, given the last call of each; since when all
/// threads had been outside, and when it entered. `None` if another thread was inside MPI then: it
/// could have moved the message.
fn last_entry(calls: impl Iterator<Item = LastCall> + Clone) -> Option<(u32, (i64, i64))> {
    let last = calls.clone().max_by_key(|call| (call.entered, Reverse(call.thread)))?;
    let mut outside_since = last.outside_since;
    for other in calls.filter(|call| call.thread != last.thread) {
        if other.left > last.entered {
            return None;
        }
        outside_since = outside_since.max(other.left);
    }
    Some((last.thread, (outside_since, last.entered)))
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
    clock: &'e IntegerTimeline<'e>,
    /// By the partner's position, ordered by the end of the call.
    asked: &'e [&'e [Unexplained]],
}

struct EntriesOfRank<'e> {
    clock: &'e IntegerTimeline<'e>,
    asked: &'e [Unexplained],
    position: usize,
    functions: Functions,
    /// For each thread that called MPI and each of the calls asked for its last call before their
    /// ends.
    threads: Vec<Vec<Option<LastCall>>>,
    /// The same of the thread that is being read, as far as it is read.
    last: Vec<Option<LastCall>>,
    thread: u32,
    call: Option<LastCall>,
}

impl<'a, 'e> CallObserver<'a> for Entries<'e> {
    type OfRank = EntriesOfRank<'e>;

    fn begin_rank(&self, rank: RankView<'a>) -> EntriesOfRank<'e> {
        EntriesOfRank {
            clock: self.clock,
            asked: self.asked[rank.position],
            position: rank.position,
            functions: Functions::new(rank.trace),
            threads: Vec::new(),
            last: Vec::new(),
            thread: 0,
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
            self.last.push(self.call.filter(|call| call.entered < of.condition.left));
        }
    }
}

impl<'a> RankObserver<'a> for EntriesOfRank<'_> {
    fn begin_thread(&mut self, thread: ThreadView<'a>) {
        self.thread = thread.thread.number;
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
        let (entered, left) = (at(span.begin_ticks), at(span.end_ticks));
        self.answer(entered);
        let outside_since = self.call.map_or(i64::MIN, |call| call.left);
        self.call = Some(LastCall { thread: self.thread, outside_since, entered, left });
    }

    fn end_thread(&mut self) {
        if self.call.is_some() {
            self.answer(i64::MAX);
            self.threads.push(std::mem::take(&mut self.last));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::semantics::CallKind;
    use super::*;

    /// A call from 0 to 1,000 whose partner did its part at `since`.
    fn unexplained(since: i64) -> Unexplained {
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
            late_progress(&unexplained(since), last, 100)
                .map(|found| (found.fulfilled, found.state))
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

    #[test]
    fn progress_is_late_only_if_all_threads_were_outside() {
        let call = |thread, outside_since, entered, left| LastCall {
            thread,
            outside_since,
            entered,
            left,
        };
        let last = |calls: &[LastCall]| last_entry(calls.iter().copied());
        assert_eq!(last(&[]), None);
        assert_eq!(last(&[call(0, 10, 950, 990)]), Some((0, (10, 950))));
        // The second thread left MPI later; then the first entered it.
        let both = [call(0, 10, 950, 990), call(1, 5, 20, 40)];
        assert_eq!(last(&both), Some((0, (40, 950))));
        // It was inside MPI when the first entered it.
        assert_eq!(last(&[call(0, 10, 950, 990), call(1, 5, 20, 960)]), None);
    }
}
