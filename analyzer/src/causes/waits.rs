//! Wait states: turns the conditions of a call into the stretch in which it waited, and its
//! delaying rank. docs/causes.md defines the states.

use std::cmp::Reverse;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::lines::{EndBounds, Lines};
use super::matched_conditions::{CollectiveSync, Condition, MatchedConditions, PollRun};
use super::states::State;
use super::wait::{DELAYED_BY_UNKNOWN, Wait};

/// A line's entries into calls that ended waits, with the numbers of these waits, ascending.
pub(super) type Ended = Vec<(i64, u32)>;

/// The waits of a run, and its collective synchronisations.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Waits {
    /// Number of the first one here in the whole run, if these are the waits of some lines alone.
    before: u32,
    /// By line, and by time within a line.
    pub all: Vec<Wait>,
    /// First wait of each line; one more entry ends the last line.
    pub first: Vec<usize>,
    #[serde(skip)]
    pub collective_syncs: Vec<CollectiveSync>,
    /// Ticks of waits shorter than the clock error.
    pub uncertain: i64,
    /// Ticks of waits of a rank's thread for another of its threads.
    pub for_own_threads: i64,
}

impl Waits {
    /// The waits that follow from what matching found. `open` lists the lines whose last call did
    /// not return, with its begin and function.
    pub fn new(
        (mut conditions, found): (Vec<Condition>, MatchedConditions),
        (lines, bounds): (&Lines, &EndBounds),
        open: &[(u32, i64, u16)],
        whole: (i64, i64),
    ) -> Self {
        let MatchedConditions { collective_syncs, mut polls, .. } = found;
        // A call may send to and receive from the same call of its partner.
        conditions.par_sort_unstable_by_key(|c| {
            let of_call = (c.line, c.entered, c.left);
            (of_call, Reverse(c.fulfilled), c.partner, c.state, c.may_be_eager)
        });
        polls.sort_unstable_by_key(|poll| (poll.line, poll.begin));
        let mut waits = Self { collective_syncs, ..Self::default() };
        let mut ended_by = vec![None; polls.len()];
        for call in
            conditions.chunk_by(|a, b| (a.line, a.entered, a.left) == (b.line, b.entered, b.left))
        {
            waits.of_call(call, lines, (&polls, &mut ended_by));
        }
        // As large as the waits.
        drop(conditions);
        waits.of_polls(&polls, lines, &ended_by);
        waits.at_the_ends((lines, bounds), open, whole);
        // Those of calls are in order already, and a stable sort merges the few others into them.
        waits.all.sort_by_key(|wait| (wait.line, wait.until, wait.begin));
        let first_of = |line: usize| waits.all.partition_point(|wait| (wait.line as usize) < line);
        waits.first = (0..=lines.all.len()).map(first_of).collect();
        waits
    }

    /// The waits of consecutive lines, for the process that reads these.
    pub fn part(&self, lines: std::ops::Range<usize>) -> Self {
        let (from, to) = (self.first[lines.start], self.first[lines.end]);
        let first = self.first.iter().map(|first| (*first).clamp(from, to) - from).collect();
        Self { before: from as u32, all: self.all[from..to].to_vec(), first, ..Self::default() }
    }

    /// Number of the first wait of a line.
    pub fn first_of(&self, line: u32) -> u32 {
        self.before + self.first[line as usize] as u32
    }

    pub fn on_line(&self, line: u32) -> &[Wait] {
        let line = line as usize;
        &self.all[self.first[line]..self.first[line + 1]]
    }

    /// By line its entries into calls that ended waits, with the numbers of these waits, ascending.
    pub fn ended(&self) -> Vec<Ended> {
        let lines = self.first.len().saturating_sub(1);
        let mut counts = vec![0; lines];
        let delayed = || (0u32..).zip(&self.all).filter(|(_, wait)| wait.has_delaying_rank());
        delayed().for_each(|(_, wait)| counts[wait.delayed_by as usize] += 1);
        let mut ended: Vec<Ended> = counts.into_iter().map(Vec::with_capacity).collect();
        for (number, wait) in delayed() {
            ended[wait.delayed_by as usize].push((wait.fulfilled, number));
        }
        // The stable sort merges ascending runs: one of each line that waited.
        ended.par_iter_mut().for_each(|of_line| of_line.sort());
        ended
    }

    /// Adds the wait of one call, whose conditions are ordered latest first.
    fn of_call(
        &mut self,
        conditions: &[Condition],
        lines: &Lines,
        polls: (&[PollRun], &mut [Option<Condition>]),
    ) {
        // A send that may have been eager counts if it explains the end of the call better than the
        // certain conditions.
        let certain = conditions.iter().filter(|c| !c.may_be_eager && c.fulfilled > c.entered);
        let certain = certain.map(|c| c.fulfilled).max();
        let counts = |c: &&Condition| {
            let explains = |other| c.left - c.fulfilled <= c.fulfilled - other;
            !c.may_be_eager || certain.is_none_or(explains)
        };
        let mut counting = conditions.iter().filter(counts);
        let decisive = match conditions[0].call.needs_all() {
            true => counting.next(),
            false => counting.min_by_key(|c| (c.fulfilled, c.partner)),
        };
        let Some(condition) = decisive else { return };
        if condition.call.may_end_polls() {
            attribute_polls(condition, polls);
        }
        let until = condition.fulfilled.clamp(condition.entered, condition.left);
        self.add(
            (condition, lines),
            (condition.entered, condition.left),
            (until, until - condition.entered),
        );
    }

    /// Adds a wait, unless it is shorter than the clock error, or for a thread of the same rank:
    /// for that one, no rank was late.
    fn add(
        &mut self,
        (condition, lines): (&Condition, &Lines),
        (begin, left): (i64, i64),
        (until, ticks): (i64, i64),
    ) {
        if ticks <= 0 {
            return;
        }
        let position = |line: u32| lines.all[line as usize].position;
        if condition.line == condition.partner {
            return;
        }
        if position(condition.line) == position(condition.partner) {
            self.for_own_threads += ticks;
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
            delayed_by: condition.partner,
            fulfilled: condition.fulfilled,
            state: condition.state,
            function: condition.function,
        });
    }

    /// Adds the waits of runs of polls, which waited for what ended them.
    fn of_polls(&mut self, polls: &[PollRun], lines: &Lines, ended_by: &[Option<Condition>]) {
        for (run, ended_by) in polls.iter().zip(ended_by) {
            let PollRun { begin, end, inside, .. } = *run;
            let Some(condition) = ended_by else {
                if inside > 0 {
                    self.all.push(Wait {
                        line: run.line,
                        begin,
                        until: begin + inside,
                        ticks: inside,
                        left: end,
                        delayed_by: DELAYED_BY_UNKNOWN,
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
            self.add((condition, lines), (begin, end), (until, ticks as i64));
        }
    }

    /// Adds waits before a rank's begin, after its end, and in calls that did not return.
    fn at_the_ends(
        &mut self,
        (lines, bounds): (&Lines, &EndBounds),
        open: &[(u32, i64, u16)],
        (begin, end): (i64, i64),
    ) {
        let of_nobody = |line, from: i64, to: i64, state, function| Wait {
            line,
            begin: from,
            until: to,
            ticks: to - from,
            left: to,
            delayed_by: DELAYED_BY_UNKNOWN,
            fulfilled: to,
            state,
            function,
        };
        let first_threads = || (0u32..).zip(&lines.all).filter(|(_, line)| line.thread == 0);
        let last = first_threads().find(|(_, line)| line.end == end);
        for (number, line) in first_threads() {
            let [begin_bound, end_bound] = bounds[line.position];
            let skew = line.begin - begin;
            match skew < begin_bound {
                true => self.uncertain += skew,
                false if skew == 0 => {}
                false => self.all.push(of_nobody(number, begin, line.begin, State::StartSkew, 0)),
            }
            let open = open.iter().find(|(open, ..)| *open == number);
            let waits = line.finalizes && line.end < end;
            if let (Some((last, _)), true, None) = (last, waits, open) {
                if end - line.end < end_bound {
                    self.uncertain += end - line.end;
                    continue;
                }
                let wait = of_nobody(number, line.end, end, State::WaitAtFinalize, 0);
                self.all.push(Wait { delayed_by: last, ..wait });
            }
        }
        for &(number, from, function) in open {
            let to = lines.all[number as usize].end;
            if to > from {
                self.all.push(of_nobody(number, from, to, State::OpenAtEnd, function));
            }
        }
    }
}

/// Slots of a run of polls, and slots of the recorder that may follow.
const POLL_SLOTS: u32 = 2;
const OWN_SLOTS: u32 = 1;

/// Attributes a run of polls to the successful poll that ended it: the last run of the same
/// function before it, with only polls in between. If other calls lie in between, the program went
/// on without waiting.
fn attribute_polls(success: &Condition, (polls, ended_by): (&[PollRun], &mut [Option<Condition>])) {
    let key = (success.line, success.entered);
    let before = polls.partition_point(|poll| (poll.line, poll.begin) < key);
    let mut next = success.number;
    for at in (0..before).rev() {
        let poll = &polls[at];
        let ahead = next.wrapping_sub(poll.number);
        if poll.line != success.line || ahead > POLL_SLOTS + OWN_SLOTS || ended_by[at].is_some() {
            return;
        }
        if poll.function == success.function {
            ended_by[at] = Some(*success);
            return;
        }
        next = poll.number;
    }
}
