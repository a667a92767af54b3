//! Determines when a rank's elapsed time τ_i begins and ends on its own counter, and why it ends
//! there.

use serde::Serialize;

use crate::trace::RankTrace;

use super::fault::TimeFault;

/// Why a rank's stretch ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum Ending {
    /// The rank entered MPI_Finalize.
    #[serde(rename = "finalize")]
    Finalize,
    /// It did not, and may have died: the stretch ends at the last stamp.
    #[serde(rename = "last stamp")]
    LastStamp,
    /// It did not, but was inside a call, its process is running, or `gammachi run` saw its process end: the stretch ends
    /// at the job's last sign of life, or with the process.
    #[serde(rename = "last sign of life")]
    LastActivity,
    /// Recording stopped before the program ended, because there was no space left.
    #[serde(rename = "stopped")]
    Stopped,
    /// Later events are damaged or missing: the stretch ends at the last valid stamp.
    #[serde(rename = "damaged")]
    Damaged,
}

/// A rank's stretch on its own counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stretch {
    pub begin_ticks: u64,
    pub end_ticks: u64,
    pub ending: Ending,
    begin_recorded: bool,
}

/// Finds a rank's stretch.
///
/// What follows damage is unknown. It must not count as computation, so the stretch ends with the
/// last valid event of the thread that called MPI first. Events are also missing if the rank
/// entered MPI_Finalize but no event records that.
pub(super) fn of_rank(rank: &RankTrace) -> Stretch {
    let facts = &rank.facts;
    let main = rank.main_thread();
    let first = rank.threads.iter().filter_map(|thread| thread.first_ticks).min();
    let init_end = rank.threads.iter().find_map(|thread| thread.init_end_ticks);
    let begin_ticks = facts.begin_ticks.or(init_end).or(first).or(facts.end_ticks).unwrap_or(0);
    let main_last = main.and_then(|thread| thread.last_ticks).unwrap_or(begin_ticks);
    let latest = rank.threads.iter().filter_map(|thread| thread.last_ticks).max();
    let calls_finalize = rank.threads.iter().any(|thread| thread.calls_finalize);
    let main_damaged = main.is_some_and(|thread| thread.damage.is_some());
    let (end_ticks, ending) = match (facts.end_ticks, &facts.stopped) {
        (end, _) if main_damaged => (main_last.min(end.unwrap_or(u64::MAX)), Ending::Damaged),
        (end, Some((stopped, _))) => (end.unwrap_or(u64::MAX).min(*stopped), Ending::Stopped),
        (Some(end), None) if calls_finalize => (end, Ending::Finalize),
        (Some(end), None) => (main_last.min(end), Ending::Damaged),
        (None, None) => (latest.unwrap_or(begin_ticks), Ending::LastStamp),
    };
    Stretch {
        begin_ticks,
        end_ticks: end_ticks.max(begin_ticks),
        ending,
        begin_recorded: facts.begin_ticks.is_some(),
    }
}

/// A rank's stretch from the begin of its process to its end.
///
/// The begin comes from the kernel or another tool; if neither provides it, from the first event.
/// The end is that of the last event; if gammachi recorded the run, that is the return of
/// MPI_Finalize.
pub(super) fn of_process(rank: &RankTrace, ticks_per_s: f64) -> Stretch {
    let inside = of_rank(rank);
    let life = rank.facts.life;
    let first = rank.threads.iter().filter_map(|thread| thread.first_ticks).min();
    let last = rank.threads.iter().filter_map(|thread| thread.last_ticks).max();
    let begin = life.map(|life| {
        let age_ticks = life.age_ns as f64 * 1e-9 * ticks_per_s;
        life.ticks.saturating_sub(age_ticks.round() as u64)
    });
    let begin_ticks = begin.or(first).unwrap_or(inside.begin_ticks).min(inside.begin_ticks);
    let end = life.map(|life| life.end_ticks).filter(|end| *end > 0).or(last);
    let end_ticks = match inside.ending {
        Ending::Finalize | Ending::LastStamp | Ending::LastActivity => {
            end.unwrap_or(inside.end_ticks).max(inside.end_ticks)
        }
        Ending::Stopped | Ending::Damaged => inside.end_ticks,
    };
    Stretch { begin_ticks, end_ticks, ..inside }
}

impl Stretch {
    /// The fault that the stretch shows, if any.
    pub fn fault(&self, rank: &RankTrace) -> Option<TimeFault> {
        if !self.begin_recorded {
            return Some(TimeFault::NoBegin);
        }
        match self.ending {
            Ending::Damaged if rank.facts.end_ticks.is_some() => Some(TimeFault::EventsMissing),
            _ => None,
        }
    }
}
