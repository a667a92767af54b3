//! What one rank does while the others wait for it: it accesses files, or is not on a core.
//!
//! Accesses to files are seen where MPI makes them. Others, by POSIX or a library, are outside MPI like computation: what
//! is known of them is that the rank was neither on a core nor waiting for one, whatever it did.

use std::collections::BTreeMap;

use trace_format::meaning::{Class, Meaning};

use crate::causes::{CallSite, Context};
use crate::metrics::{Metrics, RankMetrics};

use super::finding::{Blocked, Finding, MAIN_SHARE, SerialIo};
use super::why::Why;

/// Seconds that a rank must sleep at least: the kernel counts CPU time in ticks of some milliseconds.
pub(super) const ASLEEP_MIN_S: f64 = 0.02;
/// Part of the time that all ranks spend in file accesses from which one rank makes them.
const ONE_RANK: f64 = 0.75;
/// Share of its time in a place that a rank is asleep or blocked at least.
const MOSTLY: f64 = 0.5;

/// A rank that accesses files with MPI while others wait.
pub(super) fn serial_io(why: &Why) -> Option<Finding> {
    let causes = why.causes;
    let file_access = |context: u32| match causes.contexts.get(context) {
        Context::Transfer(site) if Meaning::by_name(&site.function).class == Class::Io => {
            Some(site)
        }
        _ => None,
    };
    let mut charged: BTreeMap<u32, i64> = BTreeMap::new();
    let of_files = causes.charges.causes.iter().filter(|((_, at), _)| file_access(*at).is_some());
    of_files.for_each(|((line, _), cost)| *charged.entry(*line).or_default() += cost.total());
    let (line, cost) = charged.into_iter().max_by_key(|(_, cost)| *cost)?;
    // Nothing else may cause more.
    let others = causes.charges.causes.iter().filter(|((_, at), _)| file_access(*at).is_none());
    let share = cost as f64 / causes.waiting().max(1) as f64;
    if share < MAIN_SHARE || others.map(|(_, other)| other.total()).any(|other| other > cost) {
        return None;
    }
    let (mut all, mut own) = (0, BTreeMap::<u32, i64>::new());
    causes.for_each_sum_of_lines(|of, context, ticks| {
        if file_access(context).is_some() {
            all += ticks;
            if of == line {
                *own.entry(context).or_default() += ticks;
            }
        }
    });
    let ticks = own.values().sum::<i64>();
    let part = ticks as f64 / all.max(1) as f64;
    let (at, _) = own.into_iter().max_by_key(|(_, ticks)| *ticks)?;
    let at: &CallSite = file_access(at)?;
    let of_line = &causes.lines.all[line as usize];
    (part >= ONE_RANK).then(|| {
        Finding::SerialIo(SerialIo {
            rank: of_line.rank,
            thread: of_line.thread,
            seconds: why.seconds(ticks),
            part,
            at: at.clone(),
            cost_s: why.seconds(cost),
            share,
            ranks: causes.ranks(),
        })
    })
}

/// That the rank of this delay is asleep or blocked there for most of the time, in a run whose ranks have one thread
/// each and of which all is explained: the kernel's times are those of whole ranks.
pub(super) fn blocked(why: &Why, metrics: &Metrics, delay: &Finding) -> Option<Finding> {
    let Finding::Delay(delay) = delay else { return None };
    let causes = why.causes;
    let of_rank = |(_, line): &(u32, &crate::causes::Line)| line.rank == delay.rank;
    let mut lines = (0..).zip(&causes.lines.all).filter(of_rank);
    let (line, _) = lines.next()?;
    let is_known = lines.next().is_none() && why.is_of_all() && delay.place.is_computing();
    let rank = metrics.participants().find(|rank| rank.rank == delay.rank)?;
    // What a call of BLAS holds was slept in the stretch around it, too.
    let place = delay.place.outer();
    let mut ticks = 0;
    causes.for_each_sum_of_lines(|of, context, more| {
        if of == line && causes.contexts.get(context).outer() == place {
            ticks += more;
        }
    });
    let seconds = why.seconds(ticks);
    let elsewhere_s = (why.seconds(causes.computing(line)) - seconds).max(0.0);
    let asleep_s = (asleep_s(rank) - elsewhere_s).min(seconds);
    let matters = asleep_s >= ASLEEP_MIN_S && asleep_s >= MOSTLY * seconds;
    (is_known && matters).then(|| {
        Finding::Blocked(Blocked {
            rank: delay.rank,
            place: place.clone(),
            seconds,
            asleep_s,
            cost_s: delay.seconds,
        })
    })
}

/// For how long a rank slept or was blocked, as far as the kernel tells.
pub(super) fn asleep_s(rank: &RankMetrics) -> f64 {
    rank.cpu_time.map_or(0.0, |cpu_time| cpu_time.asleep_s)
}
