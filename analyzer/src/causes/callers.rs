//! Finds where a user's own program called the library that called MPI, from call paths.
//!
//! Long calls have a path. A short call has none; it is taken to come from where all recorded paths
//! through its library's function come from, if that is one place and, on some rank, most calls at
//! one of the function's sites have a path. Else, what made a rank late for a collective operation
//! is taken to lie before the place from which the waiting rank came, if both were in one function.

use std::collections::BTreeSet;

use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};
use trace_format::header::{Definition, Module};
use trace_format::layout::TOOL;

use crate::metrics::{FrameKey, keys_of_paths};
use crate::trace::modules::{code_of, in_file, modules};
use crate::trace::own_program::OwnProgram;
use crate::trace::symbols::{SourceLocation, Symbols};
use crate::trace::{RankTrace, Run};

use super::contexts::{CallSite, Context, Contexts, NO_CONTEXT, PARALLEL_REGION, name_on_files};
use super::local_site::{LocalSite, kind_on_files};
use super::states::State;

/// How many calls of one rank there are at each site, and how many of them have which path.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct PathCounts {
    /// Whether the rank has paths; otherwise nothing is counted.
    are_recorded: bool,
    at_sites: FxHashMap<LocalSite, u64>,
    with_paths: FxHashMap<(LocalSite, u32), u64>,
}

impl PathCounts {
    /// Without calls.
    pub fn new(trace: &RankTrace) -> Self {
        let mut definitions = trace.file.definitions.iter();
        let are_recorded = definitions.any(|of| matches!(of, Definition::Path { .. }));
        Self { are_recorded, ..Self::default() }
    }

    /// Adds a call.
    #[inline]
    pub fn add(&mut self, site: LocalSite) {
        if self.are_recorded {
            *self.at_sites.entry(site).or_default() += 1;
        }
    }

    /// Adds the path of a call.
    pub fn add_path(&mut self, site: LocalSite, path: u32) {
        *self.with_paths.entry((site, path)).or_default() += 1;
    }

    /// Sites at which most calls have a path.
    fn mostly_known(&self) -> FxHashSet<LocalSite> {
        let mut known: FxHashMap<LocalSite, u64> = FxHashMap::default();
        for ((site, _), count) in &self.with_paths {
            *known.entry(*site).or_default() += count;
        }
        let all = |site: &LocalSite| self.at_sites.get(site).copied().unwrap_or(0);
        known.into_iter().filter(|(site, count)| count * 2 > all(site)).map(|of| of.0).collect()
    }
}

/// A call site over all ranks: module path, build id, address in the module, MPI function.
pub(super) type SiteKey = (String, String, u64, String);

/// A call site with what called its library.
#[derive(Debug)]
pub(super) struct CalledSite {
    pub key: SiteKey,
    /// Whether it is not in the user's own program.
    pub is_in_library: bool,
    /// Where the user's own program called that library.
    pub caller: Option<FrameKey>,
}

/// The callers of a run's libraries.
pub(super) struct Callers<'r> {
    ranks: Vec<RankCallers<'r>>,
    /// Of functions that are called from one place, as far as is known.
    sole: FxHashMap<FunctionKey, FrameKey>,
}

/// A function of a library: module path, build id, and its name or, if that is not known, the address
/// of a call.
type FunctionKey = (String, String, Result<String, u64>);

fn function_of((path, id, address, _): &SiteKey, symbols: &mut Symbols) -> FunctionKey {
    let name = symbols.location(path, id, *address).function;
    (path.clone(), id.clone(), name.ok_or(*address))
}

/// Makes frames of one line equal: compilers copy calls, as out of a loop's first turn.
#[derive(Default)]
struct SourceLines {
    /// By frame; of those of one line, the first.
    known: FxHashMap<FrameKey, FrameKey>,
    frames: FxHashMap<(String, String, SourceLocation), FrameKey>,
}

impl SourceLines {
    fn frame(&mut self, frame: FrameKey, symbols: &mut Symbols) -> FrameKey {
        if let Some(known) = self.known.get(&frame) {
            return known.clone();
        }
        let (path, id, address) = &frame;
        let location = symbols.location(path, id, *address);
        let first = match location.line {
            None => frame.clone(),
            Some(_) => {
                let line = (path.clone(), id.clone(), location);
                self.frames.entry(line).or_insert_with(|| frame.clone()).clone()
            }
        };
        self.known.insert(frame, first.clone());
        first
    }
}

struct RankCallers<'r> {
    trace: &'r RankTrace,
    modules: Vec<&'r Module>,
    own_program: OwnProgram,
    /// For each path the first frame in the user's own program.
    paths: FxHashMap<u32, FrameKey>,
}

impl<'r> RankCallers<'r> {
    /// `paths` are those definitions that hold the rank's paths; `own_frame` gives the frame that
    /// stands for all of its line.
    fn new(
        trace: &'r RankTrace,
        paths: &[Definition],
        mut own_frame: impl FnMut(FrameKey) -> FrameKey,
    ) -> Self {
        let own_program = OwnProgram::new(&trace.file.header);
        let mut paths: Vec<_> = keys_of_paths(paths).into_iter().collect();
        paths.sort_unstable_by_key(|(number, _)| *number);
        let paths = paths.into_iter().filter_map(|(number, frames)| {
            let own = frames.into_iter().find(|frame| own_program.contains(&frame.0))?;
            Some((number, own_frame(own)))
        });
        let paths = paths.collect();
        Self { trace, modules: modules(&trace.file.definitions), own_program, paths }
    }

    fn key(&self, LocalSite { function, address, load }: LocalSite) -> SiteKey {
        let name = match (function, kind_on_files(function)) {
            (TOOL, _) => PARALLEL_REGION,
            (_, Some(kind)) => name_on_files(kind),
            _ => self.trace.file.function_name(function).unwrap_or("unknown"),
        };
        let (path, id, address) = in_file(load.module(&self.modules, address), address);
        (path.to_owned(), id.to_owned(), address, name.to_owned())
    }

    fn has_loaded(&self, path: &str) -> bool {
        let code = code_of(&self.trace.file.definitions);
        self.modules.iter().copied().chain(code).any(|module| module.path == path)
    }

    /// Code without a module may be the program's.
    fn is_in_library(&self, (module, ..): &SiteKey) -> bool {
        !module.is_empty() && !self.own_program.contains(module)
    }
}

/// What is known of the callers of one site, or of all sites in one function.
#[derive(Debug, Default)]
struct Known {
    /// `None` for paths without a frame in the user's program.
    callers: BTreeSet<Option<FrameKey>>,
    /// Whether most calls of some rank have a path.
    is_mostly_known: bool,
}

impl<'r> Callers<'r> {
    /// `counts` is by rank; empty if paths do not matter.
    pub fn new(run: &'r Run, counts: &[&PathCounts], symbols: &mut Symbols) -> Self {
        let mut lines = SourceLines::default();
        let ranks = run.ranks.iter().map(|trace| {
            let paths = if counts.is_empty() { &[] } else { &trace.file.definitions[..] };
            RankCallers::new(trace, paths, |frame| lines.frame(frame, symbols))
        });
        let ranks: Vec<RankCallers> = ranks.collect();
        let mut sites: FxHashMap<SiteKey, Known> = FxHashMap::default();
        for (rank, counts) in ranks.iter().zip(counts) {
            let mostly_known = counts.mostly_known();
            for (site, path) in counts.with_paths.keys() {
                let key = rank.key(*site);
                if rank.is_in_library(&key) {
                    let known = sites.entry(key).or_default();
                    known.callers.insert(rank.paths.get(path).cloned());
                    known.is_mostly_known |= mostly_known.contains(site);
                }
            }
        }
        let mut functions: FxHashMap<FunctionKey, Known> = FxHashMap::default();
        for (key, mut of_site) in sites {
            let known = functions.entry(function_of(&key, symbols)).or_default();
            known.callers.append(&mut of_site.callers);
            known.is_mostly_known |= of_site.is_mostly_known;
        }
        let sole = functions.into_iter().filter_map(|(key, mut known)| {
            let is_sole = known.is_mostly_known && known.callers.len() == 1;
            Some((key, known.callers.pop_first().filter(|_| is_sole)??))
        });
        let sole = sole.collect();
        Self { ranks, sole }
    }

    /// A site of a rank, called along a path if that is known.
    pub fn called_site(
        &self,
        position: usize,
        (site, path): (LocalSite, Option<u32>),
        symbols: &mut Symbols,
    ) -> CalledSite {
        let rank = &self.ranks[position];
        let key = rank.key(site);
        let is_in_library = rank.is_in_library(&key);
        let caller = match path {
            _ if !is_in_library => None,
            Some(path) => rank.paths.get(&path).cloned(),
            None if self.sole.is_empty() => None,
            None => {
                let sole = self.sole.get(&function_of(&key, symbols));
                // Another program of the run may share the library.
                sole.filter(|frame| rank.has_loaded(&frame.0)).cloned()
            }
        };
        CalledSite { key, is_in_library, caller }
    }
}

fn is_meeting(state: State) -> bool {
    matches!(state, State::WaitAtBarrier | State::WaitAtNxn)
}

/// The contexts of delays, by those that their stretches have and by those of the waiting calls.
#[derive(Debug, Clone, Default)]
pub(super) struct DelayNames(FxHashMap<(u32, u32), u32>);

impl DelayNames {
    /// What [`DelayPlaces::context`] returned.
    pub fn of(&self, delay: u32, (state, waiting): (State, u32)) -> u32 {
        let named = self.0.get(&(delay, waiting)).filter(|_| is_meeting(state));
        named.copied().unwrap_or(delay)
    }
}

/// Finds what delays lie before, where the delaying rank's own call has no path.
pub(super) struct DelayPlaces<'c> {
    contexts: &'c mut Contexts,
    /// By the contexts of the delay and of the waiting call.
    known: FxHashMap<(u32, u32), u32>,
    /// Whether any waiting call is known to come from somewhere; else delays keep their names.
    pub has_callers: bool,
    /// From where on contexts were made here.
    first_named: usize,
}

impl<'c> DelayPlaces<'c> {
    pub fn new(contexts: &'c mut Contexts) -> Self {
        let has_caller = |context: &Context| match context {
            Context::Transfer(site) => site.caller.is_some(),
            _ => false,
        };
        let has_callers = contexts.all.iter().any(has_caller);
        let first_named = contexts.all.len();
        Self { contexts, known: FxHashMap::default(), has_callers, first_named }
    }

    /// What was named.
    pub fn into_names(self) -> DelayNames {
        DelayNames(self.known)
    }

    /// The context of a delay that led to a wait with this state and context. Between two operations
    /// in which all wait for all, the delaying rank enters their function no other time.
    pub fn context(&mut self, delay: u32, (state, waiting): (State, u32)) -> u32 {
        if !self.has_callers || !is_meeting(state) || waiting == NO_CONTEXT {
            return delay;
        }
        let Self { contexts, first_named, .. } = self;
        *self.known.entry((delay, waiting)).or_insert_with(|| {
            let named = match (contexts.get(delay), contexts.get(waiting)) {
                (Context::Between(from, Some(to)), Context::Transfer(waiting))
                    if to.caller.is_none() && waiting.caller.is_some() && to.is_beside(waiting) =>
                {
                    let to = CallSite { caller: waiting.caller.clone(), ..to.clone() };
                    Context::Between(from.clone(), Some(to))
                }
                _ => return delay,
            };
            let same = contexts.all[*first_named..].iter().position(|other| *other == named);
            let at = same.map_or(contexts.all.len(), |at| *first_named + at);
            if at == contexts.all.len() {
                contexts.all.push(named);
            }
            at as u32
        })
    }
}
