//! On which of several hosts a rank died first, though their clocks are not compared.
//!
//! A message was sent before it was read. So the least time from the clock of its sender to that of its reader bounds by
//! how much the reader's is ahead; a message in the other direction bounds it from below. Between these bounds lies the
//! moment of a death on another host's clock. Only who died first for certain is named.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

/// Clocks of hosts run apart by so much at most.
const DRIFT: f64 = 2e-4;

/// The first rank of a host that let go of its file without having finished, on the clock of its watcher.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Death {
    pub rank: u32,
    /// It did so between these moments.
    pub after_ns: i64,
    pub before_ns: i64,
    /// Whether its process, or one behind it, has ended: until then it may go on without its file.
    pub is_over: bool,
}

/// The same, as the watcher of its host knows it.
#[derive(Debug, Clone, Copy)]
pub struct Closing {
    pub rank: u32,
    /// `None`: it is not known after which moment.
    pub after: Option<Instant>,
    pub before: Instant,
    pub is_over: bool,
}

/// Who may have died first, where that is not certain.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Unsure {
    /// The first of their hosts, of which none is known to have died after another one.
    pub ranks: Vec<u32>,
    /// Hosts of which no watcher was heard.
    pub hosts: Vec<String>,
}

/// By how much a clock is ahead of another one at most.
#[derive(Debug, Clone, Copy)]
pub struct Lead {
    ns: i64,
    at: Instant,
}

impl Lead {
    /// Of a message with its moments on both clocks, which was read at `at`.
    pub fn of(read_ns: i64, sent_ns: i64, at: Instant) -> Self {
        Self { ns: read_ns.saturating_sub(sent_ns), at }
    }

    /// The smaller one of two.
    pub fn or(self, newer: Self) -> Self {
        if newer.ns <= self.ns_at(newer.at) { newer } else { self }
    }

    /// At a later moment.
    pub fn ns_at(self, now: Instant) -> i64 {
        let age: Duration = now.saturating_duration_since(self.at);
        self.ns.saturating_add((age.as_nanos() as f64 * DRIFT).ceil() as i64)
    }
}

/// The first death on a host, on the clock of whoever judges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OnClock {
    /// `None`: up to `after_ns`, there was none.
    pub death: Option<Death>,
    /// It was, or will be, after this moment.
    pub after_ns: i64,
    pub before_ns: i64,
}

impl OnClock {
    /// What one's own watcher knows.
    pub fn own(death: Option<Death>, known_to_ns: i64) -> Self {
        match death {
            Some(Death { after_ns, before_ns, .. }) => Self { death, after_ns, before_ns },
            None => Self { death, after_ns: known_to_ns, before_ns: i64::MAX },
        }
    }

    /// The same of another host, by whose clock it was told: by how much it is ahead of the judge's at most, and that one of
    /// it.
    pub fn seen_from(self, ahead_ns: Option<i64>, behind_ns: i64) -> Self {
        let after_ns = ahead_ns.map_or(i64::MIN, |ns| self.after_ns.saturating_sub(ns));
        Self { after_ns, before_ns: self.before_ns.saturating_add(behind_ns), ..self }
    }
}

/// Who may have died first: all that no other one preceded for certain, each the first on its host. `None` if one of them may
/// be a host of which no death is known.
pub fn candidates(hosts: &[OnClock]) -> Option<Vec<Death>> {
    let first_before = hosts.iter().map(|of| of.before_ns).min()?;
    let may_be_first = hosts.iter().filter(|of| of.after_ns <= first_before);
    may_be_first.map(|of| of.death).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dies(rank: u32, after_ns: i64, before_ns: i64) -> OnClock {
        OnClock::own(Some(Death { rank, after_ns, before_ns, is_over: true }), 0)
    }

    fn ranks(hosts: &[OnClock]) -> Option<Vec<u32>> {
        Some(candidates(hosts)?.iter().map(|death| death.rank).collect())
    }

    #[test]
    fn only_who_died_first_for_certain_is_alone() {
        assert_eq!(ranks(&[dies(0, 10, 12), dies(4, 13, 20)]), Some(vec![0]));
        assert_eq!(ranks(&[dies(0, 10, 14), dies(4, 13, 20)]), Some(vec![0, 4]));
        assert_eq!(ranks(&[dies(0, 10, 14), dies(4, 13, 20), dies(8, 15, 16)]), Some(vec![0, 4]));
        // Another host lives on, or was heard of before the death for the last time.
        assert_eq!(ranks(&[dies(0, 10, 12), OnClock::own(None, 13)]), Some(vec![0]));
        assert_eq!(ranks(&[dies(0, 10, 12), OnClock::own(None, 11)]), None);
        assert_eq!(ranks(&[OnClock::own(None, 11)]), None);
    }

    #[test]
    fn moments_of_another_clock_lie_between_bounds() {
        // Its clock is ahead by 1,000, as messages of 3 and 5 show.
        let other = dies(4, 1013, 1014);
        let seen = other.seen_from(Some(1003), -995);
        assert_eq!((seen.after_ns, seen.before_ns), (10, 19));
        assert_eq!(ranks(&[dies(0, 7, 9), seen]), Some(vec![0]));
        assert_eq!(ranks(&[dies(0, 7, 10), seen]), Some(vec![0, 4]));
        assert_eq!(ranks(&[dies(0, 20, 21), seen]), Some(vec![4]));
        // It has not read a message yet.
        assert_eq!(ranks(&[dies(0, 7, 9), other.seen_from(None, -995)]), Some(vec![0, 4]));
    }

    #[test]
    fn bounds_get_wider_with_time() {
        let begin = Instant::now();
        let at = |s: u64| begin + Duration::from_secs(s);
        let lead = Lead::of(1005, 0, begin);
        assert_eq!((lead.ns_at(begin), lead.ns_at(at(1))), (1005, 201_005));
        let newer = |ns| lead.or(Lead::of(ns, 0, at(1))).ns_at(at(1));
        assert_eq!((newer(300_000), newer(7)), (201_005, 7));
    }
}
