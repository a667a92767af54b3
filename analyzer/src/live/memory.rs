//! Ranks whose memory grows without end.
//!
//! Start-up, input and caches grow for a while, too. So a rank counts only if it has grown from reading to reading for
//! [`READINGS`] of them, never by less than half of its mean, and the alarm is about when the host's memory will be used
//! up at this pace, not about growth as such.

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::run::LiveRun;

/// Time between two readings.
const EVERY: Duration = Duration::from_secs(5);
/// Readings between which a rank has to have grown each time.
const READINGS: usize = 12;
/// A rank that has gained less since the first of them does not count, bytes.
const LEAST_GROWTH: f64 = 16e6;
/// One rank is named if it has at least this share of what all of them gain.
const NAMED: f64 = 0.5;

/// Memory that will be used up.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MemoryGrowth {
    /// The rank that gains most of it; `None`: several do.
    pub rank: Option<u32>,
    /// What the growing ranks gain.
    pub bytes_per_s: f64,
    /// What is left on the host, or of the limit of this process's control group.
    pub left_bytes: u64,
}

impl MemoryGrowth {
    /// After how long nothing will be left.
    pub fn lasts_s(&self) -> f64 {
        self.left_bytes as f64 / self.bytes_per_s
    }
}

/// Memory at a moment.
#[derive(Debug)]
struct Reading {
    at: Instant,
    left_bytes: u64,
    /// Bytes of each rank that are in memory and in no file.
    ranks: BTreeMap<u32, u64>,
}

/// Follows the memory of the ranks of this host.
#[derive(Debug)]
pub struct Memory {
    within_s: f64,
    readings: VecDeque<Reading>,
}

impl Memory {
    /// Asks for memory that will be used up in so many seconds.
    pub fn used_up_within(within_s: f64) -> Self {
        Self { within_s, readings: VecDeque::new() }
    }

    /// Reads it, if that was long enough ago.
    pub fn look(&mut self, run: &LiveRun) -> Option<MemoryGrowth> {
        let now = Instant::now();
        if self.readings.back().is_some_and(|last| now.duration_since(last.at) < EVERY) {
            return None;
        }
        let left_bytes = left_bytes()?;
        let ranks = run.ranks().filter_map(|rank| {
            let process = rank.file().fixed.pid;
            Some((rank.rank, anonymous_bytes(process)?))
        });
        let reading = Reading { at: now, left_bytes, ranks: ranks.collect() };
        self.add(reading)
    }

    fn add(&mut self, reading: Reading) -> Option<MemoryGrowth> {
        self.readings.push_back(reading);
        if self.readings.len() > READINGS + 1 {
            self.readings.pop_front();
        }
        let (first, last) = (self.readings.front()?, self.readings.back()?);
        if self.readings.len() <= READINGS {
            return None;
        }
        let seconds = last.at.duration_since(first.at).as_secs_f64();
        let growth = last.ranks.keys().filter_map(|rank| Some((*rank, self.growth(*rank)?)));
        let growth: Vec<(u32, f64)> = growth.collect();
        let all: f64 = growth.iter().map(|(_, bytes)| bytes).sum();
        let most = growth.into_iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
        let found = MemoryGrowth {
            rank: (most.1 >= NAMED * all).then_some(most.0),
            bytes_per_s: all / seconds,
            left_bytes: last.left_bytes,
        };
        (found.lasts_s() <= self.within_s).then_some(found)
    }

    /// Bytes that a rank gained; `None` if it did not grow all the time.
    fn growth(&self, rank: u32) -> Option<f64> {
        let bytes = self.readings.iter().map(|of| of.ranks.get(&rank).map(|bytes| *bytes as f64));
        let bytes: Vec<f64> = bytes.collect::<Option<_>>()?;
        let gained = bytes.last()? - bytes.first()?;
        let least = gained / (bytes.len() - 1) as f64 / 2.0;
        let steadily = bytes.windows(2).all(|two| two[1] - two[0] >= least);
        (gained >= LEAST_GROWTH && steadily).then_some(gained)
    }
}

fn anonymous_bytes(process: u32) -> Option<u64> {
    bytes_in(Path::new(&format!("/proc/{process}/status")), "RssAnon:")
}

/// The value of a line such as `MemAvailable:  1234 kB`.
fn bytes_in(file: &Path, name: &str) -> Option<u64> {
    let text = fs::read_to_string(file).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kib << 10)
}

/// What can still be used here.
fn left_bytes() -> Option<u64> {
    let of_host = bytes_in(Path::new("/proc/meminfo"), "MemAvailable:")?;
    let of_group = control_group().and_then(|group| left_of_group(&group));
    Some(of_group.map_or(of_host, |left| left.min(of_host)))
}

/// The control group of this process (version 2), which a batch system gives to all of a job.
fn control_group() -> Option<PathBuf> {
    let text = fs::read_to_string("/proc/self/cgroup").ok()?;
    let path = text.lines().find_map(|line| line.strip_prefix("0::/"))?;
    Some(Path::new("/sys/fs/cgroup").join(path))
}

/// What is left of the narrowest limit of a group and those that it is in.
fn left_of_group(group: &Path) -> Option<u64> {
    let number = |path: PathBuf| fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
    let groups = group.ancestors().take_while(|of| of.starts_with("/sys/fs/cgroup"));
    let left = groups.filter_map(|of| {
        let (most, used) = (number(of.join("memory.max"))?, number(of.join("memory.current"))?);
        Some(most.saturating_sub(used))
    });
    left.min()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MB: u64 = 1_000_000;

    /// What is found in ranks that have so many megabytes at each reading, with so many left at the end.
    fn found(left_mb: u64, ranks: [&[u64]; 2]) -> Option<MemoryGrowth> {
        let mut memory = Memory::used_up_within(600.0);
        let begin = Instant::now();
        let readings = ranks[0].iter().zip(ranks[1]).zip(0..);
        let mut last = None;
        for ((a, b), number) in readings {
            let ranks = BTreeMap::from([(0, a * MB), (1, b * MB)]);
            let reading = Reading { at: begin + number * EVERY, left_bytes: left_mb * MB, ranks };
            last = memory.add(reading);
        }
        last
    }

    #[test]
    fn rank_that_grows_steadily_is_named_with_what_is_left() {
        let still = [100; 13];
        let grows: Vec<u64> = (0..13).map(|at| 100 + 50 * at).collect();
        let growth = found(5_000, [&still, &grows]).unwrap();
        assert_eq!((growth.rank, growth.left_bytes), (Some(1), 5_000 * MB));
        assert!((growth.lasts_s() - 500.0).abs() < 1e-6, "{growth:?}");
        assert_eq!(found(7_000, [&still, &grows]), None, "it lasts longer");
        assert_eq!(found(5_000, [&still[1..], &grows[1..]]), None, "not seen for long enough");
    }

    #[test]
    fn growth_that_ends_or_comes_in_steps_is_none() {
        let still = [100; 13];
        let start: Vec<u64> = (0..13).map(|at| 100 + 100 * at.min(8)).collect();
        let steps: Vec<u64> = (0..13).map(|at| 100 + 400 * (at / 4)).collect();
        for grows in [start, steps] {
            assert_eq!(found(1, [&still, &grows]), None, "{grows:?}");
        }
    }

    #[test]
    fn none_is_named_if_many_grow() {
        let grows: Vec<u64> = (0..13).map(|at| 100 + 50 * at).collect();
        let less: Vec<u64> = (0..13).map(|at| 100 + 30 * at).collect();
        assert_eq!(found(1_000, [&grows, &less]).unwrap().rank, Some(0));
        let mut memory = Memory::used_up_within(600.0);
        let begin = Instant::now();
        let reading = |number: u32| Reading {
            at: begin + number * EVERY,
            left_bytes: 1_000 * MB,
            ranks: (0..3).map(|rank| (rank, u64::from(100 + 50 * number) * MB)).collect(),
        };
        let last = (0..13).filter_map(|number| memory.add(reading(number))).last();
        assert_eq!(last.unwrap().rank, None);
    }

    #[test]
    fn memory_of_this_process_is_read() {
        assert!(left_bytes().unwrap() > 0);
        assert!(anonymous_bytes(std::process::id()).unwrap() > 0);
    }
}
