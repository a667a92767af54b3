//! Finds out together with the watchers of other hosts which rank died first.

use std::thread;
use std::time::{Duration, Instant};

use super::first_death::{Closing, OnClock, Unsure, candidates};
use super::hosts::Hosts;
use super::run::LiveRun;

/// How long it may take to find out; those that do not judge wait longer.
const PATIENCE: Duration = Duration::from_secs(2);
const LONGER: Duration = Duration::from_millis(1500);
/// Time between two messages of a watcher, for each of them: all together burden the file system as two do.
const ROUND: Duration = Duration::from_millis(2);
const RARELY: Duration = Duration::from_millis(500);

/// What was found out.
#[derive(Debug, Clone, PartialEq)]
pub enum FirstDeath {
    /// This rank died before all others.
    Rank(u32),
    /// Nobody knows.
    Unsure(Unsure),
    /// Another watcher has told it.
    Told,
    /// It was none.
    None,
}

/// Compares the deaths on all hosts, after one on this host or another. `own`: the first here, if that shows in nothing
/// but its windows.
pub fn first_death(run: &mut LiveRun, hosts: &mut Hosts, own: Option<u32>) -> FirstDeath {
    let mut elsewhere: Vec<String> = run.elsewhere().map(str::to_owned).collect();
    elsewhere.sort();
    elsewhere.dedup();
    compare(hosts, &elsewhere, PATIENCE, || run.look_for_deaths(own))
}

/// `look` returns the first death here, and up to when it is known.
fn compare(
    hosts: &mut Hosts,
    elsewhere: &[String],
    patience: Duration,
    mut look: impl FnMut() -> (Option<Closing>, Instant),
) -> FirstDeath {
    let begin = Instant::now();
    loop {
        let (closing, known_to) = look();
        hosts.compare_deaths(closing, known_to);
        if hosts.have_told_death() {
            return FirstDeath::Told;
        }
        let deaths = hosts.deaths();
        if deaths.iter().all(|of| of.death.is_none()) {
            return FirstDeath::None;
        }
        let unheard = elsewhere.iter().filter(|host| !hosts.has_heard_of(host)).cloned();
        let unheard: Vec<String> = unheard.collect();
        if let Some([first]) = candidates(&deaths).as_deref()
            && first.is_over
            && unheard.is_empty()
            && hosts.is_judge()
        {
            return FirstDeath::Rank(first.rank);
        }
        let patience = if hosts.is_judge() { patience } else { patience + LONGER };
        // Where nobody watches the other hosts, nobody answers.
        if begin.elapsed() >= patience || hosts.count() == 1 {
            return FirstDeath::Unsure(unsure(&deaths, unheard));
        }
        thread::sleep((ROUND * hosts.count()).min(RARELY));
    }
}

/// Those that may have died first, as far as deaths are known.
fn unsure(deaths: &[OnClock], hosts: Vec<String>) -> Unsure {
    let known: Vec<OnClock> = deaths.iter().copied().filter(|of| of.death.is_some()).collect();
    let first = candidates(&known).unwrap_or_default();
    let mut ranks: Vec<u32> = first.iter().map(|death| death.rank).collect();
    ranks.sort_unstable();
    Unsure { ranks, hosts }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::trace::snapshot::Reason;

    /// What the watchers of two hosts, whose clocks are an hour apart, find out of a death on each: its rank and how many
    /// seconds ago it was.
    fn find_out(
        run: &Path,
        deaths: [Option<(u32, u64)>; 2],
        patience: Duration,
    ) -> [FirstDeath; 2] {
        let now = Instant::now();
        let watcher = |(number, death): (usize, Option<(u32, u64)>)| {
            let mut hosts = Hosts::of(run);
            hosts.pretend(["a", "b"][number], Duration::from_secs(3600 * number as u64));
            let elsewhere = ["a".to_owned(), "b".to_owned()];
            hosts.greet(death.is_some());
            let found = compare(&mut hosts, &elsewhere, patience, || {
                let closing = death.map(|(rank, ago_s)| {
                    let at = now - Duration::from_secs(ago_s);
                    Closing { rank, after: Some(at), before: at, is_over: true }
                });
                (closing, Instant::now())
            });
            if let FirstDeath::Rank(rank) = found {
                hosts.ask(Reason::Dead, Some(rank));
            }
            found
        };
        thread::scope(|scope| {
            let watchers =
                [0, 1].map(|number| scope.spawn(move || watcher((number, deaths[number]))));
            watchers.map(|watcher| watcher.join().unwrap())
        })
    }

    /// Machines may stall for seconds between two messages.
    #[test]
    fn first_death_is_found_whatever_the_clocks_say() {
        const LONG: Duration = Duration::from_secs(60);
        for (deaths, first) in [
            ([Some((0, 40)), Some((4, 10))], 0),
            ([Some((0, 10)), Some((4, 40))], 4),
            ([None, Some((4, 10))], 4),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let found = find_out(folder.path(), deaths, LONG);
            assert_eq!(found, [FirstDeath::Rank(first), FirstDeath::Told], "{deaths:?}");
        }
    }

    #[test]
    fn nobody_is_named_if_both_died_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let [judge, _] = find_out(folder.path(), [Some((0, 10)), Some((4, 10))], PATIENCE);
        assert_eq!(judge, FirstDeath::Unsure(Unsure { ranks: vec![0, 4], hosts: vec![] }));
    }

    #[test]
    fn nobody_is_named_where_a_host_is_not_watched() {
        let folder = tempfile::tempdir().unwrap();
        let now = Instant::now();
        let closing = Closing { rank: 2, after: Some(now), before: now, is_over: true };
        let look = || (Some(closing), Instant::now());
        let found = compare(&mut Hosts::of(folder.path()), &["other".into()], PATIENCE, look);
        let unsure = Unsure { ranks: vec![2], hosts: vec!["other".into()] };
        assert_eq!(found, FirstDeath::Unsure(unsure));
    }
}
