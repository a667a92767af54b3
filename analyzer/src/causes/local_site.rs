//! Call sites with the numbers of one rank, and which of the modules at an address each belongs to.

use serde::{Deserialize, Serialize};
use trace_format::file_calls::FileCallKind;
use trace_format::header::Module;
use trace_format::layout::FUNCTION_MASK;

use crate::trace::RankTrace;
use crate::trace::modules::{module_of, modules};

/// A call site of one rank.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
pub(crate) struct LocalSite {
    /// Number of the function; `TOOL` for a parallel region, above [`FUNCTION_MASK`] for calls on files.
    pub function: u16,
    /// Return address of the call; 0 if unknown.
    pub address: u64,
    /// Which of the modules that were loaded at the address one after the other.
    pub load: Load,
}

/// In place of a function: calls on files.
pub(super) fn on_files(kind: FileCallKind) -> u16 {
    FUNCTION_MASK + 1 + kind as u16
}

/// The kind of calls on files that such a number stands for.
pub(super) fn kind_on_files(function: u16) -> Option<FileCallKind> {
    FileCallKind::from_field(function.checked_sub(FUNCTION_MASK + 1)?)
}

/// One of the modules that were loaded at the same address in turn.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
pub(crate) enum Load {
    /// The last one, as nearly always.
    #[default]
    Last,
    /// The one with this index among the rank's modules.
    Earlier(u32),
}

impl Load {
    /// The module that an address belonged to.
    pub fn module<'m>(self, modules: &[&'m Module], address: u64) -> Option<&'m Module> {
        match self {
            Self::Last => module_of(modules, address, u64::MAX).map(|index| modules[index]),
            Self::Earlier(index) => modules.get(index as usize).copied(),
        }
    }
}

/// The modules of a rank that were loaded where another one was loaded before or later.
#[derive(Debug, Clone)]
pub(crate) struct ReplacedModules {
    /// In the order in which they were loaded.
    modules: Vec<Replaced>,
    /// Counter when the last of them was loaded.
    last_ticks: u64,
}

#[derive(Debug, Clone)]
struct Replaced {
    /// Its index among the rank's modules; of equal ones, the first.
    index: u32,
    addresses: std::ops::Range<u64>,
    ticks: u64,
}

impl ReplacedModules {
    /// Those of a rank.
    pub fn new(trace: &RankTrace) -> Self {
        let all = modules(&trace.file.definitions);
        let mut by_address: Vec<usize> = (0..all.len()).collect();
        by_address.sort_unstable_by_key(|index| all[*index].begin);
        let mut overlapping = vec![false; all.len()];
        let mut largest: Option<usize> = None;
        for index in by_address {
            if let Some(before) = largest.filter(|before| all[*before].end > all[index].begin) {
                (overlapping[before], overlapping[index]) = (true, true);
            }
            if largest.is_none_or(|before| all[before].end < all[index].end) {
                largest = Some(index);
            }
        }
        let replaced = (0..all.len()).filter(|index| overlapping[*index]).map(|index| {
            let module = all[index];
            let is_same = |other: &&Module| {
                (&other.path, &other.identity, other.base)
                    == (&module.path, &module.identity, module.base)
            };
            Replaced {
                index: all.iter().position(is_same).unwrap_or(index) as u32,
                addresses: module.begin..module.end,
                ticks: module.ticks,
            }
        });
        let modules: Vec<Replaced> = replaced.collect();
        let last_ticks = modules.iter().map(|module| module.ticks).max().unwrap_or(0);
        Self { modules, last_ticks }
    }

    /// The site of a call that began at this moment on the rank's counter.
    #[inline]
    pub fn site(&self, function: u16, address: u64, begin_ticks: u64) -> LocalSite {
        let load = match begin_ticks > self.last_ticks || self.modules.is_empty() {
            true => Load::Last,
            false => self.load(address, begin_ticks),
        };
        LocalSite { function, address, load }
    }

    #[cold]
    fn load(&self, address: u64, begin_ticks: u64) -> Load {
        let mut there =
            self.modules.iter().rev().filter(|module| module.addresses.contains(&address));
        let Some(last) = there.next() else { return Load::Last };
        let then = match last.ticks <= begin_ticks {
            true => Some(last),
            false => there.find(|module| module.ticks <= begin_ticks),
        };
        match then {
            Some(module) if module.index != last.index => Load::Earlier(module.index),
            _ => Load::Last,
        }
    }
}

#[cfg(test)]
mod tests {
    use trace_format::header::Definition;

    use super::*;
    use crate::synthetic_trace::{RunDirectory, SyntheticRank};
    use crate::trace::Run;

    #[test]
    fn site_belongs_to_the_module_that_was_loaded_then() {
        let mut rank = SyntheticRank::complete(0, 1, 1_000, 9_000);
        let loads = [
            ("app", 0x100, 0),
            ("a.so", 0x900, 10),
            ("b.so", 0x900, 20),
            ("a.so", 0x900, 30),
            ("c.so", 0x980, 40),
        ];
        for (path, begin, ticks) in loads {
            rank.definitions.push(Definition::Module(Module {
                path: path.into(),
                identity: String::new(),
                base: begin,
                begin,
                end: begin + 0x100,
                ticks,
            }));
        }
        let directory = RunDirectory::with_ranks(&[rank]);
        let run = Run::open(directory.path()).unwrap();
        let trace = &run.ranks[0];
        let (all, replaced) = (modules(&trace.file.definitions), ReplacedModules::new(trace));
        let path = |address, ticks| {
            let site = replaced.site(16, address, ticks);
            site.load.module(&all, address).map(|module| module.path.as_str())
        };
        assert_eq!(
            [5, 15, 25, 35, 45].map(|ticks| path(0x910, ticks)),
            [Some("a.so"), Some("a.so"), Some("b.so"), Some("a.so"), Some("a.so")]
        );
        assert_eq!(
            [15, 25, 45].map(|ticks| path(0x990, ticks)),
            [Some("a.so"), Some("b.so"), Some("c.so")]
        );
        assert_eq!([15, 45].map(|ticks| path(0x110, ticks)), [Some("app"); 2]);
        // A library that is opened again and again has one site.
        assert_eq!(replaced.site(16, 0x910, 15), replaced.site(16, 0x910, 45));
    }
}
