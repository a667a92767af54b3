//! Names what a thread was doing, as precisely as the run allows and in the same way on all ranks.

use std::collections::HashMap;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use trace_format::header::Module;

use crate::metrics::in_file;
use crate::trace::symbols::{SourceLocation, Symbols};
use crate::trace::{RankTrace, Run};

use super::local_site::LocalSite;

/// A place in the program that calls MPI.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CallSite {
    /// Name of the MPI function.
    pub function: String,
    /// Path of the program or library that made the call; empty if unknown.
    pub module: String,
    /// Address in that file to which the call returns.
    pub address: u64,
    /// Function, file and line, as far as the module's debug information provides them.
    pub place: SourceLocation,
}

/// What a thread was doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Context {
    /// It waited for a known rank.
    Waiting,
    /// It waited, but it is not known for which rank.
    WaitingForUnknown,
    /// The recorder's own time.
    Recorder,
    /// The program's own code in this marked region, the innermost one.
    Region(String),
    /// The program's own code between two MPI calls; `None` is the begin or end of the run.
    Between(Option<CallSite>, Option<CallSite>),
    /// Inside an MPI call, without waiting.
    Transfer(CallSite),
    /// Inside MPI calls for which only totals were kept.
    Totals,
}

/// Numbers of contexts that every run has.
pub const WAITING: u32 = 0;
pub const WAITING_FOR_UNKNOWN: u32 = 1;
pub const RECORDER: u32 = 2;
pub const TOTALS: u32 = 3;

impl Context {
    /// Whether the thread was outside MPI and outside the recorder.
    pub fn is_computing(&self) -> bool {
        matches!(self, Self::Region(_) | Self::Between(..))
    }
}

/// A context with its rank's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum LocalContext {
    Fixed(u32),
    Region(u32),
    Between(Option<LocalSite>, Option<LocalSite>),
    Transfer(LocalSite),
}

/// The contexts of one rank in the order in which they first occurred.
#[derive(Debug, Default)]
pub(crate) struct LocalContexts {
    numbers: FxHashMap<LocalContext, u32>,
    all: Vec<LocalContext>,
}

impl LocalContexts {
    #[inline]
    pub fn number(&mut self, context: LocalContext) -> u32 {
        let next = self.all.len() as u32;
        *self.numbers.entry(context).or_insert_with(|| {
            self.all.push(context);
            next
        })
    }

    /// The contexts by their numbers.
    pub fn all(&self) -> &[LocalContext] {
        &self.all
    }

    /// The same, without what is needed to add more.
    pub fn into_all(self) -> Vec<LocalContext> {
        self.all
    }
}

/// The contexts of a run.
#[derive(Debug)]
pub struct Contexts {
    /// By number.
    pub all: Vec<Context>,
}

/// Identifies a call site on all ranks: module path, build id, address within the module, function.
type SiteKey = (String, String, u64, String);

/// A context with numbers that all ranks share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum SharedContext {
    Fixed(u32),
    Region(u32),
    Between(Option<u32>, Option<u32>),
    Transfer(u32),
}

/// Merges the ranks' contexts.
#[derive(Default)]
struct Merger {
    symbols: Symbols,
    sites: HashMap<SiteKey, u32>,
    site_table: Vec<CallSite>,
    regions: HashMap<String, u32>,
    region_names: Vec<String>,
    numbers: FxHashMap<SharedContext, u32>,
    all: Vec<SharedContext>,
}

impl Contexts {
    /// Merges the contexts of all ranks; also returns the run's number for each number of each
    /// rank.
    pub(crate) fn merge(run: &Run, of_ranks: &[&[LocalContext]]) -> (Self, Vec<Vec<u32>>) {
        let mut merger = Merger::default();
        for fixed in [WAITING, WAITING_FOR_UNKNOWN, RECORDER, TOTALS] {
            merger.number(SharedContext::Fixed(fixed));
        }
        let maps = run.ranks.iter().zip(of_ranks).map(|(trace, local)| {
            let modules = crate::metrics::modules(trace);
            let mut sites = FxHashMap::default();
            let mut site = |merger: &mut Merger, local: LocalSite| {
                *sites.entry(local).or_insert_with(|| merger.site(trace, &modules, local))
            };
            let numbers = local.iter().map(|context| {
                let shared = match *context {
                    LocalContext::Fixed(number) => SharedContext::Fixed(number),
                    LocalContext::Region(id) => SharedContext::Region(merger.region(trace, id)),
                    LocalContext::Between(from, to) => {
                        let from = from.map(|from| site(&mut merger, from));
                        let to = to.map(|to| site(&mut merger, to));
                        SharedContext::Between(from, to)
                    }
                    LocalContext::Transfer(at) => SharedContext::Transfer(site(&mut merger, at)),
                };
                merger.number(shared)
            });
            numbers.collect()
        });
        let maps: Vec<Vec<u32>> = maps.collect();
        (merger.finish(), maps)
    }

    /// A context by its number.
    pub fn get(&self, number: u32) -> &Context {
        &self.all[number as usize]
    }
}

impl Merger {
    fn number(&mut self, context: SharedContext) -> u32 {
        let next = self.all.len() as u32;
        *self.numbers.entry(context).or_insert_with(|| {
            self.all.push(context);
            next
        })
    }

    fn region(&mut self, trace: &RankTrace, id: u32) -> u32 {
        let name = match trace.facts.regions.get(&id) {
            Some(name) => name.clone(),
            None => format!("region {id}"),
        };
        let next = self.region_names.len() as u32;
        *self.regions.entry(name).or_insert_with_key(|name| {
            self.region_names.push(name.clone());
            next
        })
    }

    fn site(
        &mut self,
        trace: &RankTrace,
        modules: &[&Module],
        LocalSite { function, address, load }: LocalSite,
    ) -> u32 {
        let name = trace.file.function_name(function).unwrap_or("unknown");
        let (path, id, address) = in_file(load.module(modules, address), address);
        let key = (path.to_owned(), id.to_owned(), address, name.to_owned());
        let next = self.site_table.len() as u32;
        let (symbols, site_table) = (&mut self.symbols, &mut self.site_table);
        *self.sites.entry(key).or_insert_with(|| {
            let known = !path.is_empty();
            let place =
                if known { symbols.location(path, id, address) } else { SourceLocation::default() };
            let (function, module) = (name.to_owned(), path.to_owned());
            site_table.push(CallSite { function, module, address, place });
            next
        })
    }

    fn finish(self) -> Contexts {
        let site = |number: u32| self.site_table[number as usize].clone();
        let all = self.all.iter().map(|shared| match *shared {
            SharedContext::Fixed(WAITING) => Context::Waiting,
            SharedContext::Fixed(WAITING_FOR_UNKNOWN) => Context::WaitingForUnknown,
            SharedContext::Fixed(RECORDER) => Context::Recorder,
            SharedContext::Fixed(_) => Context::Totals,
            SharedContext::Region(number) => {
                Context::Region(self.region_names[number as usize].clone())
            }
            SharedContext::Between(from, to) => Context::Between(from.map(site), to.map(site)),
            SharedContext::Transfer(number) => Context::Transfer(site(number)),
        });
        Contexts { all: all.collect() }
    }
}
