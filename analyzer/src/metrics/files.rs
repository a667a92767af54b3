//! Calls on files: bytes and time by file and by rank.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::{Deserialize, Serialize};
use trace_format::file_calls::{FileCallKind, FileCalls, FileReads};
use trace_format::header::{Definition, FileRecording, ObjectKind, Phase};
use trace_format::layout::TOOL;
use trace_format::markers::ToolReason;
use trace_format::meaning::Class;
use trace_format::reader::{Event, RankFile};

use crate::analysis::spans::Span;
use crate::analysis::{Analysis, CallObserver, RankObserver, RankView, ThreadView};
use crate::timeline::RankTime;
use crate::trace::{RankTrace, Run};

use super::figures::RankMetrics;
use super::file_numbers::FileNumbers;
use super::file_use::{FileMetrics, FileUse, RankFiles, SlowestRank, Unseen};
use super::resolve::{RankSelection, Resolved};

/// Whether calls on files were to be recorded.
pub(super) fn is_recorded(run: &Run) -> bool {
    run.ranks.iter().any(|rank| recordings(rank).next().is_some())
}

fn recordings(rank: &RankTrace) -> impl Iterator<Item = &FileRecording> {
    rank.file.definitions.iter().filter_map(|definition| match definition {
        Definition::FileRecording(of) => Some(of),
        _ => None,
    })
}

/// Sums calls on files in a selection.
pub(super) struct Files<'s> {
    pub selection: &'s Resolved,
}

/// Calls of a kind on a file; parts of records that lie in the selection with a part.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
struct Sums {
    calls: f64,
    bytes: f64,
    ticks: f64,
}

impl Sums {
    fn add(&mut self, calls: &FileCalls, part: f64) {
        self.calls += calls.calls as f64 * part;
        self.bytes += calls.bytes as f64 * part;
        self.ticks += calls.inside as f64 * part;
    }
}

/// Where a call on a file was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
enum Where {
    /// By a thread that calls MPI, outside of it.
    Outside,
    InsideMpi,
    /// By another thread.
    OtherThread,
}

/// The file's number on the rank, what the calls do, and where they were made.
type Key = (u32, FileCallKind, Where);

/// Calls on files of one rank.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct RankSums {
    sums: Vec<(Key, Sums)>,
    /// Calls of MPI that read or write, by the number of MPI's file.
    by_mpi: Vec<(u32, Sums)>,
    /// How often calls on a file (second) were made inside such a call on a file of MPI (first).
    below: Vec<((u32, u32), u64)>,
}

/// Calls on files of one rank, while they are read.
pub(super) struct RankFilesPass<'s> {
    selection: &'s RankSelection,
    sums: HashMap<Key, Sums>,
    by_mpi: HashMap<u32, Sums>,
    below: HashMap<(u32, u32), u64>,
}

impl<'a, 's> CallObserver<'a> for Files<'s> {
    type OfRank = RankFilesPass<'s>;

    fn begin_rank(&self, rank: RankView<'a>) -> RankFilesPass<'s> {
        let mut pass = RankFilesPass {
            selection: &self.selection.ranks[rank.position],
            sums: HashMap::new(),
            by_mpi: HashMap::new(),
            below: HashMap::new(),
        };
        // When other threads made their calls is not known.
        if self.selection.whole {
            for of in recordings(rank.trace).flat_map(|of| &of.sums) {
                let place = match of.kind & FileCallKind::INSIDE_MPI {
                    0 => Where::OtherThread,
                    _ => Where::InsideMpi,
                };
                if let Some(kind) = FileCallKind::from_field(of.kind) {
                    pass.sums.entry((of.file, kind, place)).or_default().add(&of.calls, 1.0);
                }
            }
        }
        pass
    }
}

/// Reads the events once more: spans have no continuations.
impl<'a> RankObserver<'a> for RankFilesPass<'_> {
    fn begin_thread(&mut self, thread: ThreadView<'a>) {
        let file = &thread.rank.trace.file;
        // The file of MPI that the thread's last call read or wrote.
        let mut last = None;
        for event in thread.events(None) {
            if event.is_call() {
                last = moved_by_mpi(file, &event);
                if let Some(object) = last {
                    let part = self.part(event.begin, event.end.unwrap_or(event.begin));
                    let calls = FileCalls { calls: 1, bytes: event.sent, inside: 0, span: 0 };
                    if part > 0.0 {
                        self.by_mpi.entry(object).or_default().add(&calls, part);
                    }
                }
                continue;
            }
            if event.function != TOOL || event.peer != ToolReason::FileCalls as i32 {
                continue;
            }
            let (Some(calls), Some(kind)) =
                (file.file_calls(&event), FileCallKind::from_field(event.communicator))
            else {
                continue;
            };
            let number = (event.payload[0] >> 32) as u32;
            let (place, begin, end) = match event.communicator & FileCallKind::INSIDE_MPI {
                0 => (Where::Outside, event.begin, event.begin.saturating_add(calls.span)),
                _ => (Where::InsideMpi, event.begin.saturating_sub(calls.span), event.begin),
            };
            if let (Where::InsideMpi, FileCallKind::Read | FileCallKind::Write, Some(object)) =
                (place, kind, last)
            {
                *self.below.entry((object, number)).or_default() += calls.calls;
            }
            let part = self.part(begin, end);
            if part > 0.0 {
                self.sums.entry((number, kind, place)).or_default().add(&calls, part);
            }
        }
    }

    fn span(&mut self, _span: &Span) {}
    fn end_thread(&mut self) {}
}

impl RankFilesPass<'_> {
    /// The part of a record that lies in the selection.
    fn part(&self, begin: u64, end: u64) -> f64 {
        let stretches = &self.selection.stretches;
        if begin == end {
            let inside = |(from, to): &(u64, u64)| *from <= begin && begin < *to;
            return if stretches.iter().any(inside) { 1.0 } else { 0.0 };
        }
        let from = stretches.partition_point(|(_, to)| *to <= begin);
        let inside = stretches[from..].iter().take_while(|(from, _)| *from < end);
        let inside: u64 = inside.map(|(from, to)| end.min(*to) - begin.max(*from)).sum();
        inside as f64 / (end - begin) as f64
    }

    pub fn finish(self) -> RankSums {
        fn sorted<K: Ord + Copy, V>(map: HashMap<K, V>) -> Vec<(K, V)> {
            let mut all: Vec<(K, V)> = map.into_iter().collect();
            all.sort_unstable_by_key(|(key, _)| *key);
            all
        }
        RankSums { sums: sorted(self.sums), by_mpi: sorted(self.by_mpi), below: sorted(self.below) }
    }
}

/// MPI's file, if a call reads or writes one.
fn moved_by_mpi(file: &RankFile, event: &Event) -> Option<u32> {
    let is_io = file.meaning(event.function)?.class == Class::Io;
    let name = file.function_name(event.function)?;
    let moves = name.contains("read") || name.contains("write");
    (is_io && moves && event.object != 0).then_some(event.object)
}

/// What MPI calls its files, by their numbers on a rank.
fn mpi_names(trace: &RankTrace) -> HashMap<u32, &str> {
    let names = trace.file.definitions.iter().filter_map(|definition| match definition {
        Definition::Object { kind: ObjectKind::File, id, name, .. } => Some((*id, name.as_str())),
        _ => None,
    });
    names.collect()
}

/// A file on all ranks.
#[derive(Default)]
struct Gathered {
    of: FileUse,
    ranks: BTreeSet<u32>,
    slowest: Option<SlowestRank>,
}

impl FileMetrics {
    pub(super) fn new(
        analysis: &Analysis,
        is_whole: bool,
        ranks: &[RankMetrics],
        sums: &[RankSums],
    ) -> Option<Self> {
        let run = analysis.run;
        if !is_recorded(run) || sums.len() != ranks.len() {
            return None;
        }
        let numbers = FileNumbers::new(run);
        let mut files: Vec<Gathered> = Vec::new();
        for index in 0..numbers.count() {
            let (number, name) = (index as u64 + 1, numbers.name(index).map(str::to_owned));
            let of = FileUse { number, name, ..FileUse::default() };
            files.push(Gathered { of, ..Gathered::default() });
        }
        let mut of_ranks = Vec::new();
        let mut below = Vec::new();
        let all_sums = sums;
        let times = analysis.timeline.ranks.iter().enumerate();
        for ((position, time), (metrics, sums)) in times.zip(ranks.iter().zip(sums)) {
            let mut of_rank = RankFiles { rank: metrics.rank, ..RankFiles::default() };
            let mut rank_files: BTreeMap<usize, f64> = BTreeMap::new();
            let mut own_files: HashMap<u32, usize> = HashMap::new();
            for ((number, kind, place), sums) in &sums.sums {
                let index = numbers.index(position, *number);
                own_files.insert(*number, index);
                let seconds = seconds(time, sums.ticks);
                files[index].of.add(*kind, *sums, *place, seconds);
                files[index].ranks.insert(metrics.rank);
                of_rank.add(*kind, *sums, *place, seconds);
                *rank_files.entry(index).or_default() += seconds;
            }
            for (number, reads) in placed_reads(run, position).filter(|_| is_whole) {
                if let Some(index) = own_files.get(&number) {
                    let of = &mut files[*index].of;
                    of.placed_reads += reads.calls;
                    of.unaligned_reads += reads.unaligned;
                    of.read_again_bytes += reads.bytes.saturating_sub(reads.end);
                }
            }
            for (index, seconds) in &rank_files {
                let slowest = &mut files[*index].slowest;
                if slowest.is_none_or(|of| *seconds > of.seconds) {
                    *slowest = Some(SlowestRank { rank: metrics.rank, seconds: *seconds });
                }
            }
            of_rank.files = rank_files.len() as u64;
            of_ranks.push(of_rank);
            below.push(files_below(sums, &own_files));
        }
        add_mpi(run, &below, all_sums, &mut files);
        let mut files: Vec<FileUse> = files
            .into_iter()
            .filter(|gathered| !gathered.ranks.is_empty())
            .map(|Gathered { of, ranks, slowest }| FileUse {
                ranks: ranks.len() as u64,
                slowest,
                ..of
            })
            .collect();
        files.sort_by(|a, b| b.seconds.total_cmp(&a.seconds).then(a.number.cmp(&b.number)));
        let unseen = is_whole.then(|| unseen(run, &of_ranks)).flatten();
        let is_loaded = run.ranks.iter().any(|rank| recordings(rank).any(|of| of.is_loaded));
        let has_totals =
            |rank: &RankTrace| rank.file.threads.iter().any(|thread| thread.totals.is_some());
        let is_partial = run.ranks.iter().any(has_totals);
        Some(Self { is_loaded, is_partial, files, ranks: of_ranks, unseen })
    }
}

/// The reads of a rank's files whose offsets are known, by the files' numbers.
fn placed_reads(run: &Run, position: usize) -> impl Iterator<Item = (u32, FileReads)> {
    let definitions = run.ranks[position].file.definitions.iter();
    // Another session has those before, too.
    let last: BTreeMap<u32, FileReads> = definitions
        .filter_map(|definition| match definition {
            Definition::FileReads { file, reads } => Some((*file, *reads)),
            _ => None,
        })
        .collect();
    last.into_iter()
}

/// For the files of MPI on a rank, the file on which most calls were made inside.
fn files_below(sums: &RankSums, own_files: &HashMap<u32, usize>) -> HashMap<u32, usize> {
    let mut most: HashMap<u32, (u64, usize)> = HashMap::new();
    for ((object, number), calls) in &sums.below {
        if let Some(index) = own_files.get(number) {
            let found = most.entry(*object).or_insert((0, *index));
            *found = (*found).max((*calls, *index));
        }
    }
    most.into_iter().map(|(object, (_, index))| (object, index)).collect()
}

/// Adds the calls of MPI to the files below them. A rank for which others read and write has the file of the same name.
fn add_mpi(run: &Run, below: &[HashMap<u32, usize>], sums: &[RankSums], files: &mut [Gathered]) {
    let mut by_name: BTreeMap<&str, usize> = BTreeMap::new();
    for (trace, below) in run.ranks.iter().zip(below) {
        let names = mpi_names(trace);
        for (object, index) in below {
            if let Some(name) = names.get(object).filter(|name| !name.is_empty()) {
                by_name.insert(name, *index);
            }
        }
    }
    for ((trace, below), sums) in run.ranks.iter().zip(below).zip(sums) {
        let names = mpi_names(trace);
        for (object, sums) in &sums.by_mpi {
            let named = || by_name.get(names.get(object)?).copied();
            if let Some(index) = below.get(object).copied().or_else(named) {
                files[index].of.mpi_calls += sums.calls.round() as u64;
                files[index].of.mpi_bytes += sums.bytes.round() as u64;
            }
        }
    }
}

/// Ticks of a rank's counter as seconds.
fn seconds(time: &RankTime, ticks: f64) -> f64 {
    time.clock.duration_s(ticks.round() as u64)
}

/// What the kernel counted beyond what was seen, on ranks of which both readings are there and all events were kept.
fn unseen(run: &Run, ranks: &[RankFiles]) -> Option<Unseen> {
    let mut all: Option<Unseen> = None;
    for (trace, of_rank) in run.ranks.iter().zip(ranks) {
        let readings =
            |phase| recordings(trace).filter(move |of| of.phase == phase && of.is_loaded);
        // Between sessions the recording ends, too.
        let (begin, end) = (readings(Phase::Init).next(), readings(Phase::Finalize).last());
        let (Some(begin), Some(end)) = (begin, end) else { continue };
        let (Some(from), Some(to)) = (begin.moved, end.moved) else { continue };
        let is_partial = trace.file.threads.iter().any(|thread| thread.totals.is_some())
            || trace.facts.lost_events.is_some_and(|lost| lost > 0);
        if is_partial {
            continue;
        }
        let beyond = |to: u64, from: u64, elsewhere: (u64, u64), recorded: u64| {
            let seen = elsewhere.0.saturating_sub(elsewhere.1).saturating_add(recorded);
            to.saturating_sub(from).saturating_sub(seen)
        };
        let elsewhere = (end.elsewhere, begin.elsewhere);
        let read = beyond(to.0, from.0, (elsewhere.0.0, elsewhere.1.0), of_rank.read_bytes);
        let written = beyond(to.1, from.1, (elsewhere.0.1, elsewhere.1.1), of_rank.written_bytes);
        let all = all.get_or_insert_default();
        all.read_bytes += read;
        all.written_bytes += written;
    }
    all
}

/// Adds calls of a kind to figures that have these fields.
macro_rules! add_calls {
    ($type:ty) => {
        impl $type {
            fn add(&mut self, kind: FileCallKind, sums: Sums, place: Where, seconds: f64) {
                let calls = sums.calls.round() as u64;
                match kind {
                    FileCallKind::Read => {
                        self.reads += calls;
                        self.read_bytes += sums.bytes.round() as u64;
                        self.read_s += seconds;
                    }
                    FileCallKind::Write => {
                        self.writes += calls;
                        self.written_bytes += sums.bytes.round() as u64;
                        self.write_s += seconds;
                    }
                    FileCallKind::Map => {
                        self.mappings += calls;
                        return;
                    }
                    FileCallKind::Open => {
                        self.opens += calls;
                        self.open_s += seconds;
                    }
                    FileCallKind::Sync | FileCallKind::Resize | FileCallKind::Close => {}
                }
                self.calls += calls;
                self.seconds += seconds;
                match place {
                    Where::Outside => {}
                    Where::InsideMpi => self.inside_mpi_s += seconds,
                    Where::OtherThread => self.other_threads_s += seconds,
                }
            }
        }
    };
}

add_calls!(FileUse);
add_calls!(RankFiles);
