//! Calls by call site: one row per function and site, with equal sites of all ranks merged.

use serde::{Serialize, Serializer};

use std::collections::{BTreeMap, BTreeSet, HashMap};

use trace_format::header::Module;

use crate::analysis::spans::{PlainCall, Span, SpanKind};
use crate::analysis::{CallObserver, RankObserver, RankView, ThreadView};
use crate::timeline::GlobalTimeline;
use crate::trace::Run;
use crate::trace::modules::{in_file, module_of, modules};
use crate::trace::symbols::{SourceLocation, Symbols};

use super::paths::{self, PathRow, PathSums, Sums};
use super::resolve::{RankSelection, Resolved};

/// Calls of one function from one call site.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SiteRow {
    /// Name of the MPI function.
    pub function: String,
    /// Path of the program or library that made the call; empty (in documents null) if unknown.
    #[serde(serialize_with = "unless_empty")]
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub module: String,
    /// Return address of the call, relative to that file; in memory if the module is unknown.
    pub address: u64,
    /// Whether the call went through a language binding of MPI, whose caller this is.
    pub through_binding: bool,
    /// Function, file and line, as far as known from the module's file.
    #[serde(skip)]
    pub place: SourceLocation,
    /// Calls that began in the selection.
    pub count: u64,
    /// Seconds in them.
    pub time_s: f64,
    /// Seconds of the longest call.
    pub max_s: f64,
    /// Number of ranks that called from here.
    pub ranks: usize,
}

fn unless_empty<S: Serializer>(name: &str, serializer: S) -> Result<S::Ok, S::Error> {
    Some(name).filter(|name| !name.is_empty()).serialize(serializer)
}

/// Calls by site.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SiteMetrics {
    /// Call sites, most time first.
    pub rows: Vec<SiteRow>,
    /// Long calls by call path (level 2), most time first.
    pub paths: Vec<PathRow>,
    /// Modules without names: path and reason.
    pub unusable: Vec<(String, &'static str)>,
}

/// A call site on one rank: function, address in memory, index of its module if known, and whether
/// the call went through a binding.
type Key = (u16, u64, Option<usize>, bool);

/// A call site over all ranks: path and build id of its module, address in it, function.
type SiteKey<'a> = (String, String, u64, &'a str);

/// Size of a rank's cache of call sites; a program uses few at a time.
const CACHE_SLOTS: usize = 256;

/// Sums the calls of a selection by site.
pub(super) struct Sites<'s> {
    pub selection: &'s Resolved,
}

impl<'a, 's> CallObserver<'a> for Sites<'s> {
    type OfRank = RankSites<'a, 's>;

    fn begin_rank(&self, rank: RankView<'a>) -> RankSites<'a, 's> {
        let modules = modules(&rank.trace.file.definitions);
        let latest = modules.iter().map(|module| module.ticks).max().unwrap_or(0);
        RankSites {
            selection: &self.selection.ranks[rank.position],
            modules,
            latest,
            cache: vec![CacheSlot::default(); CACHE_SLOTS],
            sums: HashMap::new(),
        }
    }
}

/// The call sites of one rank, in order.
pub(super) type SiteSums = Vec<(Key, Sums)>;

/// Calls of one function from one site, made after the last module was loaded.
#[derive(Debug, Clone, Copy, Default)]
struct CacheSlot {
    /// 0 in a free slot.
    function: u16,
    site: (u64, bool),
    sums: Sums,
}

/// The call sites of one rank.
pub(super) struct RankSites<'a, 's> {
    selection: &'s RankSelection,
    modules: Vec<&'a Module>,
    /// Counter at which the last module was loaded.
    latest: u64,
    /// Calls made after that, by hash; an evicted slot is added to the sums.
    cache: Vec<CacheSlot>,
    sums: HashMap<Key, Sums>,
}

impl RankSites<'_, '_> {
    /// Adds calls of a function (count and ticks) made at a site and beginning at this moment.
    #[inline]
    fn add(&mut self, function: u16, site: (u64, bool), begin_ticks: u64, counts: (u64, u64)) {
        if !self.selection.counts(begin_ticks) {
            return;
        }
        let number = (site.0 ^ site.0 >> 8 ^ u64::from(function)) as usize % CACHE_SLOTS;
        let slot = &mut self.cache[number];
        if slot.site != site || slot.function != function || begin_ticks <= self.latest {
            return self.add_new(
                number,
                CacheSlot { function, site, ..CacheSlot::default() },
                begin_ticks,
                counts,
            );
        }
        slot.sums.add(counts);
    }

    #[cold]
    fn add_new(&mut self, number: usize, mut new: CacheSlot, begin_ticks: u64, counts: (u64, u64)) {
        new.sums.add(counts);
        if begin_ticks <= self.latest {
            return self.flush(&new, begin_ticks);
        }
        let old = std::mem::replace(&mut self.cache[number], new);
        self.flush(&old, u64::MAX);
    }

    /// Adds a slot to the sums; its calls began at this moment, or after the last module was
    /// loaded.
    fn flush(&mut self, of: &CacheSlot, begin_ticks: u64) {
        if of.function != 0 {
            let (address, through_binding) = of.site;
            let module = module_of(&self.modules, address, begin_ticks);
            let key = (of.function, address, module, through_binding);
            self.sums.entry(key).or_default().merge(&of.sums);
        }
    }

    /// The sums of all sites, in order.
    pub fn finish(mut self) -> SiteSums {
        for slot in std::mem::take(&mut self.cache) {
            self.flush(&slot, u64::MAX);
        }
        let mut sums: SiteSums = self.sums.into_iter().collect();
        sums.sort_unstable_by_key(|(key, _)| *key);
        sums
    }
}

impl<'a> RankObserver<'a> for RankSites<'a, '_> {
    fn begin_thread(&mut self, _thread: ThreadView<'a>) {}

    #[inline]
    fn plain(&mut self, call: &PlainCall) {
        if let Some(site) = call.site() {
            self.add(call.function(), site, call.begin_ticks(), (1, call.ticks()));
        }
    }

    fn span(&mut self, span: &Span) {
        let Some(site) = span.site else { return };
        let (function, counts) = match span.kind {
            SpanKind::Call(function) => (function, (1, span.end_ticks - span.begin_ticks)),
            SpanKind::Polls { function, count, inside_ticks } => (function, (count, inside_ticks)),
            _ => return,
        };
        self.add(function, site, span.begin_ticks, counts);
    }

    fn end_thread(&mut self) {}
}

impl SiteMetrics {
    /// Merges the ranks; `None` if no call site was recorded.
    pub(super) fn from_ranks(
        run: &Run,
        timeline: &GlobalTimeline,
        (per_rank, paths): (Vec<SiteSums>, Vec<PathSums>),
    ) -> Option<Self> {
        if per_rank.iter().all(Vec::is_empty) {
            return None;
        }
        let mut symbols = Symbols::for_run(run);
        let mut rows: BTreeMap<SiteKey, (SiteRow, BTreeSet<u32>)> = BTreeMap::new();
        for ((trace, time), sites) in run.ranks.iter().zip(&timeline.ranks).zip(per_rank) {
            let modules = modules(&trace.file.definitions);
            for ((function, address, module, through_binding), sums) in sites {
                let Some(name) = trace.file.function_name(function) else { continue };
                let module = module.and_then(|index| modules.get(index));
                let (path, id, address) = in_file(module.copied(), address);
                let key = (path.to_owned(), id.to_owned(), address, name);
                let (row, ranks) = rows.entry(key).or_insert_with(|| {
                    let row = SiteRow {
                        function: name.to_owned(),
                        module: path.to_owned(),
                        address,
                        through_binding,
                        place: symbols.location(path, id, address),
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
        let paths = paths::rows(run, timeline, &mut symbols, paths);
        Some(Self { rows, paths, unusable: symbols.unusable })
    }
}
