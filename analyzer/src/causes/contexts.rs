//! Names what a thread was doing, as finely as the run allows, so that contexts are alike on all ranks.

use std::collections::HashMap;

use rustc_hash::FxHashMap;
use trace_format::header::Module;

use crate::metrics::module_of;
use crate::trace::symbols::{SourcePlace, Symbols};
use crate::trace::{RankTrace, Run};

/// A place of the program that calls MPI.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CallSite {
    /// Name of the MPI function.
    pub function: String,
    /// Path of the program or library that the call was made from; empty: not known.
    pub module: String,
    /// Address in that file to which the call returns.
    pub address: u64,
    /// Function, file and line, as far as the module's file says.
    pub place: SourcePlace,
}

/// What a thread was doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Context {
    /// It waited for a rank that is known.
    Waiting,
    /// It waited, for whom is not known.
    WaitingForUnknown,
    /// The recorder's own time.
    Recorder,
    /// The program's own code in a region that it marked: the innermost.
    Region(String),
    /// The program's own code between two MPI calls; `None`: the begin or end of the run.
    Between(Option<CallSite>, Option<CallSite>),
    /// Inside an MPI call, without waiting.
    Transfer(CallSite),
    /// Inside MPI calls of which only totals are kept.
    Totals,
}

/// Numbers of contexts that every run has.
pub const WAITING: u32 = 0;
pub const WAITING_FOR_UNKNOWN: u32 = 1;
pub const RECORDER: u32 = 2;
pub const TOTALS: u32 = 3;

impl Context {
    /// Whether it is time outside MPI and outside the recorder.
    pub fn is_computing(&self) -> bool {
        matches!(self, Self::Region(_) | Self::Between(..))
    }
}

/// A call site by its rank's numbers: function, and the address that the call returns to (0: not known).
pub(crate) type LocalSite = (u16, u64);

/// A context by its rank's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum LocalContext {
    Fixed(u32),
    Region(u32),
    Between(Option<LocalSite>, Option<LocalSite>),
    Transfer(LocalSite),
}

/// The contexts of one rank in the order in which they came up.
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
}

impl LocalContexts {
    /// The number of a context that came up.
    pub fn known(&self, context: LocalContext) -> Option<u32> {
        self.numbers.get(&context).copied()
    }
}

/// The contexts of a run.
#[derive(Debug)]
pub struct Contexts {
    /// By number.
    pub all: Vec<Context>,
}

/// What tells a site from others, alike on all ranks: module, its build, address in it, function.
type SiteKey = (String, String, u64, String);

/// A context by numbers that all ranks share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Shared {
    Fixed(u32),
    Region(u32),
    Between(Option<u32>, Option<u32>),
    Transfer(u32),
}

/// Makes contexts alike.
#[derive(Default)]
struct Merging {
    symbols: Symbols,
    sites: HashMap<SiteKey, u32>,
    described: Vec<CallSite>,
    regions: HashMap<String, u32>,
    region_names: Vec<String>,
    numbers: FxHashMap<Shared, u32>,
    all: Vec<Shared>,
}

impl Contexts {
    /// Of all ranks; also gives each rank's numbers as those of the run.
    pub(crate) fn merge(run: &Run, of_ranks: &[&LocalContexts]) -> (Self, Vec<Vec<u32>>) {
        let mut merging = Merging::default();
        for fixed in [WAITING, WAITING_FOR_UNKNOWN, RECORDER, TOTALS] {
            merging.number(Shared::Fixed(fixed));
        }
        let maps = run.ranks.iter().zip(of_ranks).map(|(trace, local)| {
            let modules = crate::metrics::modules(trace);
            let mut sites = FxHashMap::default();
            let mut site = |merging: &mut Merging, local: LocalSite| {
                *sites.entry(local).or_insert_with(|| merging.site(trace, &modules, local))
            };
            let numbers = local.all.iter().map(|context| {
                let shared = match *context {
                    LocalContext::Fixed(number) => Shared::Fixed(number),
                    LocalContext::Region(id) => Shared::Region(merging.region(trace, id)),
                    LocalContext::Between(from, to) => {
                        let from = from.map(|from| site(&mut merging, from));
                        let to = to.map(|to| site(&mut merging, to));
                        Shared::Between(from, to)
                    }
                    LocalContext::Transfer(at) => Shared::Transfer(site(&mut merging, at)),
                };
                merging.number(shared)
            });
            numbers.collect()
        });
        let maps: Vec<Vec<u32>> = maps.collect();
        (merging.finish(), maps)
    }

    /// A context by its number.
    pub fn get(&self, number: u32) -> &Context {
        &self.all[number as usize]
    }
}

impl Merging {
    fn number(&mut self, context: Shared) -> u32 {
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
        (function, address): LocalSite,
    ) -> u32 {
        let name = trace.file.function_name(function).unwrap_or("unknown");
        // A module that was mapped later at the same place is another; which is rare, and then names are
        // those of the last one.
        let module = module_of(modules, address, u64::MAX).map(|index| modules[index]);
        let (path, id, base) =
            module.map_or(("", "", 0), |m| (m.path.as_str(), m.build_id.as_str(), m.base));
        let address = address.wrapping_sub(base);
        let key = (path.to_owned(), id.to_owned(), address, name.to_owned());
        let next = self.described.len() as u32;
        let (symbols, described) = (&mut self.symbols, &mut self.described);
        *self.sites.entry(key).or_insert_with(|| {
            let known = !path.is_empty();
            let place =
                if known { symbols.place(path, id, address) } else { SourcePlace::default() };
            let (function, module) = (name.to_owned(), path.to_owned());
            described.push(CallSite { function, module, address, place });
            next
        })
    }

    fn finish(self) -> Contexts {
        let site = |number: u32| self.described[number as usize].clone();
        let all = self.all.iter().map(|shared| match *shared {
            Shared::Fixed(WAITING) => Context::Waiting,
            Shared::Fixed(WAITING_FOR_UNKNOWN) => Context::WaitingForUnknown,
            Shared::Fixed(RECORDER) => Context::Recorder,
            Shared::Fixed(_) => Context::Totals,
            Shared::Region(number) => Context::Region(self.region_names[number as usize].clone()),
            Shared::Between(from, to) => Context::Between(from.map(site), to.map(site)),
            Shared::Transfer(number) => Context::Transfer(site(number)),
        });
        Contexts { all: all.collect() }
    }
}
