//! Calls by where the program made them (level 2): every rank's events come in, one row a function and
//! call site goes out, equal sites of all ranks together.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use rayon::prelude::*;
use trace_format::header::{Definition, Module};

use crate::timeline::GlobalTimeline;
use crate::trace::symbols::{SourcePlace, Symbols};
use crate::trace::{RankTrace, Run};

use super::resolve::{RankSelection, Resolved};

/// Calls of one function from one place of the program.
#[derive(Debug, Clone, PartialEq)]
pub struct SiteRow {
    /// Name of the MPI function.
    pub function: String,
    /// Path of the program or library that the call was made from; empty: not known.
    pub module: String,
    /// Address in that file to which the call returns; in memory where the module is not known.
    pub address: u64,
    /// Whether the call went through a language binding of MPI, whose caller this is.
    pub through_binding: bool,
    /// Function, file and line, as far as the module's file says.
    pub place: SourcePlace,
    /// Calls that began in the selection.
    pub count: u64,
    /// Seconds in them.
    pub time_s: f64,
    /// Seconds of the longest.
    pub max_s: f64,
    /// Ranks that called from here.
    pub ranks: usize,
}

/// Calls by site.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SiteMetrics {
    /// Most time first.
    pub rows: Vec<SiteRow>,
    /// Modules without names: path and why.
    pub unusable: Vec<(String, &'static str)>,
}

/// A site on one rank: function, address in memory, position of its module if it is known, and whether
/// the call went through a binding.
type Key = (u16, u64, Option<usize>, bool);

/// A site of all ranks: path and build id of its module, address in it, function.
type SiteKey<'a> = (String, String, u64, &'a str);

#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    count: u64,
    ticks: u64,
    max_ticks: u64,
}

fn modules(trace: &RankTrace) -> Vec<&Module> {
    let modules = trace.file.definitions.iter().filter_map(|definition| match definition {
        Definition::Module(module) => Some(module),
        _ => None,
    });
    modules.collect()
}

/// The module that an address belonged to at a moment: the last one seen there before.
fn module_of(modules: &[&Module], address: u64, ticks: u64) -> Option<usize> {
    modules
        .iter()
        .rposition(|module| (module.begin..module.end).contains(&address) && module.ticks <= ticks)
}

fn sums_of(trace: &RankTrace, selection: &RankSelection) -> HashMap<Key, Sums> {
    let modules = modules(trace);
    let latest = modules.iter().map(|module| module.ticks).max().unwrap_or(0);
    let mut found: HashMap<Key, Sums> = HashMap::new();
    let mut known: HashMap<u64, Option<usize>> = HashMap::new();
    for thread in &trace.file.threads {
        for event in trace.file.events(thread) {
            let Some((address, through_binding)) = event.site else { continue };
            if !event.is_call() || !selection.counts(event.begin) {
                continue;
            }
            let module = match event.begin > latest {
                true => *known
                    .entry(address)
                    .or_insert_with(|| module_of(&modules, address, event.begin)),
                false => module_of(&modules, address, event.begin),
            };
            let sums = found.entry((event.function, address, module, through_binding)).or_default();
            let (count, ticks) = match event.polls {
                Some((count, inside)) => (count, inside),
                None => (1, event.end.map_or(0, |end| end.saturating_sub(event.begin))),
            };
            sums.count = sums.count.saturating_add(count);
            sums.ticks = sums.ticks.saturating_add(ticks);
            sums.max_ticks = sums.max_ticks.max(ticks / count.max(1));
        }
    }
    found
}

impl SiteMetrics {
    /// Of a selection; `None` where no rank recorded call sites.
    pub(super) fn new(run: &Run, timeline: &GlobalTimeline, resolved: &Resolved) -> Option<Self> {
        if run.ranks.iter().all(|trace| trace.file.fixed.level < 2) {
            return None;
        }
        let per_rank: Vec<_> = run
            .ranks
            .par_iter()
            .zip(&resolved.ranks)
            .map(|(trace, selection)| sums_of(trace, selection))
            .collect();
        let mut symbols = Symbols::default();
        let mut rows: BTreeMap<SiteKey, (SiteRow, BTreeSet<u32>)> = BTreeMap::new();
        for ((trace, time), sums) in run.ranks.iter().zip(&timeline.ranks).zip(per_rank) {
            let modules = modules(trace);
            for ((function, address, module, through_binding), sums) in sums {
                let Some(name) = trace.file.function_name(function) else { continue };
                let module = module.and_then(|index| modules.get(index));
                let (path, id, base) =
                    module.map_or(("", "", 0), |m| (m.path.as_str(), m.build_id.as_str(), m.base));
                let address = address.wrapping_sub(base);
                let key = (path.to_owned(), id.to_owned(), address, name);
                let (row, ranks) = rows.entry(key).or_insert_with(|| {
                    let row = SiteRow {
                        function: name.to_owned(),
                        module: path.to_owned(),
                        address,
                        through_binding,
                        place: symbols.place(path, id, address),
                        count: 0,
                        time_s: 0.0,
                        max_s: 0.0,
                        ranks: 0,
                    };
                    (row, BTreeSet::new())
                });
                row.count = row.count.saturating_add(sums.count);
                row.time_s += time.clock.duration_s(sums.ticks);
                row.max_s = row.max_s.max(time.clock.duration_s(sums.max_ticks));
                ranks.insert(trace.rank);
            }
        }
        let rows = rows.into_values().map(|(row, ranks)| SiteRow { ranks: ranks.len(), ..row });
        let mut rows: Vec<SiteRow> = rows.collect();
        rows.sort_by(|a, b| b.time_s.total_cmp(&a.time_s));
        Some(Self { rows, unusable: symbols.unusable })
    }
}
