//! Which runs may be compared: program, ranks, parameters, machine.

use std::collections::BTreeSet;

use super::record::{Machine, RunRecord};
use crate::ledger::is_same_value;

/// Parameters that say which version was run, or when, not what was asked of it.
const LABELS: [&str; 9] =
    ["branch", "build", "commit", "date", "label", "pr", "revision", "tag", "version"];

/// Whether a parameter is a label of the version.
pub fn is_label(name: &str) -> bool {
    LABELS.contains(&name.to_lowercase().as_str())
}

/// What runs do not have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Difference {
    /// The program's name.
    Program,
    /// The number of ranks.
    Ranks,
    /// Parameters, or, without any, arguments.
    Parameters,
    /// What counts as computation, or the detail level.
    Recording,
    /// The machine.
    Machine,
    /// The program's build.
    Build,
    /// The MPI library.
    Mpi,
}

impl Difference {
    /// Whether runs that differ in it do the same work in the same way, so that their times are alike but for the
    /// change that is looked for.
    pub fn is_change(self) -> bool {
        matches!(self, Self::Build | Self::Mpi)
    }
}

impl Machine {
    /// Whether times of both may be compared.
    pub fn is_like(&self, other: &Self) -> bool {
        // The counter's rate is measured anew in each run.
        let is_near = self.counter_mhz.abs_diff(other.counter_mhz) * 100 <= self.counter_mhz;
        let size = |of: &Self| (of.host_count, of.ranks_a_host, of.cores_a_host);
        is_near && size(self) == size(other)
    }
}

impl RunRecord {
    /// Parameters that are no labels.
    fn work(&self) -> impl Iterator<Item = (&String, &String)> {
        self.params.iter().filter(|(name, _)| !is_label(name))
    }

    /// Labels of the version.
    pub fn labels(&self) -> impl Iterator<Item = (&String, &String)> {
        self.params.iter().filter(|(name, _)| is_label(name))
    }

    /// What it does not have in common with another.
    pub fn differences(&self, other: &Self) -> Vec<Difference> {
        let same_work = match self.work().next().or(other.work().next()) {
            Some(_) => {
                self.work().count() == other.work().count()
                    && self
                        .work()
                        .zip(other.work())
                        .all(|((a, x), (b, y))| a == b && is_same_value(x, y))
            }
            None => self.arguments == other.arguments,
        };
        let recording = |of: &Self| (of.compute.clone(), of.level);
        let found = [
            (Difference::Program, self.program != other.program),
            (Difference::Ranks, self.ranks != other.ranks),
            (Difference::Parameters, !same_work),
            (Difference::Recording, recording(self) != recording(other)),
            (Difference::Machine, !self.machine.is_like(&other.machine)),
            (Difference::Build, self.build_id != other.build_id),
            (Difference::Mpi, self.mpi != other.mpi),
        ];
        found.iter().filter(|(_, differs)| *differs).map(|(what, _)| *what).collect()
    }

    /// Whether times of both may be put together: they may only differ in what is a change.
    pub fn is_alike(&self, other: &Self) -> bool {
        self.differences(other).into_iter().all(Difference::is_change)
    }
}

/// Runs of one side that should be alike are not: what they differ in, and two that do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mixed {
    /// Name of a run.
    pub one: String,
    /// Name of another.
    pub other: String,
    /// What they do not have in common.
    pub what: Vec<Difference>,
}

/// What two sets of runs have in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Relation {
    /// Where they differ.
    pub differences: Vec<Difference>,
    /// Whether seconds may be compared rank by rank.
    pub same_ranks: bool,
    /// Whether they did the same work on the same machine.
    pub same_work: bool,
}

impl Relation {
    /// Of two sets, each of which is alike.
    ///
    /// # Errors
    /// Two runs of one side that are not.
    pub fn of(before: &[RunRecord], after: &[RunRecord]) -> Result<Self, Mixed> {
        for side in [before, after] {
            for (one, other) in side.iter().zip(side.iter().skip(1)) {
                let what = one.differences(other);
                // A side is one version: its build may differ, for it is built on each machine.
                if what.iter().any(|difference| !difference.is_change()) {
                    return Err(Mixed { one: one.run.clone(), other: other.run.clone(), what });
                }
            }
        }
        let all = before.iter().flat_map(|one| after.iter().map(|other| one.differences(other)));
        let differences: BTreeSet<Difference> = all.flatten().collect();
        Ok(Self {
            same_ranks: !differences.contains(&Difference::Ranks),
            same_work: differences.iter().all(|difference| difference.is_change()),
            differences: differences.into_iter().collect(),
        })
    }
}
