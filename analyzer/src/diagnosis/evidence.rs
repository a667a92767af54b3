//! What a diagnosis is made from.

use std::collections::BTreeMap;

use crate::causes::{Causes, State, Unknown};
use crate::metrics::{ComputeMode, Metrics, RankMetrics};
use crate::replay::{NoIdeal, WhatIf};
use crate::timeline::{Ending, GlobalTimeline};
use crate::trace::Run;

use super::why::{NotRecorded, Why};

/// Share of all time in calls that never returned above which the rest of the run is not judged.
const STUCK_SHARE: f64 = 0.3;

/// What is known of a run.
#[derive(Debug, Clone, Copy)]
pub struct Evidence<'a> {
    pub run: &'a Run,
    pub timeline: &'a GlobalTimeline,
    /// Metrics of the selected part of the run.
    pub metrics: &'a Metrics,
    /// Why ranks waited; `None` unless asked for.
    pub causes: Option<&'a Causes<'a>>,
    /// T₀ of the efficiency tree over τ, of the same part of the run, or why it is unknown.
    pub ideal: Result<f64, NoIdeal>,
    /// The replay of the whole run, which may be too far off for promises; `None` if a part is selected, or the run is
    /// too large or cannot be replayed.
    pub replay: Option<&'a WhatIf<'a>>,
}

/// Why communication is not divided into serialisation and transfer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Undivided {
    /// The time on an ideal network is unknown.
    NoIdeal(NoIdeal),
    /// It is less than a rank computes, or more than was recorded.
    Impossible,
    /// Only a part of the time outside MPI counts as computing, while a replay repeats all of it.
    Mode(ComputeMode),
}

impl<'a> Evidence<'a> {
    /// Evidence without causes of waiting and without a replay.
    pub fn of_metrics(run: &'a Run, timeline: &'a GlobalTimeline, metrics: &'a Metrics) -> Self {
        Self { run, timeline, metrics, causes: None, ideal: Err(NoIdeal::NotAsked), replay: None }
    }

    /// The causes with their context, if there are any.
    pub fn why(&self) -> Option<Why<'a>> {
        let Self { run, timeline, ideal, .. } = *self;
        self.causes.map(|causes| Why { run, timeline, causes, ideal, rank: None })
    }

    /// Why it is not known who waited for whom in most calls, if so.
    pub fn waiting_not_recorded(&self) -> Option<NotRecorded> {
        match self.keeps_mostly_totals() {
            true => Some(NotRecorded::OnlyTotals),
            false => self.why().and_then(|why| why.hides_waits()),
        }
    }

    /// Whether it is not known at all who waited for whom.
    pub fn hides_waiting(&self) -> bool {
        let no_partners = |causes: &Causes| causes.unknown.contains(&Unknown::NoAttributes);
        self.keeps_mostly_totals() || self.causes.is_some_and(no_partners)
    }

    /// Whether nearly all calls are kept only as totals.
    pub fn keeps_mostly_totals(&self) -> bool {
        let totals = self.metrics.totals.as_ref();
        totals.is_some_and(|totals| totals.kept_calls < totals.calls / 10)
    }

    /// Whether efficiency and causes of waiting say nothing about the run: ranks were deadlocked, or calls that
    /// never returned take much of the time.
    pub fn is_stuck(&self) -> bool {
        let Some(unfinished) = &self.metrics.unfinished else { return false };
        let open = self.causes.map_or(0.0, |found| {
            // Of the whole run, whatever is selected.
            let open = found.waits.iter().filter(|wait| wait.state == State::OpenAtEnd);
            let all = found.lines.all.len() as i64 * (found.whole.1 - found.whole.0).max(1);
            open.map(|wait| wait.ticks).sum::<i64>() as f64 / all as f64
        });
        !unfinished.deadlocks.is_empty() || open > STUCK_SHARE
    }

    /// Whether the run finished and was recorded completely.
    pub fn is_complete(&self) -> bool {
        self.is_whole() && self.metrics.unfinished.is_none()
    }

    /// Whether every rank was recorded up to its end.
    pub fn is_whole(&self) -> bool {
        let cut = |rank: &RankMetrics| matches!(rank.ending, Ending::Damaged | Ending::Stopped);
        self.run.missing.is_empty() && !self.metrics.ranks.iter().any(cut)
    }

    /// Serialisation and transfer, whose product is the communication efficiency. `None` without a replay, and if
    /// the replay and the metrics do not count the same time as computing.
    pub fn serialisation_and_transfer(&self) -> Option<(f64, f64)> {
        let is_same = self.metrics.compute == ComputeMode::Outside;
        self.why().filter(|_| is_same)?.serialisation_and_transfer()
    }

    /// Why communication is not divided into serialisation and transfer, if it could have been.
    pub fn undivided(&self) -> Option<Undivided> {
        let why = self.why().filter(|_| self.serialisation_and_transfer().is_none())?;
        match (self.metrics.compute, why.ideal) {
            (ComputeMode::Outside, Ok(_)) => Some(Undivided::Impossible),
            (ComputeMode::Outside, Err(why)) => Some(Undivided::NoIdeal(why)),
            (mode, _) => Some(Undivided::Mode(mode)),
        }
    }

    /// Seconds that each rank waited for others, by rank; `None` if that is not known.
    pub fn waiting_s(&self) -> Option<BTreeMap<u32, f64>> {
        let found = self.causes.filter(|_| !self.hides_waiting())?;
        let takes_part = |at: &usize| found.part.as_ref().is_none_or(|part| part.has(*at));
        let ranks = (0..self.run.ranks.len()).filter(takes_part);
        let ranks = ranks.map(|at| (&self.run.ranks[at], &found.rank_times[at]));
        Some(ranks.map(|(rank, time)| (rank.rank, found.clock.seconds(time.waiting))).collect())
    }

    /// Share of the ranks' time in waiting for others; 0 if that is not known.
    pub fn waiting_share(&self) -> f64 {
        self.causes.map_or(0.0, |found| {
            let all = found.ranks() as f64 * found.elapsed() as f64;
            found.ranks_waited() as f64 / all.max(1.0)
        })
    }
}
