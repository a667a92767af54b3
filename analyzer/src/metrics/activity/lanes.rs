//! What lies beside the rows of a timeline: parallel regions of OpenMP, and calls on files.

use rayon::prelude::*;
use trace_format::file_calls::FileCallKind;
use trace_format::header::Definition;
use trace_format::layout::TOOL;
use trace_format::markers::ToolReason;
use trace_format::reader::Event;

use crate::timeline::GlobalTimeline;
use crate::trace::{RankTrace, Run};

/// Maximum number of stretches of each lane, over all rows.
const STRETCHES: usize = 20_000;
/// A row's own maximum.
const OF_ROW: usize = 2_048;

/// A parallel region, or calls on a file, of a row; where there are many, those with next to no time between them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stretch {
    /// Index of the row.
    pub row: usize,
    pub begin_ns: i64,
    pub end_ns: i64,
    /// Number of regions or calls.
    pub count: u64,
    /// Mean number of threads that work over that of the largest team; time inside calls over the stretch.
    pub part: f64,
}

/// The lanes of a timeline.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Lanes {
    /// Parallel regions, by row and begin.
    pub teams: Vec<Stretch>,
    /// Calls on files.
    pub files: Vec<Stretch>,
}

impl Lanes {
    /// Reads those of rows, each a rank's position and a thread. `None` if nothing of that kind was recorded.
    pub fn new(run: &Run, timeline: &GlobalTimeline, rows: &[(usize, u32)]) -> Option<Self> {
        if !run.ranks.iter().any(is_recorded) {
            return None;
        }
        let length = timeline.ranks.iter().map(|rank| rank.clock.whole_ns(rank.end_ticks)).max();
        let most = (STRETCHES / rows.len().max(1)).clamp(1, OF_ROW);
        let least_gap_ns = (length.unwrap_or(0) / most as i64).max(1);
        let of_rows = rows.par_iter().enumerate().map(|(row, (position, thread))| {
            of_row(run, timeline, (row, *position, *thread), (most, least_gap_ns))
        });
        let mut all = Self::default();
        for (teams, files) in of_rows.collect::<Vec<_>>() {
            all.teams.extend(teams);
            all.files.extend(files);
        }
        Some(all)
    }
}

fn is_recorded(rank: &RankTrace) -> bool {
    let is_one =
        |of: &Definition| matches!(of, Definition::OpenMp { .. } | Definition::FileRecording(_));
    rank.file.definitions.iter().any(is_one)
}

/// A stretch that may grow.
#[derive(Debug, Clone, Copy)]
struct Growing {
    begin_ns: i64,
    end_ns: i64,
    count: u64,
    /// Threads of the largest team.
    width: f64,
    /// Nanoseconds of work, or inside calls.
    inside_ns: f64,
}

/// One lane of a row. Of too many stretches, those with the least time between them become one.
struct Lane {
    row: usize,
    most: usize,
    /// What lies at least so far apart is not one stretch.
    gap_ns: i64,
    /// The first gap, if there are too many stretches.
    least_gap_ns: i64,
    found: Vec<Growing>,
}

impl Lane {
    fn add(&mut self, one: Growing) {
        let one = Growing { end_ns: one.end_ns.max(one.begin_ns), ..one };
        Self::push(&mut self.found, self.gap_ns, one);
        while self.found.len() > self.most {
            self.gap_ns = (2 * self.gap_ns).max(self.least_gap_ns);
            let mut joined = Vec::with_capacity(self.most);
            for one in self.found.drain(..) {
                Self::push(&mut joined, self.gap_ns, one);
            }
            self.found = joined;
        }
    }

    fn push(found: &mut Vec<Growing>, gap_ns: i64, one: Growing) {
        match found.last_mut() {
            Some(last) if one.begin_ns.saturating_sub(last.end_ns) < gap_ns => {
                last.begin_ns = last.begin_ns.min(one.begin_ns);
                last.end_ns = last.end_ns.max(one.end_ns);
                last.count += one.count;
                last.width = last.width.max(one.width);
                last.inside_ns += one.inside_ns;
            }
            _ => found.push(one),
        }
    }

    fn finish(self) -> Vec<Stretch> {
        let row = self.row;
        let stretch = |of: Growing| {
            let all_ns = (of.end_ns - of.begin_ns) as f64 * of.width;
            let part = if all_ns > 0.0 { (of.inside_ns / all_ns).min(1.0) } else { 1.0 };
            let Growing { begin_ns, end_ns, count, .. } = of;
            Stretch { row, begin_ns, end_ns, count, part }
        };
        self.found.into_iter().map(stretch).collect()
    }
}

/// Calls on files inside a call of MPI.
#[derive(Debug, Default)]
struct OfCall {
    /// Begin and end of the call of MPI, nanoseconds.
    ends: (i64, i64),
    count: u64,
    inside_ns: f64,
}

impl OfCall {
    fn finish(&self, files: &mut Lane) {
        if self.count > 0 {
            let (begin_ns, end_ns) = self.ends;
            let (count, inside_ns) = (self.count, self.inside_ns);
            files.add(Growing { begin_ns, end_ns, count, width: 1.0, inside_ns });
        }
    }
}

fn of_row(
    run: &Run,
    timeline: &GlobalTimeline,
    (row, position, thread): (usize, usize, u32),
    (most, least_gap_ns): (usize, i64),
) -> (Vec<Stretch>, Vec<Stretch>) {
    let lane = || Lane { row, most, gap_ns: 0, least_gap_ns, found: Vec::new() };
    let (mut teams, mut files) = (lane(), lane());
    let (file, clock) = (&run.ranks[position].file, &timeline.ranks[position].clock);
    let Some(thread) = file.threads.iter().find(|of| of.number == thread) else {
        return Default::default();
    };
    let ns = |ticks: u64| clock.duration_s(ticks) * 1e9;
    // The last call of MPI, and the calls on files inside of it.
    let mut of_mpi = OfCall::default();
    for event in file.events(thread) {
        let Event { function, peer, begin, .. } = event;
        if event.is_call() {
            of_mpi.finish(&mut files);
            let end = event.end.unwrap_or(begin);
            of_mpi = OfCall {
                ends: (clock.whole_ns(begin), clock.whole_ns(end)),
                count: 0,
                inside_ns: 0.0,
            };
        } else if function == TOOL && peer == ToolReason::Team as i32 {
            let Some((team, _)) = file.team(&event) else { continue };
            teams.add(Growing {
                begin_ns: clock.whole_ns(begin.saturating_sub(team.span)),
                end_ns: clock.whole_ns(begin),
                count: 1,
                width: event.communicator.into(),
                inside_ns: ns(team.work),
            });
        } else if function == TOOL && peer == ToolReason::FileCalls as i32 {
            let Some(calls) = file.file_calls(&event) else { continue };
            if event.communicator & FileCallKind::INSIDE_MPI != 0 {
                of_mpi.count += calls.calls;
                of_mpi.inside_ns += ns(calls.inside);
            } else {
                files.add(Growing {
                    begin_ns: clock.whole_ns(begin),
                    end_ns: clock.whole_ns(begin.saturating_add(calls.span)),
                    count: calls.calls,
                    width: 1.0,
                    inside_ns: ns(calls.inside),
                });
            }
        }
    }
    of_mpi.finish(&mut files);
    (teams.finish(), files.finish())
}

#[cfg(test)]
mod tests {
    use trace_format::file_calls::FileCalls;
    use trace_format::layout::{Team, TeamWaits};

    use crate::synthetic_trace::{RunDirectory, SyntheticRank};

    use super::*;

    const MS: u64 = 1_000_000;
    const B: u64 = 5_000_000 * MS;

    #[test]
    fn regions_and_calls_lie_where_they_are_known_to_be() {
        let mut rank = SyntheticRank::complete(0, 1, B, B + 100 * MS);
        rank.definitions.push(Definition::OpenMp { runtimes: vec!["libgomp.so.1".into()] });
        let team = |span, work| {
            let (inside, longest) = (4 * span * MS, work * MS);
            (Team { span: span * MS, inside, work: work * MS, longest }, TeamWaits::default())
        };
        let calls = |calls, inside, span: u64| FileCalls {
            calls,
            bytes: 10,
            inside: inside * MS,
            span: span * MS,
        };
        rank.team((4, 0), B + 20 * MS, team(10, 20));
        rank.team((4, 0), B + 30 * MS, team(10, 40));
        rank.team((2, 0), B + 50 * MS, team(10, 10));
        rank.file_calls((FileCallKind::Write as u16, 1), B + 60 * MS, calls(5, 5, 10));
        rank.call(0, "MPI_Barrier", B + 80 * MS, B + 90 * MS);
        let inside = FileCallKind::Write as u16 | FileCallKind::INSIDE_MPI;
        rank.file_calls((inside, 1), B + 91 * MS, calls(2, 1, 1));
        rank.file_calls((inside, 2), B + 91 * MS, calls(1, 1, 1));
        rank.finalize(B + 100 * MS, B + 120 * MS);
        let directory = RunDirectory::with_ranks(&[rank]);
        let run = Run::open(directory.path()).unwrap();
        let timeline = GlobalTimeline::new(&run);
        let Lanes { teams, files } = Lanes::new(&run, &timeline, &[(0, 0)]).unwrap();
        let short = |of: &[Stretch]| -> Vec<_> {
            let ms = |ns: i64| (ns as f64 / 1e6).round() as i64;
            let round = |of: &Stretch| {
                (ms(of.begin_ns), ms(of.end_ns), of.count, (100.0 * of.part).round())
            };
            of.iter().map(round).collect()
        };
        assert_eq!(short(&teams), [(10, 20, 1, 50.0), (20, 30, 1, 100.0), (40, 50, 1, 50.0)]);
        assert_eq!(short(&files), [(60, 70, 5, 50.0), (80, 90, 3, 20.0)]);
    }

    #[test]
    fn too_many_stretches_are_joined_where_they_lie_closest() {
        let mut lane = Lane { row: 0, most: 3, gap_ns: 0, least_gap_ns: 10, found: Vec::new() };
        for begin_ns in [0, 100, 104, 200, 207, 400] {
            let (count, width, inside_ns) = (1, 2.0, 2.0);
            lane.add(Growing { begin_ns, end_ns: begin_ns + 2, count, width, inside_ns });
        }
        let found: Vec<_> =
            lane.finish().iter().map(|of| (of.begin_ns, of.end_ns, of.count)).collect();
        assert_eq!(found.iter().map(|(.., count)| count).sum::<u64>(), 6);
        assert!(found.len() <= 3 && found.contains(&(400, 402, 1)), "{found:?}");
    }

    #[test]
    fn run_without_them_has_no_lanes() {
        let rank = SyntheticRank::complete(0, 1, B, B + 100 * MS);
        let directory = RunDirectory::with_ranks(&[rank]);
        let run = Run::open(directory.path()).unwrap();
        let timeline = GlobalTimeline::new(&run);
        assert_eq!(Lanes::new(&run, &timeline, &[(0, 0)]), None);
    }
}
