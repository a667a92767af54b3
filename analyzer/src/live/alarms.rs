//! What somebody should look at in a run that is going on.

use std::collections::BTreeMap;

use super::first_death::Unsure;
use super::hosts::{Others, Silent};
use super::moment::{Moment, RankNow};
use super::rank::{CoreUse, RankState};
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
    /// The host that it is about, if that is not heard of.
    pub silent: Option<Silent>,
    /// Who may have died first, if that is not certain.
    pub unsure: Option<Unsure>,
}

impl Alarm {
    pub fn new(kind: Reason, rank: Option<u32>) -> Self {
        Self { kind, rank, since_s: None, silent: None, unsure: None }
    }
}

/// How many times longer than ever before ranks wait for some that are outside MPI before that counts as a hang: these may
/// read input, write a checkpoint or compute alone.
const TIMES_LONGER: f64 = 3.0;
/// So many times longer than others may all ranks be in MPI_Finalize: there they wait for the launcher, too, and nobody
/// sees whether that has a core.
const ENDING_LONGER: f64 = 3.0;

/// Watches a run for alarms, from one moment to the next.
#[derive(Debug)]
pub struct Alarms {
    /// After so many seconds without progress there is an alarm.
    patience_s: f64,
    /// When a rank last began or ended a call, or ended, by the counter and on the clock of the moments.
    moved: u64,
    moved_s: f64,
    /// How long of the time since then the run cannot be blamed for: nobody looked, or all ranks were stopped.
    excused_s: f64,
    /// Whether some wait for others outside MPI since then, and the longest time that they did before.
    waits_outside: bool,
    longest_s: f64,
    looked_s: Option<f64>,
    /// How many ranks had ended at the last moment, and when the last of them did: that is progress, too.
    ended: usize,
    ended_s: f64,
    /// Ranks that are stopped, and since when they have been seen so.
    stopped: BTreeMap<u32, f64>,
    /// How each rank had used the cores when one last moved.
    cores: BTreeMap<u32, CoreUse>,
}

/// On a busy host it may take so many seconds until a job is suspended as a whole.
const SUSPENDING_S: f64 = 1.5;

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
            ended: 0,
            ended_s: f64::NEG_INFINITY,
            stopped: BTreeMap::new(),
            cores: BTreeMap::new(),
        }
    }

    /// When a rank last began or ended a call, by the counter.
    pub fn moved(&self) -> u64 {
        self.moved
    }

    /// The alarms at a moment, the gravest first. `waiting` is what is known of who waits for whom.
    pub fn look(&mut self, moment: &Moment, waiting: Option<&Waiting>) -> Vec<Alarm> {
        self.look_with(moment, waiting, &Others::default())
    }

    /// The same, where ranks of other hosts are known of.
    pub fn look_with(
        &mut self,
        moment: &Moment,
        waiting: Option<&Waiting>,
        others: &Others,
    ) -> Vec<Alarm> {
        let Moment { at_s, ranks, .. } = moment;
        let alive: Vec<&RankNow> = ranks.iter().filter(|of| !of.has_ended()).collect();
        let all_stopped =
            !alive.is_empty() && alive.iter().all(|of| of.state == RankState::Stopped);
        let mut alarms = dead(ranks);
        // Ranks of a suspended job are stopped one after the other.
        let stopped = |of: &&&RankNow| of.state == RankState::Stopped && !all_stopped;
        let before = std::mem::take(&mut self.stopped);
        let since = |of: &&RankNow| (of.rank, before.get(&of.rank).copied().unwrap_or(*at_s));
        self.stopped = alive.iter().filter(stopped).map(since).collect();
        let suspending_s = SUSPENDING_S.min(self.patience_s);
        let is_alone = |of: &&&RankNow| {
            self.stopped.get(&of.rank).is_some_and(|since_s| at_s - since_s >= suspending_s)
        };
        alarms.extend(alive.iter().filter(is_alone).map(|of| alarm_of(Reason::Stopped, of)));
        alarms.extend(deadlocks(ranks, waiting));
        let ended = ranks.len() - alive.len();
        if std::mem::replace(&mut self.ended, ended) < ended {
            self.ended_s = *at_s;
        }
        let still = self.note_progress(moment, &alive, all_stopped, others);
        // A rank that is stopped is told soon, if the job is not being suspended.
        if alarms.is_empty() && self.stopped.is_empty() {
            alarms.extend(still.filter(|_| !all_stopped).map(|kind| {
                let outside = alive.iter().filter(|of| of.call.is_none()).map(|of| of.rank);
                let outside: Vec<u32> = outside.chain(others.outside.iter().copied()).collect();
                let silent = others.silent.clone().filter(|_| kind == Reason::Vanished);
                let rank = match (&silent, &outside[..]) {
                    (Some(silent), _) => silent.ranks.first().copied(),
                    (None, [one]) => Some(*one),
                    _ => waiting.and_then(|waiting| waiting.cause),
                };
                Alarm { since_s: Some(self.moved_s), silent, ..Alarm::new(kind, rank) }
            }));
        }
        alarms
    }

    /// Whether a rank has hardly had a core since one last moved.
    fn is_starved(&self, of: &RankNow, still_s: f64) -> bool {
        let Some(before) = self.cores.get(&of.rank) else { return false };
        let CoreUse { used_s, queued_s, turns } = of.cores;
        used_s - before.used_s < CHANCE_S
            && turns.saturating_sub(before.turns) < CHANCES
            && queued_s - before.queued_s > STARVED * still_s
    }

    /// Notes when a rank began or ended a call. Returns what it means if that is long ago.
    fn note_progress(
        &mut self,
        moment: &Moment,
        alive: &[&RankNow],
        all_stopped: bool,
        others: &Others,
    ) -> Option<Reason> {
        let Moment { at_s, ranks, .. } = moment;
        let at_s = *at_s;
        let since_last_s = at_s - self.looked_s.replace(at_s).unwrap_or(at_s);
        if since_last_s > LATE_S || all_stopped {
            self.excused_s += since_last_s;
        }
        // Those that have ended moved, too.
        let moved_s = moment.moved_s();
        let moved = ranks.iter().filter_map(|of| of.since).max().unwrap_or(0);
        if moved > self.moved {
            if self.waits_outside {
                self.longest_s = self.longest_s.max(moved_s - self.moved_s);
            }
            (self.moved, self.excused_s) = (moved, 0.0);
            self.cores = alive.iter().map(|of| (of.rank, of.cores)).collect();
        }
        self.moved_s = moved_s;
        // MPI_Finalize may wait for a rank that writes results alone. If all are in it, they wait for nobody.
        let all_end = alive.iter().all(|of| of.is_ending())
            && others.inside == 0
            && others.outside.is_empty();
        let waits = |of: &&&RankNow| of.call.is_some() && (all_end || !of.is_ending());
        let inside_here = alive.iter().filter(waits).count();
        let inside = inside_here + others.inside;
        self.waits_outside = inside_here > 0 && alive.iter().any(|of| of.call.is_none())
            || inside > 0 && !others.outside.is_empty();
        let still_s = (at_s - self.moved_s - self.excused_s).min(at_s - self.ended_s);
        let still_s = others.still_s.map_or(still_s, |elsewhere| elsewhere.min(still_s));
        let patience_s = self.patience_s * if all_end { ENDING_LONGER } else { 1.0 };
        if inside == 0 || still_s <= patience_s || others.may_not_judge {
            return None;
        }
        // Others have the cores: it cannot move.
        if alive.iter().any(|of| self.is_starved(of, still_s)) {
            return None;
        }
        if others.silent.is_some() {
            return Some(Reason::Vanished);
        }
        match self.waits_outside {
            false => Some(Reason::NoProgress),
            true if still_s > TIMES_LONGER * self.longest_s => Some(Reason::Outside),
            true => None,
        }
    }
}

/// A rank that had a core for so long, or so often, had its chance, however loaded the host is. (One that yields while it
/// waits has it often, and never for long.)
const CHANCE_S: f64 = 0.1;
const CHANCES: u64 = 100;
/// Share of the time that a rank waits for a core without one.
const STARVED: f64 = 0.5;

fn alarm_of(kind: Reason, of: &RankNow) -> Alarm {
    Alarm { since_s: of.since_s, ..Alarm::new(kind, Some(of.rank)) }
}

/// The ranks that died, the culprit first: the one that let go of its file before the others did. Where that is not known,
/// one outside MPI did not die because others did, and of several, it is the first one to fall silent.
fn dead(ranks: &[RankNow]) -> Vec<Alarm> {
    if ranks.iter().all(|of| of.state != RankState::Dead) {
        return Vec::new();
    }
    // The first may be about to end while others, killed because of it, have ended.
    let is_dead = |of: &&RankNow| {
        of.state == RankState::Dead || of.closed.is_some() && of.state != RankState::Finished
    };
    let mut dead: Vec<&RankNow> = ranks.iter().filter(is_dead).collect();
    dead.sort_by_key(|of| (of.closed.is_none(), of.closed, of.call.is_some(), of.since));
    dead.into_iter().map(|of| alarm_of(Reason::Dead, of)).collect()
}

fn deadlocks(ranks: &[RankNow], waiting: Option<&Waiting>) -> Vec<Alarm> {
    let since_s = |rank: &u32| ranks.iter().find(|of| of.rank == *rank)?.since_s;
    // All of them still have to be inside.
    let is_inside = |rank: &u32| ranks.iter().any(|of| of.rank == *rank && of.waits_for.is_some());
    let found = waiting.iter().flat_map(|waiting| &waiting.deadlocks);
    let found = found.filter(|cycle| cycle.ranks.iter().all(is_inside)).map(|cycle| Alarm {
        since_s: cycle.ranks.iter().filter_map(since_s).max_by(f64::total_cmp),
        ..Alarm::new(Reason::Deadlock, Some(cycle.named))
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
            closed: None,
            waits_for: None,
            efficiency: None,
            observed_s: 1.0,
            waits_for_core: None,
            cores: CoreUse::default(),
        };
        let ranks = ranks.iter().enumerate().map(rank).collect();
        Moment { at_s, is_over: false, ranks, iterations: None }
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

    /// Ranks wait for each other in MPI_Finalize while they end one after the other.
    #[test]
    fn ranks_that_end_in_turn_make_progress() {
        let mut alarms = Alarms::after(PATIENCE_S);
        let at = |at_s: f64, ended: usize| {
            let mut moment = moment(at_s, &[(true, 2.0), (true, 1.0), (true, 1.0)]);
            moment.ranks[..ended].iter_mut().for_each(|of| of.state = RankState::Finished);
            moment
        };
        assert_eq!(kinds(&mut alarms, &at(11.0, 0)), []);
        assert_eq!(kinds(&mut alarms, &at(11.9, 1)), [], "the one that moved last has ended");
        assert_eq!(kinds(&mut alarms, &at(16.0, 1)), []);
        assert_eq!(kinds(&mut alarms, &at(20.0, 2)), []);
        assert_eq!(kinds(&mut alarms, &at(24.5, 2)), []);
        assert_eq!(kinds(&mut alarms, &at(29.0, 2)), []);
        assert_eq!(kinds(&mut alarms, &at(30.5, 2)), [(Reason::NoProgress, None)]);
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
        assert_eq!(
            kinds(&mut alarms, &stop(2.1, &[1])),
            [],
            "the job may be about to be suspended"
        );
        assert_eq!(kinds(&mut alarms, &stop(3.5, &[1])), [(Reason::Stopped, Some(1))]);
        // The job is suspended for a minute.
        for at_s in [3.6, 4.0, 62.0] {
            assert_eq!(kinds(&mut alarms, &stop(at_s, &[0, 1])), []);
        }
        assert_eq!(kinds(&mut alarms, &stop(62.5, &[1])), [], "it is resumed, one after the other");
        assert_eq!(kinds(&mut alarms, &stop(63.0, &[])), []);
        assert_eq!(kinds(&mut alarms, &stop(70.0, &[])), [], "it has the time it had before");
    }

    #[test]
    fn stopped_rank_is_told_rather_than_that_nobody_moves() {
        let mut alarms = Alarms::after(PATIENCE_S);
        let mut moment = moment(2.0, &[(true, 1.0), (true, 1.0)]);
        assert_eq!(kinds(&mut alarms, &moment), []);
        moment.at_s = 6.5;
        assert_eq!(kinds(&mut alarms, &moment), []);
        moment.at_s = 11.5;
        moment.ranks[1].state = RankState::Stopped;
        assert_eq!(kinds(&mut alarms, &moment), []);
        moment.at_s = 13.0;
        assert_eq!(kinds(&mut alarms, &moment), [(Reason::Stopped, Some(1))]);
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
    fn rank_without_a_core_does_not_hang() {
        let mut alarms = Alarms::after(PATIENCE_S);
        let at = |at_s: f64, on_core_s: f64| {
            let mut moment = moment(at_s, &[(true, 1.0), (true, 1.0)]);
            moment.ranks[1].cores = CoreUse { used_s: on_core_s, queued_s: at_s, turns: 7 };
            moment
        };
        assert_eq!(kinds(&mut alarms, &at(2.0, 0.0)), []);
        assert_eq!(kinds(&mut alarms, &at(6.5, 0.01)), []);
        assert_eq!(kinds(&mut alarms, &at(11.5, 0.05)), []);
        assert_eq!(kinds(&mut alarms, &at(12.0, 0.2)), [(Reason::NoProgress, None)]);
    }

    #[test]
    fn ranks_in_finalize_are_not_stuck_while_another_works() {
        let mut alarms = Alarms::after(PATIENCE_S);
        for at_s in (2..100).step_by(4) {
            let mut moment = moment(at_s.into(), &[(true, 1.0), (false, 1.5)]);
            moment.ranks[0].call = Some("MPI_Finalize".to_owned());
            assert_eq!(kinds(&mut alarms, &moment), [], "{at_s}");
        }
    }

    #[test]
    fn ranks_that_are_all_in_finalize_have_longer_time() {
        let mut alarms = Alarms::after(PATIENCE_S);
        let mut at = |at_s| {
            let mut moment = moment(at_s, &[(true, 1.0), (true, 1.5)]);
            moment.ranks.iter_mut().for_each(|of| of.call = Some("MPI_Finalize".to_owned()));
            kinds(&mut alarms, &moment)
        };
        for at_s in [2.0, 6.0, 10.0, 14.0, 18.0, 22.0, 26.0, 30.0, 31.4] {
            assert_eq!(at(at_s), [], "{at_s}");
        }
        assert_eq!(at(31.6), [(Reason::NoProgress, None)]);
    }

    #[test]
    fn ranks_of_other_hosts_count() {
        let at = |at_s| moment(at_s, &[(true, 1.0), (true, 1.0)]);
        let look = |others: &Others| {
            let mut alarms = Alarms::after(PATIENCE_S);
            alarms.look_with(&at(2.0), None, others);
            let found = alarms.look_with(&at(6.0), None, others);
            assert_eq!(found, []);
            let found = alarms.look_with(&at(10.5), None, others);
            assert_eq!(found, []);
            let found = alarms.look_with(&at(15.0), None, others);
            found.iter().map(|alarm| (alarm.kind, alarm.rank)).collect::<Vec<_>>()
        };
        let stands = Others { inside: 1, still_s: Some(12.0), ..Others::default() };
        assert_eq!(look(&stands), [(Reason::NoProgress, None)]);
        let moves = Others { still_s: Some(2.0), ..stands.clone() };
        assert_eq!(look(&moves), []);
        let computes = Others { outside: vec![3], ..stands.clone() };
        assert_eq!(look(&computes), [(Reason::Outside, Some(3))]);
        let elsewhere = Others { may_not_judge: true, ..computes };
        assert_eq!(look(&elsewhere), []);
        let silent = Silent { host: "b".into(), ranks: vec![2, 3], since_s: 9.0 };
        let vanished = Others { silent: Some(silent), ..Others::default() };
        assert_eq!(look(&vanished), [(Reason::Vanished, Some(2))]);
    }

    #[test]
    fn first_of_the_dead_is_the_one_outside_mpi() {
        let mut alarms = Alarms::after(PATIENCE_S);
        let mut moment = moment(5.0, &[(true, 0.5), (false, 1.0), (false, 0.9), (true, 1.0)]);
        moment.ranks.iter_mut().for_each(|of| of.state = RankState::Dead);
        let dead = kinds(&mut alarms, &moment);
        assert_eq!(dead[0], (Reason::Dead, Some(2)));
        moment.ranks.iter_mut().zip([1, 2, 3, 0]).for_each(|(of, closed)| of.closed = Some(closed));
        // It does not count as ended yet.
        moment.ranks[3].state = RankState::InMpi;
        assert_eq!(kinds(&mut alarms, &moment)[0], (Reason::Dead, Some(3)));
    }
}
