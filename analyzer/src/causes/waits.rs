//! Wait states: turns the conditions of a call into the stretch in which it waited, and its culprit (CAUSES,
//! section 1).

use std::cmp::Reverse;

use rayon::prelude::*;

use super::State;
use super::conditions::{Condition, Found, Gathering, PollRun};
use super::lines::Lines;
use super::manners::CallKind;

/// No line: the culprit is not known.
pub const NOBODY: u32 = u32::MAX;

/// A stretch in which a call did nothing but wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wait {
    /// Who waits.
    pub line: u32,
    /// When it began to.
    pub begin: i64,
    /// When what it waited for happened (t*), inside the call; `begin` and `ticks` behind it except in
    /// polls, where only part of the time was spent inside MPI.
    pub until: i64,
    /// How long it waited.
    pub ticks: i64,
    /// When it left the call.
    pub left: i64,
    /// The line that it waited for, or [`NOBODY`].
    pub culprit: u32,
    /// When the culprit entered the call that ended the wait (A).
    pub fulfilled: i64,
    /// What kind of wait.
    pub state: State,
    /// The waiting call's function on its rank.
    pub function: u16,
}

impl Wait {
    /// Whether somebody is known to have been late.
    pub fn has_culprit(&self) -> bool {
        self.culprit != NOBODY
    }
}

/// The waits of a run, and where its lines met.
#[derive(Debug, Default)]
pub(super) struct Waits {
    /// By line, on each in order of time.
    pub all: Vec<Wait>,
    /// The first of each line, and one behind the last.
    pub first: Vec<usize>,
    pub gatherings: Vec<Gathering>,
    /// Waits that are shorter than the clocks may be wrong: ticks.
    pub uncertain: i64,
}

impl Waits {
    /// From what matching found; `open` are the lines whose last call did not return, with its begin and
    /// function.
    pub fn new(found: Found, lines: &Lines, open: &[(u32, i64, u16)], whole: (i64, i64)) -> Self {
        let Found { mut conditions, gatherings, mut polls, .. } = found;
        conditions.par_sort_unstable_by_key(|c| {
            (c.line, c.entered, c.left, Reverse(c.fulfilled), c.partner)
        });
        polls.sort_unstable_by_key(|poll| (poll.line, poll.begin));
        let mut waits = Self { gatherings, ..Self::default() };
        let mut served = vec![None; polls.len()];
        for call in
            conditions.chunk_by(|a, b| (a.line, a.entered, a.left) == (b.line, b.entered, b.left))
        {
            waits.of_call(call, (&polls, &mut served));
        }
        waits.of_polls(&polls, &served);
        waits.at_the_ends(lines, open, whole);
        waits.all.par_sort_unstable_by_key(|wait| (wait.line, wait.until, wait.begin));
        let behind = |line: usize| waits.all.partition_point(|wait| (wait.line as usize) < line);
        waits.first = (0..=lines.all.len()).map(behind).collect();
        waits
    }

    /// Those of a line.
    pub fn of(&self, line: u32) -> &[Wait] {
        let line = line as usize;
        &self.all[self.first[line]..self.first[line + 1]]
    }

    /// The wait of one call; its conditions come by the latest first.
    fn of_call(&mut self, conditions: &[Condition], polls: (&[PollRun], &mut [Option<Condition>])) {
        // What may have been sent at once counts where it explains the call's end better than what is certain.
        let certain = conditions.iter().filter(|c| !c.may_be_eager && c.fulfilled > c.entered);
        let certain = certain.map(|c| c.fulfilled).max();
        let counts = |c: &&Condition| {
            let explains = |other| c.left - c.fulfilled <= c.fulfilled - other;
            !c.may_be_eager || certain.is_none_or(explains)
        };
        let needs_all = conditions[0].call == CallKind::All;
        let mut counting = conditions.iter().filter(counts);
        let decisive = match needs_all {
            true => counting.next(),
            false => counting.min_by_key(|c| (c.fulfilled, c.partner)),
        };
        let Some(condition) = decisive else { return };
        if condition.call == CallKind::Poll {
            serve(condition, polls);
        }
        let until = condition.fulfilled.clamp(condition.entered, condition.left);
        self.take(
            condition,
            (condition.entered, condition.left),
            (until, until - condition.entered),
        );
    }

    /// Takes a wait that is longer than the clocks may be wrong.
    fn take(
        &mut self,
        condition: &Condition,
        (begin, left): (i64, i64),
        (until, ticks): (i64, i64),
    ) {
        if ticks <= 0 {
            return;
        }
        if ticks < condition.bound {
            self.uncertain += ticks;
            return;
        }
        self.all.push(Wait {
            line: condition.line,
            begin,
            until,
            ticks,
            left,
            culprit: condition.partner,
            fulfilled: condition.fulfilled,
            state: condition.state,
            function: condition.function,
        });
    }

    /// Runs of polls: what ended them tells for whom they waited.
    fn of_polls(&mut self, polls: &[PollRun], served: &[Option<Condition>]) {
        for (run, served) in polls.iter().zip(served) {
            let PollRun { begin, end, inside, .. } = *run;
            let Some(condition) = served else {
                if inside > 0 {
                    self.all.push(Wait {
                        line: run.line,
                        begin,
                        until: begin + inside,
                        ticks: inside,
                        left: end,
                        culprit: NOBODY,
                        fulfilled: begin + inside,
                        state: State::Polling,
                        function: run.function,
                    });
                }
                continue;
            };
            let span = (end - begin).max(1);
            let until = condition.fulfilled.clamp(begin, end);
            let ticks = i128::from(inside) * i128::from(until - begin) / i128::from(span);
            self.take(condition, (begin, end), (until, ticks as i64));
        }
    }

    /// Before a rank's begin, behind its end, and in calls that did not return.
    fn at_the_ends(&mut self, lines: &Lines, open: &[(u32, i64, u16)], (begin, end): (i64, i64)) {
        let nobody = |line, from: i64, to: i64, state, function| Wait {
            line,
            begin: from,
            until: to,
            ticks: to - from,
            left: to,
            culprit: NOBODY,
            fulfilled: to,
            state,
            function,
        };
        let first_threads = || (0u32..).zip(&lines.all).filter(|(_, line)| line.thread == 0);
        let last = first_threads().find(|(_, line)| line.end == end);
        for (number, line) in first_threads() {
            if line.begin > begin {
                self.all.push(nobody(number, begin, line.begin, State::StartSkew, 0));
            }
            let open = open.iter().find(|(open, ..)| *open == number);
            if let (Some((last, _)), true, None) = (last, line.end < end, open) {
                let wait = nobody(number, line.end, end, State::WaitAtFinalize, 0);
                self.all.push(Wait { culprit: last, ..wait });
            }
        }
        for &(number, from, function) in open {
            let to = lines.all[number as usize].end;
            if to > from {
                self.all.push(nobody(number, from, to, State::OpenAtEnd, function));
            }
        }
    }
}

/// Slots of a run of polls; one more may be the recorder's own.
const POLL_SLOTS: u32 = 2;
const OWN_SLOTS: u32 = 1;

/// Gives the run of polls that a successful one ended to that: the last one of its function before it, with no
/// other calls but polls between. Where there are others the program went on without waiting for it.
fn serve(success: &Condition, (polls, served): (&[PollRun], &mut [Option<Condition>])) {
    let key = (success.line, success.entered);
    let behind = polls.partition_point(|poll| (poll.line, poll.begin) < key);
    let mut next = success.number;
    for at in (0..behind).rev() {
        let poll = &polls[at];
        let ahead = next.wrapping_sub(poll.number);
        if poll.line != success.line || ahead > POLL_SLOTS + OWN_SLOTS || served[at].is_some() {
            return;
        }
        if poll.function == success.function {
            served[at] = Some(*success);
            return;
        }
        next = poll.number;
    }
}
