//! Long calls by call path: one row per function and path, with equal paths of all ranks merged.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::{Deserialize, Serialize};
use trace_format::header::Definition;
use trace_format::markers::ToolReason;

use crate::analysis::spans::{PlainCall, Span, SpanKind};
use crate::analysis::{CallObserver, RankObserver, RankView, ThreadView};
use crate::timeline::GlobalTimeline;
use crate::trace::Run;
use crate::trace::symbols::{SourceLocation, Symbols};

use super::resolve::{RankSelection, Resolved};
use crate::trace::modules::{code_of, in_file, module_of};

/// A function on the stack of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Frame {
    /// Path of the program or library that contains its code; empty if unknown.
    pub module: String,
    /// Address at which it continues, relative to that file; in memory if the module is unknown.
    pub address: u64,
    /// Function, file and line, as far as known from the module's file.
    pub place: SourceLocation,
}

/// Long calls of one function along one path.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PathRow {
    /// Name of the MPI function.
    pub function: String,
    /// The program's functions, innermost first, without frames of the MPI library at the inner end
    /// and start-up code at the outer end.
    #[serde(skip)]
    pub frames: Vec<Frame>,
    /// Calls with this path that began in the selection.
    pub count: u64,
    /// Seconds in them.
    pub time_s: f64,
    /// Seconds of the longest call.
    pub max_s: f64,
    /// Number of ranks with this path.
    pub ranks: usize,
}

/// Sums the calls of a selection by path.
pub(super) struct Paths<'s> {
    pub selection: &'s Resolved,
}

/// The call paths of one rank by function and path number, in order.
pub(super) type PathSums = Vec<((u16, u32), Sums)>;

/// The call paths of one rank, while its spans are read.
pub(super) struct RankPaths<'s> {
    selection: &'s RankSelection,
    /// Function, start and length of the thread's last call.
    last: (u16, u64, u64),
    /// By function and path number.
    sums: HashMap<(u16, u32), Sums>,
}

/// Whether a run recorded call paths.
pub(super) fn are_recorded(run: &Run) -> bool {
    let mut definitions = run.ranks.iter().flat_map(|rank| &rank.file.definitions);
    definitions.any(|definition| matches!(definition, Definition::Path { .. }))
}

impl<'a, 's> CallObserver<'a> for Paths<'s> {
    type OfRank = RankPaths<'s>;

    fn begin_rank(&self, rank: RankView<'a>) -> RankPaths<'s> {
        let selection = &self.selection.ranks[rank.position];
        RankPaths { selection, last: (0, 0, 0), sums: HashMap::new() }
    }
}

impl<'a> RankObserver<'a> for RankPaths<'_> {
    fn begin_thread(&mut self, _thread: ThreadView<'a>) {
        self.last = (0, 0, 0);
    }

    #[inline]
    fn plain(&mut self, call: &PlainCall) {
        self.last = (call.function(), call.begin_ticks(), call.ticks());
    }

    fn span(&mut self, span: &Span) {
        match span.kind {
            SpanKind::Call(function) => {
                self.last = (function, span.begin_ticks, span.end_ticks - span.begin_ticks);
            }
            SpanKind::Tool if span.payload[0] as u32 == ToolReason::Path as u32 => {
                let (function, begin_ticks, ticks) = std::mem::take(&mut self.last);
                if function != 0 && self.selection.counts(begin_ticks) {
                    let number = (span.payload[0] >> 32) as u32;
                    self.sums.entry((function, number)).or_default().add((1, ticks));
                }
            }
            _ => {}
        }
    }

    fn end_thread(&mut self) {}
}

impl RankPaths<'_> {
    /// The sums of all paths, in order.
    pub fn finish(self) -> PathSums {
        let mut sums: PathSums = self.sums.into_iter().collect();
        sums.sort_unstable_by_key(|(key, _)| *key);
        sums
    }
}

/// A frame over all ranks: path and build id of its module, address in it.
pub(crate) type FrameKey = (String, String, u64);

/// Long calls of one function along one path, on all ranks.
#[derive(Debug, Default)]
struct Gathered {
    count: u64,
    time_s: f64,
    max_s: f64,
    ranks: BTreeSet<u32>,
}

/// Merges the ranks' paths into rows, most time first.
pub(super) fn rows(
    run: &Run,
    timeline: &GlobalTimeline,
    symbols: &mut Symbols,
    per_rank: Vec<PathSums>,
) -> Vec<PathRow> {
    let mut found: BTreeMap<(&str, Vec<FrameKey>), Gathered> = BTreeMap::new();
    for ((trace, time), paths) in run.ranks.iter().zip(&timeline.ranks).zip(per_rank) {
        let known = keys_of_paths(&trace.file.definitions);
        for ((function, number), sums) in paths {
            let name = trace.file.function_name(function);
            let (Some(name), Some(path)) = (name, known.get(&number)) else { continue };
            let gathered = found.entry((name, path.clone())).or_default();
            gathered.count = gathered.count.saturating_add(sums.count);
            gathered.time_s += time.clock.duration_s(sums.ticks);
            gathered.max_s = gathered.max_s.max(time.clock.duration_s(sums.max_ticks));
            gathered.ranks.insert(trace.rank);
        }
    }
    let row = |((function, path), gathered): ((&str, Vec<FrameKey>), Gathered)| {
        let frames = path.into_iter().map(|(module, id, address)| {
            let place = symbols.location(&module, &id, address);
            Frame { module, address, place }
        });
        PathRow {
            function: function.to_owned(),
            frames: program_frames(frames.collect()),
            count: gathered.count,
            time_s: gathered.time_s,
            max_s: gathered.max_s,
            ranks: gathered.ranks.len(),
        }
    };
    let mut rows: Vec<PathRow> = found.into_iter().map(row).collect();
    rows.sort_by(|a, b| b.time_s.total_cmp(&a.time_s));
    rows
}

/// The call paths of a rank's file, by number: frames, innermost first.
pub(crate) fn keys_of_paths(definitions: &[Definition]) -> HashMap<u32, Vec<FrameKey>> {
    let (mut modules, mut paths): (Vec<_>, _) = (code_of(definitions).collect(), HashMap::new());
    for definition in definitions {
        match definition {
            Definition::Module(module) => modules.push(module),
            // The modules of a path are defined before it. Others may be loaded there later.
            Definition::Path { number, addresses } => {
                let key = |&address: &u64| {
                    let module = module_of(&modules, address, u64::MAX).map(|index| modules[index]);
                    let (path, id, address) = in_file(module, address);
                    (path.to_owned(), id.to_owned(), address)
                };
                paths.insert(*number, addresses.iter().map(key).collect());
            }
            _ => {}
        }
    }
    paths
}

/// Drops frames of the MPI library at the inner end and start-up code at the outer end.
fn program_frames(mut frames: Vec<Frame>) -> Vec<Frame> {
    let is = |frame: &Frame, names: &[&str]| {
        let name = frame.module.rsplit('/').next().unwrap_or_default();
        names.iter().any(|start| name.starts_with(start))
    };
    let inner = frames.iter().take_while(|frame| is(frame, &["libmpi", "libpmpi"])).count();
    // A path with nothing else is shown unchanged.
    if inner < frames.len() {
        frames.drain(..inner);
    }
    let main = |frame: &Frame| frame.place.function.as_deref() == Some("main");
    if let Some(main) = frames.iter().rposition(main) {
        frames.truncate(main + 1);
    }
    while frames.len() > 1
        && frames.last().is_some_and(|frame| {
            is(frame, &["libc.so", "libc-", "libpthread", "ld-"])
                || frame.place.function.as_deref() == Some("_start")
        })
    {
        frames.pop();
    }
    frames
}

/// Number of calls, their time, and the longest.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(super) struct Sums {
    pub count: u64,
    pub ticks: u64,
    pub max_ticks: u64,
}

impl Sums {
    /// Adds `count` calls that took `ticks` together.
    #[inline]
    pub fn add(&mut self, (count, ticks): (u64, u64)) {
        let mean = if count == 1 { ticks } else { ticks / count.max(1) };
        self.merge(&Self { count, ticks, max_ticks: mean });
    }

    #[inline]
    pub fn merge(&mut self, other: &Self) {
        self.count = self.count.saturating_add(other.count);
        self.ticks = self.ticks.saturating_add(other.ticks);
        self.max_ticks = self.max_ticks.max(other.max_ticks);
    }
}

#[cfg(test)]
mod tests {
    use trace_format::header::Module;
    use trace_format::samples::interpreted;

    use super::*;

    #[test]
    fn interpreted_function_may_be_defined_behind_the_path() {
        let (path, identity) = ("/heat.py".to_owned(), "python solve".to_owned());
        let (base, end) = (interpreted(3, 0), interpreted(4, 0));
        let code = Definition::Code(Module { path, identity, base, begin: base, end, ticks: 9 });
        let path = Definition::Path { number: 0, addresses: vec![interpreted(3, 42)] };
        let found = keys_of_paths(&[path, code])[&0][0].clone();
        assert_eq!(found, ("/heat.py".to_owned(), "python solve".to_owned(), 42));
        let place = Symbols::default().location(&found.0, &found.1, found.2);
        assert_eq!((place.function.as_deref(), place.line), (Some("solve"), Some(42)));
    }

    #[test]
    fn path_belongs_to_the_module_that_was_there_before() {
        let module = |path: &str, ticks| {
            Definition::Module(Module {
                path: path.to_owned(),
                identity: String::new(),
                base: 0x1000,
                begin: 0x1000,
                end: 0x2000,
                ticks,
            })
        };
        let path = |number| Definition::Path { number, addresses: vec![0x1010] };
        let keys = keys_of_paths(&[module("/a.so", 1), path(0), module("/b.so", 2), path(1)]);
        let of = |number| (keys[&number][0].0.as_str(), keys[&number][0].2);
        assert_eq!((of(0), of(1)), (("/a.so", 0x10), ("/b.so", 0x10)));
    }
}
