//! Merges the contexts of all ranks.

use std::collections::HashMap;

use rustc_hash::FxHashMap;

use crate::metrics::{Frame, FrameKey};
use crate::trace::symbols::{SourceLocation, Symbols};
use crate::trace::{RankTrace, Run};

use super::callers::{CalledSite, Callers, PathCounts, SiteKey};
use super::contexts::{
    CallSite, Context, Contexts, LocalContext, RECORDER, TOTALS, WAITING, WAITING_FOR_UNKNOWN,
};
use super::local_site::LocalSite;

/// A context with numbers that all ranks share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum SharedContext {
    Fixed(u32),
    Region(u32),
    Between(Option<u32>, Option<u32>),
    Transfer(u32),
}

/// Merges the ranks' contexts.
#[derive(Default)]
pub(super) struct Merger {
    symbols: Symbols,
    sites: HashMap<(SiteKey, Option<FrameKey>), u32>,
    site_table: Vec<CallSite>,
    regions: HashMap<String, u32>,
    region_names: Vec<String>,
    numbers: FxHashMap<SharedContext, u32>,
    all: Vec<SharedContext>,
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

impl Contexts {
    /// Merges the contexts of all ranks; also returns the run's number for each number of each
    /// rank. `counts` is by rank; empty if it does not matter where libraries were called.
    pub(crate) fn merge(
        run: &Run,
        of_ranks: &[&[LocalContext]],
        counts: &[&PathCounts],
    ) -> (Self, Vec<Vec<u32>>) {
        let mut merger = Merger { symbols: Symbols::for_run(run), ..Merger::default() };
        let callers = Callers::new(run, counts, &mut merger.symbols);
        for fixed in [WAITING, WAITING_FOR_UNKNOWN, RECORDER, TOTALS] {
            merger.number(SharedContext::Fixed(fixed));
        }
        let maps = run.ranks.iter().zip(of_ranks).enumerate().map(|(position, (trace, local))| {
            let mut sites = FxHashMap::default();
            let mut on_path = |merger: &mut Merger, local: (LocalSite, Option<u32>)| {
                *sites.entry(local).or_insert_with(|| {
                    let called = callers.called_site(position, local, &mut merger.symbols);
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
}
