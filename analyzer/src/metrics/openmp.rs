//! Parallel regions of OpenMP: how the time of the threads divides into work and idle time, by rank and by place.
//!
//! A rank has n threads, those of its largest team, for all of τ. While its first thread is in MPI, in the recorder or
//! before its start or behind its end, all of them are charged to MPI. The rest is charged to OpenMP: outside parallel
//! regions one thread works and n − 1 have nothing to do; inside, what is not work is idle. So
//! parallel = Σ work / (Σn·τ) = MPI part × OpenMP part, exactly.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use serde::{Deserialize, Serialize};
use trace_format::header::{Definition, Module};
use trace_format::layout::{TOOL, Team, TeamWaits};
use trace_format::markers::ToolReason;
use trace_format::meaning::Class;

use crate::analysis::segments::ComputeMode;
use crate::analysis::spans::Span;
use crate::analysis::{Analysis, CallObserver, RankObserver, RankView, ThreadView};
use crate::timeline::RankTime;
use crate::trace::modules::{in_file, module_of, modules};
use crate::trace::symbols::Symbols;
use crate::trace::{RankTrace, Run};

use super::figures::RankMetrics;
use super::paths::Frame;
use super::resolve::{RankSelection, Resolved};
use super::teams::{
    Hybrid, IdleThreads, MpiPart, NO_REGION, OpenMpMetrics, OpenMpPart, ParallelRegion, RankTeams,
    SlowestThread,
};

/// Number of calls behind the last region that are remembered, to know the time in MPI of the next one.
const REMEMBERED_CALLS: usize = 1 << 20;

/// Whether a run recorded parallel regions.
pub(super) fn is_recorded(run: &Run) -> bool {
    let mut definitions = run.ranks.iter().flat_map(|rank| &rank.file.definitions);
    definitions.any(|definition| matches!(definition, Definition::OpenMp { .. }))
}

/// Sums parallel regions of a selection.
pub(super) struct Teams<'s> {
    pub selection: &'s Resolved,
}

/// Ticks of parallel regions, over their threads unless said otherwise.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
struct Ticks {
    /// From begin to end, of the thread that began them.
    span: f64,
    /// The part of it in MPI or the recorder.
    away: f64,
    work: f64,
    barriers: f64,
    locks: f64,
    tasks: f64,
    /// Before a thread begins the region's code, and after it has left it.
    ends: f64,
    /// All threads while their first is in MPI or the recorder.
    with_mpi: f64,
    /// Work in regions without MPI calls inside.
    comparable_work: f64,
    /// Times the number of threads, what the thread with most work did.
    longest: f64,
}

/// Regions that one thread of the team was the slowest in.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
struct Slowest {
    times: u64,
    /// How much longer it worked than the mean thread.
    excess: f64,
}

/// Regions of one rank that began at one place.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct PlaceSums {
    count: u64,
    ticks: Ticks,
    /// By number of the thread.
    slowest: BTreeMap<u32, Slowest>,
}

/// A place on one rank: address in memory and index of its module.
type Place = (u64, Option<usize>);

/// The parallel regions of one rank.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct RankSums {
    /// By number of threads, and place.
    places: Vec<(Place, u16, PlaceSums)>,
    /// Number of recorded threads that began regions.
    masters: usize,
}

/// The parallel regions of one rank, while they are read.
pub(super) struct RankTeamsPass<'a, 's> {
    selection: &'s RankSelection,
    modules: Vec<&'a Module>,
    places: HashMap<(Place, u16), PlaceSums>,
    masters: usize,
}

impl<'a, 's> CallObserver<'a> for Teams<'s> {
    type OfRank = RankTeamsPass<'a, 's>;

    fn begin_rank(&self, rank: RankView<'a>) -> RankTeamsPass<'a, 's> {
        RankTeamsPass {
            selection: &self.selection.ranks[rank.position],
            modules: modules(&rank.trace.file.definitions),
            places: HashMap::new(),
            masters: 0,
        }
    }
}

/// Reads the events once more: spans have no continuations.
impl<'a> RankObserver<'a> for RankTeamsPass<'a, '_> {
    fn begin_thread(&mut self, thread: ThreadView<'a>) {
        let file = &thread.rank.trace.file;
        let mut away: VecDeque<(u64, u64)> = VecDeque::new();
        let mut is_master = false;
        for event in thread.events(None) {
            let is_tool = event.function == TOOL;
            if is_tool && event.peer == ToolReason::Team as i32 {
                if let Some((team, waits)) = file.team(&event) {
                    let begin = event.begin.saturating_sub(team.span);
                    let inside = |(from, to): &(u64, u64)| to.saturating_sub(begin.max(*from));
                    let ticks = Ticks::of(
                        (team, waits),
                        event.communicator,
                        away.iter().map(inside).sum::<u64>(),
                    );
                    let longest = ((event.payload[0] >> 32) as u32, team.longest);
                    let site = event.site.map_or(0, |(address, _)| address);
                    self.add((site, begin, event.begin), event.communicator, ticks, longest);
                    is_master = true;
                }
                away.clear();
                continue;
            }
            let is_away = is_tool
                || event.is_call()
                    && file.meaning(event.function).is_some_and(|of| of.class != Class::Compute);
            let end = event.end.unwrap_or(event.begin);
            let end = event.polls.map_or(end, |(_, inside)| end.min(event.begin + inside));
            if is_away && end > event.begin {
                if away.len() == REMEMBERED_CALLS {
                    away.pop_front();
                }
                away.push_back((event.begin, end));
            }
        }
        self.masters += usize::from(is_master);
    }

    fn span(&mut self, _span: &Span) {}
    fn end_thread(&mut self) {}
}

impl Ticks {
    /// Those of a region, in whose span its first thread was in MPI or the recorder for some ticks.
    fn of((team, waits): (Team, TeamWaits), threads: u16, away: u64) -> Self {
        let of = |ticks: u64| ticks as f64;
        let span = of(team.span);
        let away = of(away).min(span);
        let all = span * f64::from(threads);
        let work = (of(team.work) - away).clamp(0.0, all);
        let (barriers, locks, tasks) = (of(waits.barriers), of(waits.locks), of(waits.tasks));
        let ends = (all - of(team.inside)).max(0.0);
        let idle = barriers + locks + tasks + ends;
        let with_mpi = (away * f64::from(threads)).min(all - work);
        // The first thread's time in MPI is no idle time, that of the others is.
        let left = (all - work - with_mpi).max(0.0);
        let scale = if idle > 0.0 { left / idle } else { 0.0 };
        let mut ticks = Self {
            span,
            away,
            work,
            barriers: barriers * scale,
            locks: locks * scale,
            tasks: tasks * scale,
            ends: ends * scale,
            with_mpi,
            ..Self::default()
        };
        if away == 0.0 {
            ticks.comparable_work = work;
            ticks.longest = of(team.longest) * f64::from(threads);
        }
        ticks
    }

    fn add(&mut self, other: &Self, factor: f64) {
        let sums = [
            (&mut self.span, other.span),
            (&mut self.away, other.away),
            (&mut self.work, other.work),
            (&mut self.barriers, other.barriers),
            (&mut self.locks, other.locks),
            (&mut self.tasks, other.tasks),
            (&mut self.ends, other.ends),
            (&mut self.with_mpi, other.with_mpi),
            (&mut self.comparable_work, other.comparable_work),
            (&mut self.longest, other.longest),
        ];
        for (sum, part) in sums {
            *sum += part * factor;
        }
    }
}

impl RankTeamsPass<'_, '_> {
    /// Adds a region; of one that lies in the selection with a part, that part.
    fn add(
        &mut self,
        (site, begin, end): (u64, u64, u64),
        threads: u16,
        ticks: Ticks,
        (slowest, longest): (u32, u64),
    ) {
        let stretches = &self.selection.stretches;
        let from = stretches.partition_point(|(_, to)| *to <= begin);
        let inside = stretches[from..].iter().take_while(|(from, _)| *from < end);
        let inside: u64 = inside.map(|(from, to)| end.min(*to) - begin.max(*from)).sum();
        if inside == 0 {
            return;
        }
        let part = inside as f64 / (end - begin) as f64;
        let place = (site, module_of(&self.modules, site, end));
        let sums = self.places.entry((place, threads)).or_default();
        sums.count += 1;
        sums.ticks.add(&ticks, part);
        if ticks.away == 0.0 && slowest != u32::MAX && threads > 1 {
            let of = sums.slowest.entry(slowest).or_default();
            of.times += 1;
            of.excess += (longest as f64 - ticks.work / f64::from(threads)).max(0.0) * part;
        }
    }

    pub fn finish(self) -> RankSums {
        let places = self.places.into_iter();
        let mut places: Vec<_> =
            places.map(|((place, threads), sums)| (place, threads, sums)).collect();
        places.sort_unstable_by_key(|(place, threads, _)| (*place, *threads));
        RankSums { places, masters: self.masters }
    }
}

impl OpenMpMetrics {
    pub(super) fn new(
        analysis: &Analysis,
        compute: ComputeMode,
        elapsed_s: f64,
        ranks: &[RankMetrics],
        sums: Vec<RankSums>,
    ) -> Option<Self> {
        let run = analysis.run;
        if !is_recorded(run) || sums.len() != ranks.len() {
            return None;
        }
        let regions = by_place(analysis, &sums);
        let has_totals = |rank: &RankTrace| rank.file.threads.iter().any(|of| of.totals.is_some());
        let missed = missed(run);
        let unknown = if missed > 0 {
            Some("regions are missing")
        } else if run.ranks.iter().any(has_totals) {
            Some("calls are kept only as totals")
        } else if regions.is_empty() {
            Some(NO_REGION)
        } else if compute != ComputeMode::Outside {
            Some("only a part of the time outside MPI counts as computing")
        } else if ranks.iter().zip(&sums).any(|(rank, sums)| rank.threads > 1 || sums.masters > 1) {
            Some("several threads of a rank call MPI")
        } else {
            None
        };
        let of_ranks: Vec<RankTeams> = match unknown {
            Some(_) => Vec::new(),
            None => {
                let times = &analysis.timeline.ranks;
                let all =
                    ranks.iter().zip(&sums).zip(times).filter(|((rank, _), _)| rank.takes_part);
                all.map(|((rank, sums), time)| RankTeams::new(rank, elapsed_s, sums, time))
                    .collect()
            }
        };
        let hybrid = unknown.is_none().then(|| Hybrid::new(&of_ranks, ranks, elapsed_s)).flatten();
        Some(Self { runtimes: runtimes(run), hybrid, unknown, ranks: of_ranks, missed, regions })
    }
}

/// Ticks of a rank's counter as seconds.
fn seconds(time: &RankTime, ticks: f64) -> f64 {
    time.clock.duration_s(ticks.round() as u64)
}

/// Number of regions that could not be recorded.
fn missed(run: &Run) -> u64 {
    let definitions = run.ranks.iter().flat_map(|rank| &rank.file.definitions);
    let of = definitions.filter_map(|definition| match definition {
        Definition::MissedTeams { regions } => Some(*regions),
        _ => None,
    });
    of.fold(0, u64::saturating_add)
}

fn runtimes(run: &Run) -> Vec<String> {
    let definitions = run.ranks.iter().flat_map(|rank| &rank.file.definitions);
    let mut all: Vec<String> = definitions
        .filter_map(|definition| match definition {
            Definition::OpenMp { runtimes } => Some(runtimes.iter().cloned()),
            _ => None,
        })
        .flatten()
        .collect();
    all.sort_unstable();
    all.dedup();
    // What else is known of a runtime later follows its name.
    let is_known_better = |name: &String| {
        let more = format!("{name}, ");
        all.iter().any(|other| other.starts_with(&more))
    };
    let known = all.iter().filter(|name| !is_known_better(name));
    known.cloned().collect()
}

impl RankTeams {
    fn new(rank: &RankMetrics, elapsed_s: f64, sums: &RankSums, time: &RankTime) -> Self {
        let threads = sums.places.iter().map(|(_, threads, _)| *threads).max().unwrap_or(1).max(1);
        let of_all = f64::from(threads);
        let mut all = Ticks::default();
        let (mut fewer, mut fewer_away) = (0.0, 0.0);
        for (_, threads, sums) in &sums.places {
            all.add(&sums.ticks, 1.0);
            let missing = of_all - f64::from(*threads);
            fewer += missing * (sums.ticks.span - sums.ticks.away);
            fewer_away += missing * sums.ticks.away;
        }
        let seconds = |ticks| seconds(time, ticks);
        // The first thread outside regions works.
        let alone_s = (rank.compute_s - seconds(all.span - all.away)).max(0.0);
        let outside_mpi_s = of_all * (elapsed_s - rank.compute_s - seconds(all.away));
        Self {
            rank: rank.rank,
            threads,
            parallel_regions: sums.places.iter().map(|(_, _, sums)| sums.count).sum(),
            work_s: alone_s + seconds(all.work),
            serial_s: (of_all - 1.0) * alone_s + seconds(fewer),
            idle: IdleThreads {
                barriers_s: seconds(all.barriers),
                locks_s: seconds(all.locks),
                ends_s: seconds(all.ends),
            },
            tasks_s: seconds(all.tasks),
            mpi_s: (outside_mpi_s + seconds(all.with_mpi + fewer_away)).max(0.0),
        }
    }
}

impl Hybrid {
    /// Of ranks in the order of `ranks`, without those that do not take part.
    fn new(teams: &[RankTeams], ranks: &[RankMetrics], elapsed_s: f64) -> Option<Self> {
        let sum = |part: fn(&RankTeams) -> f64| teams.iter().map(part).sum::<f64>();
        let threads: u64 = teams.iter().map(|of| u64::from(of.threads)).sum();
        let all_s = threads as f64 * elapsed_s;
        let mpi_s = sum(|of| of.mpi_s);
        let idle = IdleThreads {
            barriers_s: sum(|of| of.idle.barriers_s),
            locks_s: sum(|of| of.idle.locks_s),
            ends_s: sum(|of| of.idle.ends_s),
        };
        let (tasks_s, serial_s) = (sum(|of| of.tasks_s), sum(|of| of.serial_s));
        let left_s = all_s - mpi_s;
        let useful_s = left_s - serial_s - idle.seconds();
        let lost_s: f64 = ranks.iter().filter(|rank| rank.takes_part).map(|of| of.lost_s).sum();
        let is_known = all_s > 0.0 && left_s > serial_s && useful_s > 0.0;
        is_known.then(|| Self {
            parallel: useful_s / all_s,
            threads,
            mpi: MpiPart {
                efficiency: left_s / all_s,
                lost_s: mpi_s,
                idle_threads_s: (mpi_s - lost_s).max(0.0),
            },
            openmp: OpenMpPart {
                efficiency: useful_s / left_s,
                serial: (left_s - serial_s) / left_s,
                regions: useful_s / (left_s - serial_s),
                serial_s,
                idle,
                tasks_s,
            },
        })
    }
}

/// A parallel region, on all ranks.
struct Gathered {
    region: ParallelRegion,
    /// Work in those without MPI calls inside.
    comparable_s: f64,
    /// What it would be if all threads worked as long as the one that works longest.
    longest_s: f64,
    ranks: BTreeSet<u32>,
}

/// Merges the ranks' regions by place.
fn by_place(analysis: &Analysis, sums: &[RankSums]) -> Vec<ParallelRegion> {
    let mut symbols = Symbols::for_run(analysis.run);
    let mut found: BTreeMap<(String, String, u64), Gathered> = BTreeMap::new();
    let ranks = analysis.run.ranks.iter().zip(&analysis.timeline.ranks);
    for ((trace, time), sums) in ranks.zip(sums) {
        let modules = modules(&trace.file.definitions);
        let seconds = |ticks| seconds(time, ticks);
        for ((address, module), threads, sums) in &sums.places {
            let module = module.and_then(|index| modules.get(index));
            let (path, id, address) = in_file(module.copied(), *address);
            let key = (path.to_owned(), id.to_owned(), address);
            let Gathered { region, comparable_s, longest_s, ranks } =
                found.entry(key).or_insert_with(|| {
                    let place = symbols.location(path, id, address);
                    Gathered::at(Frame { module: path.to_owned(), address, place })
                });
            ranks.insert(trace.rank);
            let ticks = &sums.ticks;
            region.count += sums.count;
            region.threads = region.threads.max(*threads);
            region.span_s += seconds(ticks.span);
            region.work_s += seconds(ticks.work);
            region.idle.barriers_s += seconds(ticks.barriers);
            region.idle.locks_s += seconds(ticks.locks);
            region.idle.ends_s += seconds(ticks.ends);
            region.tasks_s += seconds(ticks.tasks);
            region.with_mpi_s += seconds(ticks.with_mpi);
            *comparable_s += seconds(ticks.comparable_work);
            *longest_s += seconds(ticks.longest);
            for (thread, of) in &sums.slowest {
                let excess_s = seconds(of.excess);
                if region.slowest.is_none_or(|known| excess_s > known.excess_s) {
                    let (rank, thread, count) = (trace.rank, *thread, of.times);
                    region.slowest = Some(SlowestThread { rank, thread, count, excess_s });
                }
            }
        }
    }
    let mut all: Vec<ParallelRegion> = found
        .into_values()
        .map(|Gathered { region, comparable_s, longest_s, ranks }| {
            let load_balance = (longest_s > 0.0).then(|| (comparable_s / longest_s).min(1.0));
            ParallelRegion { ranks: ranks.len(), load_balance, ..region }
        })
        .collect();
    all.sort_by(|a, b| b.idle.seconds().total_cmp(&a.idle.seconds()));
    all
}

impl Gathered {
    fn at(begins_at: Frame) -> Self {
        let region = ParallelRegion {
            begins_at,
            count: 0,
            ranks: 0,
            threads: 0,
            span_s: 0.0,
            work_s: 0.0,
            idle: IdleThreads::default(),
            tasks_s: 0.0,
            with_mpi_s: 0.0,
            load_balance: None,
            slowest: None,
        };
        Self { region, comparable_s: 0.0, longest_s: 0.0, ranks: BTreeSet::new() }
    }
}
