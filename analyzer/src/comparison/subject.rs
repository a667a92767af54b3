//! Which runs may be compared: program, ranks, parameters, machine.

use std::collections::BTreeSet;

use serde::Serialize;

use super::public_arguments::public;
use super::record::{Machine, RunRecord};
use crate::ledger::is_same_value;

/// Parameters that identify the version or the date of a run, not its work.
const LABELS: [&str; 9] =
    ["branch", "build", "commit", "date", "label", "pr", "revision", "tag", "version"];

/// Whether a parameter is a label of the version.
pub fn is_label(name: &str) -> bool {
    LABELS.contains(&name.to_lowercase().as_str())
}

/// An aspect in which runs differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Difference {
    /// The program's name.
    Program,
    /// The number of ranks.
    Ranks,
    /// Parameters, or arguments if there are none.
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
    /// Whether runs that differ in it still do the same work in the same way, so that their times
    /// may only differ by the change that is examined.
    pub fn is_change(self) -> bool {
        matches!(self, Self::Build | Self::Mpi)
    }
}

/// Whether two rates are of the same counter, in MHz: each run measures it again.
fn is_same_rate(one: u32, other: u32) -> bool {
    one.abs_diff(other) * 100 <= one
}

impl Machine {
    /// Whether it has this property, named as in `--only`. A parameter of the user's with the same name goes first.
    pub fn has(&self, name: &str, value: &str) -> bool {
        let is = |count: u32| is_same_value(&count.to_string(), value);
        match name {
            "host" => self.hosts.iter().any(|host| host == value),
            "hosts" => is(self.host_count),
            "counter" => value.parse().is_ok_and(|mhz: u32| is_same_rate(self.counter_mhz, mhz)),
            "cores" => is(self.cores_per_host.0) || is(self.cores_per_host.1),
            "processor" => {
                let contains =
                    |model: &String| model.to_lowercase().contains(&value.to_lowercase());
                self.processors.iter().any(contains)
            }
            _ => false,
        }
    }

    /// A property, as written after `--only`, that this machine has and the other has not.
    pub fn distinction(&self, other: &Self) -> Option<String> {
        let processors = self.processors.iter().map(|model| ("processor", model.clone()));
        let own = processors.chain([
            ("hosts", self.host_count.to_string()),
            ("cores", self.cores_per_host.1.to_string()),
            ("counter", self.counter_mhz.to_string()),
        ]);
        let mut own = own.chain(self.hosts.iter().map(|host| ("host", host.clone())));
        let (name, value) = own.find(|(name, value)| !other.has(name, value))?;
        Some(format!("{name}={value}"))
    }

    /// Whether times of both may be compared.
    fn is_like(&self, other: &Self) -> bool {
        let is_near = is_same_rate(self.counter_mhz, other.counter_mhz);
        let size = |of: &Self| (of.host_count, of.cores_per_host);
        let known = !self.processors.is_empty() && !other.processors.is_empty();
        let same_model = !known || self.processors == other.processors;
        is_near && size(self) == size(other) && same_model
    }
}

impl RunRecord {
    /// Whether both ran on machines that are alike. How many ranks a host has is compared only if
    /// there are equally many.
    fn is_on_machine_of(&self, other: &Self) -> bool {
        let ranks_per_host = |of: &Self| of.machine.ranks_per_host;
        self.machine.is_like(&other.machine)
            && (self.ranks != other.ranks || ranks_per_host(self) == ranks_per_host(other))
    }

    /// Whether it is a record of the same run, under whatever name.
    pub fn is_same_run(&self, other: &Self) -> bool {
        let identity = |of: &Self| (of.begun_ns, of.elapsed_ns, of.ranks, of.program.clone());
        self.begun_ns.is_some() && identity(self) == identity(other)
    }

    /// Parameters that are not labels.
    pub fn work(&self) -> impl Iterator<Item = (&String, &String)> {
        self.params.iter().filter(|(name, _)| !is_label(name))
    }

    /// Labels of the version.
    pub fn labels(&self) -> impl Iterator<Item = (&String, &String)> {
        self.params.iter().filter(|(name, _)| is_label(name))
    }

    /// The aspects in which it differs from another run.
    pub fn differences(&self, other: &Self) -> Vec<Difference> {
        let same_work = match self.work().next().or(other.work().next()) {
            Some(_) => {
                self.work().count() == other.work().count()
                    && self
                        .work()
                        .zip(other.work())
                        .all(|((a, x), (b, y))| a == b && is_same_value(x, y))
            }
            // A record from a baseline has only what is public.
            None => public(&self.arguments) == public(&other.arguments),
        };
        let recording = |of: &Self| (of.compute.clone(), of.level);
        let found = [
            (Difference::Program, self.program != other.program),
            (Difference::Ranks, self.ranks != other.ranks),
            (Difference::Parameters, !same_work),
            (Difference::Recording, recording(self) != recording(other)),
            (Difference::Machine, !self.is_on_machine_of(other)),
            (Difference::Build, self.build_id != other.build_id),
            (Difference::Mpi, self.mpi != other.mpi),
        ];
        found.iter().filter(|(_, differs)| *differs).map(|(what, _)| *what).collect()
    }

    /// Whether times of both may be combined: they may differ only in what counts as a change.
    pub fn is_alike(&self, other: &Self) -> bool {
        self.differences(other).into_iter().all(Difference::is_change)
    }
}

/// Two runs of one side that should be alike but are not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mixed {
    /// Name of a run.
    pub one: String,
    /// Name of another.
    pub other: String,
    /// The aspects in which they differ.
    pub what: Vec<Difference>,
    /// If they differ in the machine: what tells the first run's from the other's, as in `--only`.
    pub machine: Option<String>,
}

impl Mixed {
    /// Two runs that differ.
    pub fn new(one: &RunRecord, other: &RunRecord, what: Vec<Difference>) -> Self {
        let differs = what.contains(&Difference::Machine);
        let machine = differs.then(|| one.machine.distinction(&other.machine)).flatten();
        Self { one: one.run.clone(), other: other.run.clone(), what, machine }
    }
}

/// How two sets of runs are related.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Relation {
    /// The aspects in which they differ.
    pub differences: Vec<Difference>,
    /// Whether seconds may be compared rank by rank.
    pub same_ranks: bool,
    /// Whether they did the same work on the same machine.
    pub same_work: bool,
}

impl Relation {
    /// Relates two sets. The runs within each set must be alike.
    ///
    /// # Errors
    /// Two runs of one side that are not alike.
    pub fn between(before: &[RunRecord], after: &[RunRecord]) -> Result<Self, Mixed> {
        for side in [before, after] {
            for (one, other) in side.iter().zip(side.iter().skip(1)) {
                let what = one.differences(other);
                // A side is one version. Its builds may differ, because it is built on each
                // machine.
                if what.iter().any(|difference| !difference.is_change()) {
                    return Err(Mixed::new(one, other, what));
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
