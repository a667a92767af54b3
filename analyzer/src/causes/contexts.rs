//! Names what a thread was doing, as precisely as the run allows and in the same way on all ranks.

use std::collections::HashMap;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::metrics::{Frame, FrameKey};
use crate::trace::symbols::{SourceLocation, Symbols};
use crate::trace::{RankTrace, Run};

use super::callers::{CalledSite, Callers, PathCounts, SiteKey};
use super::local_site::LocalSite;

/// A place in the program that calls MPI.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CallSite {
    /// Name of the MPI function.
    pub function: String,
    /// Path of the program or library that made the call; empty if unknown.
    pub module: String,
    /// Address in that file to which the call returns.
    pub address: u64,
    /// Function, file and line, as far as the module's debug information provides them.
    pub place: SourceLocation,
    /// Whether the module is a library, not the user's own program.
    pub is_in_library: bool,
    /// Where the user's own program called that library, if a call path tells.
    pub caller: Option<Box<Frame>>,
}

impl CallSite {
    /// Whether both are in one function or, if its name is not known, the same call in the code,
    /// wherever their library was called.
    pub(super) fn is_beside(&self, other: &Self) -> bool {
        let same_function = match &self.place.function {
            None => self.address == other.address,
            name => *name == other.place.function,
        };
        self.module == other.module && same_function
    }
}

/// What a thread was doing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
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
    /// The program's own code in a BLAS, LAPACK or FFTW call, within a region or between two MPI
    /// calls. Delays are found in whole stretches; if one call holds most of what makes a stretch
    /// longer, it is named instead.
    InCall(CallSite, Box<Context>),
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
    /// The region or stretch in which a BLAS, LAPACK or FFTW call lies, else the context itself.
    pub fn outer(&self) -> &Self {
        match self {
            Self::InCall(_, outer) => outer,
            other => other,
        }
    }

    /// Whether the thread was outside MPI and outside the recorder.
    pub fn is_computing(&self) -> bool {
        matches!(self, Self::Region(_) | Self::Between(..) | Self::InCall(..))
    }
}

/// A context with its rank's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum LocalContext {
    Fixed(u32),
    Region(u32),
    Between(Option<LocalSite>, Option<LocalSite>),
    Transfer(LocalSite),
    /// The same for a call with a path, by its number: the place of a wait. What lines did is summed
    /// without paths, which the short calls of the ranks that come late do not have.
    OnPath(LocalSite, u32),
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

    /// Goes on from contexts that have numbers already.
    pub fn from_all(all: Vec<LocalContext>) -> Self {
        let numbers = all.iter().zip(0..).map(|(context, number)| (*context, number)).collect();
        Self { numbers, all }
    }

    /// The context with this number.
    #[inline]
    pub fn get(&self, number: u32) -> LocalContext {
        self.all[number as usize]
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
#[derive(Debug, Default)]
pub struct Contexts {
    /// By number.
    pub all: Vec<Context>,
}

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
    sites: HashMap<(SiteKey, Option<FrameKey>), u32>,
    site_table: Vec<CallSite>,
    regions: HashMap<String, u32>,
    region_names: Vec<String>,
    numbers: FxHashMap<SharedContext, u32>,
    all: Vec<SharedContext>,
}

impl Contexts {
    /// Merges the contexts of all ranks; also returns the run's number for each number of each
    /// rank. `counts` is by rank; empty if it does not matter where libraries were called.
    pub(crate) fn merge(
        run: &Run,
        of_ranks: &[&[LocalContext]],
        counts: &[&PathCounts],
    ) -> (Self, Vec<Vec<u32>>) {
        let mut merger = Merger::default();
        let callers = Callers::new(run, counts, &mut merger.symbols);
        for fixed in [WAITING, WAITING_FOR_UNKNOWN, RECORDER, TOTALS] {
            merger.number(SharedContext::Fixed(fixed));
        }
        let maps = run.ranks.iter().zip(of_ranks).enumerate().map(|(position, (trace, local))| {
            let mut sites = FxHashMap::default();
            let mut on_path = |merger: &mut Merger, local: (LocalSite, Option<u32>)| {
                *sites.entry(local).or_insert_with(|| {
                    let called = callers.of(position, local, &mut merger.symbols);
                    merger.site(called)
                })
            };
            let numbers = local.iter().map(|context| {
                let mut site = |merger: &mut Merger, local| on_path(merger, (local, None));
                let shared = match *context {
                    LocalContext::Fixed(number) => SharedContext::Fixed(number),
                    LocalContext::Region(id) => SharedContext::Region(merger.region(trace, id)),
                    LocalContext::Between(from, to) => {
                        let from = from.map(|from| site(&mut merger, from));
                        let to = to.map(|to| site(&mut merger, to));
                        SharedContext::Between(from, to)
                    }
                    LocalContext::Transfer(at) => SharedContext::Transfer(site(&mut merger, at)),
                    LocalContext::OnPath(at, path) => {
                        SharedContext::Transfer(on_path(&mut merger, (at, Some(path))))
                    }
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

    fn site(&mut self, CalledSite { key, is_in_library, caller }: CalledSite) -> u32 {
        let next = self.site_table.len() as u32;
        let (symbols, site_table) = (&mut self.symbols, &mut self.site_table);
        *self.sites.entry((key, caller)).or_insert_with_key(
            |((path, id, address, function), caller)| {
                let place = match path.is_empty() {
                    true => SourceLocation::default(),
                    false => symbols.location(path, id, *address),
                };
                let caller = caller.as_ref().map(|(path, id, address)| {
                    let place = symbols.location(path, id, *address);
                    Box::new(Frame { module: path.clone(), address: *address, place })
                });
                site_table.push(CallSite {
                    function: function.clone(),
                    module: path.clone(),
                    address: *address,
                    place,
                    is_in_library,
                    caller,
                });
                next
            },
        )
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
