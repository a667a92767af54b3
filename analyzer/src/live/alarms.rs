//! What somebody should look at in a run that is going on.

use super::moment::{Moment, RankNow};
use super::rank::RankState;
use super::waiting::Waiting;
use crate::trace::snapshot::Reason;

/// What somebody should look at.
#[derive(Debug, Clone, PartialEq)]
pub struct Alarm {
    pub kind: Reason,
    /// The rank that it is about; `None` if unknown.
    pub rank: Option<u32>,
    /// Since when, on the clock of the moment; `None` if unknown.
    pub since_s: Option<f64>,
}

/// How many times longer than ever before ranks wait for some that are outside MPI before that counts as a hang: these may
/// read input, write a checkpoint or compute alone.
const TIMES_LONGER: f64 = 3.0;

/// Watches a run for alarms, from one moment to the next.
#[derive(Debug)]
pub struct Alarms {
    /// After so many seconds without progress there is an alarm.
    patience_s: f64,
    /// When a rank last began or ended a call, by the counter and on the clock of the moments.
    moved: u64,
    moved_s: f64,
    /// How long of the time since then the run cannot be blamed for: nobody looked, or all ranks were stopped.
    excused_s: f64,
    /// Whether some wait for others outside MPI since then, and the longest time that they did before.
    waits_outside: bool,
    longest_s: f64,
    looked_s: Option<f64>,
    /// Ranks that were stopped at the last moment.
    stopped: Vec<u32>,
}

/// If nobody looked for so many seconds, the whole host may have been stopped.
const LATE_S: f64 = 5.0;

impl Alarms {
    /// Without progress for so many seconds there is an alarm.
    pub fn after(patience_s: f64) -> Self {
        Self {
            patience_s,
            moved: 0,
            moved_s: 0.0,
            excused_s: 0.0,
            waits_outside: false,
            longest_s: 0.0,
            looked_s: None,
            stopped: Vec::new(),
        }
    }

    /// When a rank last began or ended a call, by the counter.
    pub fn moved(&self) -> u64 {
        self.moved
    }

    /// The alarms at a moment, the gravest first. `waiting` is what is known of who waits for whom.
    pub fn look(&mut self, moment: &Moment, waiting: Option<&Waiting>) -> Vec<Alarm> {
        let Moment { at_s, ranks, .. } = moment;
        let alive: Vec<&RankNow> = ranks.iter().filter(|of| !has_ended(of)).collect();
        let all_stopped =
            !alive.is_empty() && alive.iter().all(|of| of.state == RankState::Stopped);
        let mut alarms = dead(ranks);
        // Ranks of a suspended job are stopped one after the other.
        let stopped = |of: &&&RankNow| of.state == RankState::Stopped && !all_stopped;
        let before = std::mem::take(&mut self.stopped);
        self.stopped = alive.iter().filter(stopped).map(|of| of.rank).collect();
        let now = alive.iter().filter(stopped).filter(|of| before.contains(&of.rank));
        alarms.extend(now.map(|of| alarm_of(Reason::Stopped, of)));
        alarms.extend(deadlocks(ranks, waiting));
        let still = self.note_progress(*at_s, &alive, all_stopped);
        if alarms.is_empty() {
            alarms.extend(still.filter(|_| !all_stopped).map(|kind| {
                let outside: Vec<u32> =
                    alive.iter().filter(|of| of.call.is_none()).map(|of| of.rank).collect();
                let rank = match outside[..] {
                    [one] => Some(one),
                    _ => waiting.and_then(|waiting| waiting.cause),
                };
                Alarm { kind, rank, since_s: Some(self.moved_s) }
            }));
        }
        alarms
    }

    /// Notes when a rank began or ended a call. Returns what it means if that is long ago.
    fn note_progress(
        &mut self,
        at_s: f64,
        alive: &[&RankNow],
        all_stopped: bool,
    ) -> Option<Reason> {
        let since_last_s = at_s - self.looked_s.replace(at_s).unwrap_or(at_s);
        if since_last_s > LATE_S || all_stopped {
            self.excused_s += since_last_s;
        }
        let moved_s = alive.iter().filter_map(|of| of.since_s).fold(0.0, f64::max);
        let moved = alive.iter().filter_map(|of| of.since).max().unwrap_or(0);
        if moved > self.moved {
            if self.waits_outside {
                self.longest_s = self.longest_s.max(moved_s - self.moved_s);
            }
            (self.moved, self.excused_s) = (moved, 0.0);
        }
        self.moved_s = moved_s;
        let inside = alive.iter().filter(|of| of.call.is_some()).count();
        self.waits_outside = inside > 0 && inside < alive.len();
        let still_s = at_s - self.moved_s - self.excused_s;
        if inside == 0 || still_s <= self.patience_s {
            return None;
        }
        match self.waits_outside {
            false => Some(Reason::NoProgress),
            true if still_s > TIMES_LONGER * self.longest_s => Some(Reason::Outside),
            true => None,
        }
    }
}

fn has_ended(of: &RankNow) -> bool {
    matches!(of.state, RankState::Dead | RankState::Finished)
}

fn alarm_of(kind: Reason, of: &RankNow) -> Alarm {
    Alarm { kind, rank: Some(of.rank), since_s: of.since_s }
}

/// The ranks that died, the likely culprit first: outside MPI it did not die because others did.
fn dead(ranks: &[RankNow]) -> Vec<Alarm> {
    let dead = ranks.iter().filter(|of| of.state == RankState::Dead);
    let mut dead: Vec<&RankNow> = dead.collect();
    dead.sort_by_key(|of| of.call.is_some());
    dead.into_iter().map(|of| alarm_of(Reason::Dead, of)).collect()
}

fn deadlocks(ranks: &[RankNow], waiting: Option<&Waiting>) -> Vec<Alarm> {
    let since_s = |rank: &u32| ranks.iter().find(|of| of.rank == *rank)?.since_s;
    // All of them still have to be inside.
    let is_inside = |rank: &u32| ranks.iter().any(|of| of.rank == *rank && of.waits_for.is_some());
    let found = waiting.iter().flat_map(|waiting| &waiting.deadlocks);
    let found = found.filter(|cycle| cycle.iter().all(is_inside)).map(|cycle| Alarm {
        kind: Reason::Deadlock,
        rank: cycle.iter().min().copied(),
        since_s: cycle.iter().filter_map(since_s).max_by(f64::total_cmp),
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE_S: f64 = 10.0;

    /// Ranks inside a call (`true`) or outside, each since a moment.
    fn moment(at_s: f64, ranks: &[(bool, f64)]) -> Moment {
        let rank = |(number, (inside, since_s)): (usize, &(bool, f64))| RankNow {
            rank: number as u32,
            state: if *inside { RankState::InMpi } else { RankState::Computing },
            call: inside.then(|| "MPI_Recv".to_owned()),
            since_s: Some(*since_s),
            since: Some((since_s * 1e9) as u64),
            waits_for: None,
            efficiency: None,
            observed_s: 1.0,
            waits_for_core: None,
        };
        Moment { at_s, is_over: false, ranks: ranks.iter().enumerate().map(rank).collect() }
    }

    fn kinds(alarms: &mut Alarms, moment: &Moment) -> Vec<(Reason, Option<u32>)> {
        alarms.look(moment, None).iter().map(|alarm| (alarm.kind, alarm.rank)).collect()
    }

    #[test]
    fn all_inside_for_long_make_no_progress() {
        let mut alarms = Alarms::after(PATIENCE_S);
        let at = |at_s| moment(at_s, &[(true, 1.0), (true, 2.0)]);
        assert_eq!(kinds(&mut alarms, &at(8.0)), []);
        assert_eq!(kinds(&mut alarms, &at(12.0)), []);
        assert_eq!(kinds(&mut alarms, &at(12.5)), [(Reason::NoProgress, None)]);
    }

    #[test]
    fn ranks_that_all_compute_do_not_hang() {
        let mut alarms = Alarms::after(PATIENCE_S);
        for at_s in 0..100 {
            assert_eq!(kinds(&mut alarms, &moment(at_s.into(), &[(false, 1.0), (false, 2.0)])), []);
        }
    }

    #[test]
    fn wait_for_a_rank_outside_has_to_be_longer_than_ever() {
        let mut alarms = Alarms::after(PATIENCE_S);
        // Rank 1 reads its input for 20 s.
        for at_s in 0..20 {
            let waits = kinds(&mut alarms, &moment(at_s.into(), &[(true, 0.0), (false, 0.0)]));
            let expected = (at_s > 10).then_some((Reason::Outside, Some(1)));
            assert_eq!(waits, Vec::from_iter(expected), "{at_s}");
        }
        for at_s in 20..=80 {
            assert_eq!(
                kinds(&mut alarms, &moment(at_s.into(), &[(true, 20.0), (false, 20.0)])),
                []
            );
        }
        let later = moment(80.5, &[(true, 20.0), (false, 20.0)]);
        assert_eq!(kinds(&mut alarms, &later), [(Reason::Outside, Some(1))]);
    }

    #[test]
    fn stopped_rank_is_told_unless_all_are() {
        let mut alarms = Alarms::after(PATIENCE_S);
        let stop = |at_s, ranks: &[usize]| {
            let mut moment = moment(at_s, &[(true, 1.0), (true, 1.0)]);
            ranks.iter().for_each(|rank| moment.ranks[*rank].state = RankState::Stopped);
            moment
        };
        assert_eq!(kinds(&mut alarms, &stop(2.0, &[1])), []);
        assert_eq!(kinds(&mut alarms, &stop(2.1, &[1])), [(Reason::Stopped, Some(1))]);
        // The job is suspended for a minute.
        for at_s in [2.2, 4.0, 62.0] {
            assert_eq!(kinds(&mut alarms, &stop(at_s, &[0, 1])), []);
        }
        assert_eq!(kinds(&mut alarms, &stop(63.0, &[])), []);
        assert_eq!(kinds(&mut alarms, &stop(72.0, &[])), [], "it has the time it had before");
    }

    #[test]
    fn nobody_is_blamed_for_time_in_which_nobody_looked() {
        let mut alarms = Alarms::after(PATIENCE_S);
        let at = |at_s| moment(at_s, &[(true, 1.0), (true, 1.0)]);
        assert_eq!(kinds(&mut alarms, &at(2.0)), []);
        assert_eq!(kinds(&mut alarms, &at(1000.0)), []);
        assert_eq!(kinds(&mut alarms, &at(1004.0)), []);
        assert_eq!(kinds(&mut alarms, &at(1008.0)), []);
        assert_eq!(kinds(&mut alarms, &at(1011.0)), [(Reason::NoProgress, None)]);
    }

    #[test]
    fn first_of_the_dead_is_the_one_outside_mpi() {
        let mut alarms = Alarms::after(PATIENCE_S);
        let mut moment = moment(5.0, &[(true, 1.0), (false, 1.0), (true, 1.0)]);
        moment.ranks.iter_mut().for_each(|of| of.state = RankState::Dead);
        let dead = kinds(&mut alarms, &moment);
        assert_eq!(dead[0], (Reason::Dead, Some(1)));
    }
}
