//! What the recorder notes beside calls: parallel regions of OpenMP and calls on files.
//!
//! Both are records with sums. Of a region it is known when it began and ended, not when which of its threads waited;
//! of calls on a file, when the first of them began and the last one ended, or inside which call of MPI they were made.

use std::collections::HashMap;
use std::ops::Range;

use trace_format::file_calls::FileCallKind;
use trace_format::header::Module;
use trace_format::layout::TOOL;
use trace_format::markers::ToolReason;
use trace_format::reader::Event;

use crate::metrics::FileNumbers;
use crate::trace::modules::{in_file, module_of, modules};
use crate::trace::symbols::{SourceLocation, Symbols};

use super::content::{Call, Content, What};

/// An OpenMP parallel region that ran. Nanoseconds of threads unless said otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Team {
    /// Position among [`super::content::Head::ranks`].
    pub rank: usize,
    /// The thread that began it.
    pub thread: u32,
    pub begin_ns: i64,
    pub end_ns: i64,
    /// Number of its threads.
    pub threads: u16,
    /// Number in the team of the thread that worked longest.
    pub slowest: Option<u32>,
    /// Work, and that of the thread with the most.
    pub work_ns: i64,
    pub longest_ns: i64,
    pub barriers_ns: i64,
    pub locks_ns: i64,
    pub tasks_ns: i64,
    /// Before threads begin the region's code and after they have left it.
    pub ends_ns: i64,
    /// Number of the place where it begins: [`Beside::place`].
    pub place: u32,
}

/// Calls of one kind on a file, one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileCalls {
    /// Position among [`super::content::Head::ranks`].
    pub rank: usize,
    pub thread: u32,
    /// Begin of the first and end of the last one; of calls inside MPI, those of the call of MPI.
    pub begin_ns: i64,
    pub end_ns: i64,
    /// Whether they were made inside a call of MPI.
    pub is_inside_mpi: bool,
    pub kind: FileCallKind,
    /// Index of the file among those of the run.
    pub file: usize,
    pub calls: u64,
    pub bytes: u64,
    /// Time inside the calls.
    pub inside_ns: i64,
}

/// Either of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Record {
    Team(Team),
    FileCalls(FileCalls),
}

/// Reads these records.
pub struct Beside<'a> {
    content: &'a Content<'a>,
    symbols: Symbols,
    /// By position of the rank in the run.
    modules: Vec<Vec<&'a Module>>,
    pub(crate) files: FileNumbers,
    /// By position of the rank in the run, address and module.
    numbers: HashMap<(usize, u64, Option<usize>), u32>,
    places: Vec<SourceLocation>,
}

impl<'a> Beside<'a> {
    /// `None` if the run was recorded without such records.
    pub fn new(content: &'a Content<'a>) -> Option<Self> {
        (content.has_teams() || content.has_file_calls()).then(|| Self {
            content,
            symbols: Symbols::for_run(content.run),
            modules: content.run.ranks.iter().map(|rank| modules(&rank.file.definitions)).collect(),
            files: FileNumbers::new(content.run),
            numbers: HashMap::new(),
            places: Vec::new(),
        })
    }

    /// Where the regions with a number begin.
    pub fn place(&self, number: u32) -> &SourceLocation {
        &self.places[number as usize]
    }

    /// What the regions with a number are called.
    pub fn team_title(&self, number: u32) -> String {
        let SourceLocation { function, file, line } = self.place(number);
        let file = file.as_deref().and_then(|file| file.rsplit('/').next());
        match (file, line, function) {
            (Some(file), Some(line), _) => format!("OMP parallel @{file}:{line}"),
            (.., Some(function)) => format!("OMP parallel in {function}"),
            _ => "OMP parallel".to_owned(),
        }
    }

    /// What calls on a file are called.
    pub fn calls_title(of: &FileCalls) -> String {
        let kind = kind_name(of.kind);
        match (of.calls, of.is_inside_mpi) {
            (1, false) => kind.to_owned(),
            (calls, false) => format!("{kind} x{calls}"),
            (calls, true) => format!("{kind} x{calls} in MPI"),
        }
    }

    /// The records of ranks, by their positions among [`super::content::Head::ranks`], in the order in which they were
    /// written: regions of a thread do not overlap, calls on different files may.
    pub fn of_ranks<E>(
        &mut self,
        ranks: Range<usize>,
        mut each: impl FnMut(&Self, Record) -> Result<(), E>,
    ) -> Result<(), E> {
        for rank in ranks {
            // By thread, the last call.
            let mut last: HashMap<u32, (i64, i64)> = HashMap::new();
            for call in self.content.calls_of_any_time(rank) {
                match call.what {
                    What::Call(_) => {
                        let end_ns = call.end_ns.unwrap_or(call.begin_ns);
                        last.insert(call.thread, (call.begin_ns, end_ns));
                    }
                    What::Beside => {
                        let record = self.record(&call, last.get(&call.thread).copied());
                        let is_wanted = |record: &Record| {
                            self.content.wants_time(match record {
                                Record::Team(team) => team.begin_ns,
                                Record::FileCalls(calls) => calls.begin_ns,
                            })
                        };
                        if let Some(record) = record.filter(is_wanted) {
                            each(self, record)?;
                        }
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }

    fn record(&mut self, call: &Call, last: Option<(i64, i64)>) -> Option<Record> {
        let Event { function, peer, .. } = call.event;
        debug_assert_eq!(function, TOOL);
        match ToolReason::from_number(peer)? {
            ToolReason::Team => self.team(call).map(Record::Team),
            ToolReason::FileCalls => self.file_calls(call, last).map(Record::FileCalls),
            _ => None,
        }
    }

    fn team(&mut self, call: &Call) -> Option<Team> {
        let event = &call.event;
        let (team, waits) = self.content.trace(call.rank).file.team(event)?;
        let threads = event.communicator;
        let ns = |ticks: u64| self.ns(call.rank, ticks);
        let slowest = (event.payload[0] >> 32) as u32;
        let all = team.span.saturating_mul(threads.into());
        let (work_ns, longest_ns) = (ns(team.work), ns(team.longest));
        let [barriers_ns, locks_ns, tasks_ns] = [waits.barriers, waits.locks, waits.tasks].map(ns);
        let ends_ns = ns(all.saturating_sub(team.inside));
        Some(Team {
            rank: call.rank,
            thread: call.thread,
            begin_ns: self.content.time_ns(call.rank, event.begin.saturating_sub(team.span)),
            end_ns: call.begin_ns,
            threads,
            slowest: (slowest != u32::MAX).then_some(slowest),
            work_ns,
            longest_ns,
            barriers_ns,
            locks_ns,
            tasks_ns,
            ends_ns,
            place: self.number(call),
        })
    }

    fn file_calls(&self, call: &Call, last: Option<(i64, i64)>) -> Option<FileCalls> {
        let event = &call.event;
        let calls = self.content.trace(call.rank).file.file_calls(event)?;
        let is_inside_mpi = event.communicator & FileCallKind::INSIDE_MPI != 0;
        let end = event.begin.saturating_add(calls.span);
        let (begin_ns, end_ns) = match is_inside_mpi {
            true => last.unwrap_or((call.begin_ns, call.begin_ns)),
            false => (call.begin_ns, self.content.time_ns(call.rank, end)),
        };
        let position = self.content.head.ranks[call.rank].position;
        Some(FileCalls {
            rank: call.rank,
            thread: call.thread,
            begin_ns,
            end_ns,
            is_inside_mpi,
            kind: FileCallKind::from_field(event.communicator)?,
            file: self.files.index(position, (event.payload[0] >> 32) as u32),
            calls: calls.calls,
            bytes: calls.bytes,
            inside_ns: self.ns(call.rank, calls.inside),
        })
    }

    /// Ticks of a rank's counter as nanoseconds.
    fn ns(&self, rank: usize, ticks: u64) -> i64 {
        let position = self.content.head.ranks[rank].position;
        let clock = &self.content.timeline.ranks[position].clock;
        (clock.duration_s(ticks) * 1e9).round() as i64
    }

    /// Number of the place where a region begins.
    fn number(&mut self, call: &Call) -> u32 {
        let address = call.event.site.map_or(0, |(address, _)| address);
        let position = self.content.head.ranks[call.rank].position;
        let modules = &self.modules[position];
        let module = module_of(modules, address, call.event.begin);
        *self.numbers.entry((position, address, module)).or_insert_with(|| {
            let module = module.and_then(|index| modules.get(index)).copied();
            let (path, identity, address) = in_file(module, address);
            let place = self.symbols.location(path, identity, address);
            let known = self.places.iter().position(|of| *of == place);
            let number = known.unwrap_or(self.places.len());
            if known.is_none() {
                self.places.push(place);
            }
            number as u32
        })
    }
}

/// Where a parallel region begins or ends: all that is kept of those of a rank while its events are written.
#[derive(Debug, Clone, Copy)]
pub struct Mark {
    at_ns: i64,
    thread: u32,
    /// With [`Mark::END`], if it ends.
    place: u32,
}

impl Mark {
    const END: u32 = 1 << 31;

    /// The begin and the end of a region.
    pub fn both(team: &Team) -> [Self; 2] {
        let Team { thread, place, begin_ns, end_ns, .. } = *team;
        let end = Self { at_ns: end_ns, thread, place: place | Self::END };
        [Self { at_ns: begin_ns, thread, place }, end]
    }

    fn what(&self) -> What {
        match self.place & Self::END {
            0 => What::TeamBegin(self.place),
            _ => What::TeamEnd(self.place & !Self::END),
        }
    }
}

/// Adds the begins and ends of parallel regions of one rank to its calls, which are in order of their beginning. The
/// marks of a thread are in order.
pub fn with_teams(
    calls: impl Iterator<Item = Call>,
    rank: usize,
    mut marks: Vec<Mark>,
) -> impl Iterator<Item = Call> {
    // Those of a thread stay in order, also where a region has no length.
    marks.sort_by_key(|mark| mark.at_ns);
    let marks = marks.into_iter().map(move |mark| Call {
        rank,
        thread: mark.thread,
        what: mark.what(),
        begin_ns: mark.at_ns,
        end_ns: Some(mark.at_ns),
        event: Event::default(),
    });
    let (mut calls, mut marks) = (calls.peekable(), marks.peekable());
    std::iter::from_fn(move || {
        let at = calls.peek().map(|call| call.begin_ns);
        let is_first = |mark: &Call| at.is_none_or(|at| mark.begin_ns <= at);
        marks.next_if(is_first).or_else(|| calls.next())
    })
}

/// What a kind of calls is called in exports.
pub fn kind_name(kind: FileCallKind) -> &'static str {
    match kind {
        FileCallKind::Open => "open",
        FileCallKind::Read => "read",
        FileCallKind::Write => "write",
        FileCallKind::Sync => "sync",
        FileCallKind::Resize => "resize",
        FileCallKind::Close => "close",
        FileCallKind::Map => "map",
    }
}

#[cfg(test)]
pub mod test_run {
    use trace_format::file_calls::{FileCallKind, FileCalls};
    use trace_format::header::{Definition, File, FileRecording, Phase};
    use trace_format::layout::{Team, TeamWaits};

    use crate::synthetic_trace::{RunDirectory, SyntheticRank};

    const MS: u64 = 1_000_000;
    const B: u64 = 5_000_000 * MS;

    /// A rank that runs for 100 ms: a parallel region from 10 to 30 with a barrier of MPI from 15 to 20; from 40 on
    /// reads of file 1 until 50 and writes of file 2 from 45 to 60; a call of MPI from 70 to 80 inside which file 2 is
    /// written.
    pub fn directory() -> RunDirectory {
        let mut rank = SyntheticRank::complete(0, 1, B, B + 100 * MS);
        rank.definitions.push(Definition::OpenMp { runtimes: vec!["libgomp.so.1".into()] });
        rank.definitions.push(Definition::FileRecording(FileRecording {
            phase: Phase::Init,
            is_loaded: true,
            moved: None,
            elsewhere: Default::default(),
            sums: Vec::new(),
        }));
        for (number, name) in [(1, "/in"), (2, "")] {
            let name = name.to_owned();
            let (device, inode, born_ns, file_system) = (7, number.into(), 1, 0xef53);
            let file = File { number, device, inode, born_ns, file_system, name };
            rank.definitions.push(Definition::File(file));
        }
        let team = Team { span: 20 * MS, inside: 70 * MS, work: 50 * MS, longest: 18 * MS };
        let calls = |calls, span: u64| FileCalls { calls, bytes: 100, inside: MS, span: span * MS };
        rank.call(0, "MPI_Barrier", B + 15 * MS, B + 20 * MS);
        rank.team(
            (4, 3),
            B + 30 * MS,
            (team, TeamWaits { barriers: 20 * MS, ..Default::default() }),
        );
        rank.file_calls((FileCallKind::Read as u16, 1), B + 40 * MS, calls(5, 10));
        rank.file_calls((FileCallKind::Write as u16, 2), B + 45 * MS, calls(1, 15));
        rank.call(0, "MPI_Barrier", B + 70 * MS, B + 80 * MS);
        let inside = FileCallKind::Write as u16 | FileCallKind::INSIDE_MPI;
        rank.file_calls((inside, 2), B + 81 * MS, calls(2, 1));
        rank.finalize(B + 100 * MS, B + 120 * MS);
        RunDirectory::with_ranks(&[rank])
    }
}

#[cfg(test)]
mod tests {
    use crate::export::content::Choice;
    use crate::export::steps::{Kind, Steps};
    use crate::timeline::GlobalTimeline;
    use crate::timeline::communicators::CommunicatorTable;
    use crate::trace::Run;

    use super::*;

    const MS: i64 = 1_000_000;

    fn with_content(choice: &Choice, check: impl FnOnce(&Content)) {
        let directory = test_run::directory();
        let run = Run::open(directory.path()).unwrap();
        assert_eq!(run.diagnoses, []);
        let timeline = GlobalTimeline::new(&run);
        let communicators = CommunicatorTable::new(&run);
        check(&Content::new(&run, &timeline, &communicators, choice));
    }

    fn records(content: &Content) -> Vec<Record> {
        let (mut all, mut beside) = (Vec::new(), Beside::new(content).unwrap());
        let read = beside.of_ranks(0..1, |_, record| {
            all.push(record);
            Ok::<(), ()>(())
        });
        read.unwrap();
        all
    }

    #[test]
    fn records_have_the_times_that_are_known() {
        with_content(&Choice::default(), |content| {
            let found = records(content);
            let [Record::Team(team), Record::FileCalls(read), .., Record::FileCalls(inside)] =
                &found[..]
            else {
                panic!("{found:?}")
            };
            assert_eq!((team.begin_ns, team.end_ns), (10 * MS, 30 * MS));
            assert_eq!((team.threads, team.slowest, team.ends_ns), (4, Some(3), 10 * MS));
            assert_eq!((read.begin_ns, read.end_ns, read.inside_ns), (40 * MS, 50 * MS, MS));
            assert_eq!(Beside::calls_title(read), "read x5");
            // When inside the call of MPI is not known.
            assert_eq!((inside.begin_ns, inside.end_ns), (70 * MS, 80 * MS));
            assert_eq!(Beside::calls_title(inside), "write x2 in MPI");
            let files = &Beside::new(content).unwrap().files;
            assert_eq!([files.title(read.file), files.title(inside.file)], ["/in", "file 2"]);
        });
    }

    #[test]
    fn what_begins_in_the_window_is_chosen() {
        let choice = Choice { window_s: Some(0.005..0.042), ..Choice::default() };
        with_content(&choice, |content| {
            let found = records(content);
            assert!(matches!(found[..], [Record::Team(_), Record::FileCalls(_)]), "{found:?}");
        });
        let choice = Choice { window_s: Some(0.015..0.035), ..Choice::default() };
        with_content(&choice, |content| assert_eq!(records(content), []));
    }

    #[test]
    fn calls_lie_inside_of_their_parallel_region() {
        with_content(&Choice::default(), |content| {
            let teams = records(content).into_iter().filter_map(|record| match record {
                Record::Team(team) => Some(team),
                Record::FileCalls(_) => None,
            });
            let marks: Vec<Mark> = teams.flat_map(|team| Mark::both(&team)).collect();
            let steps = Steps::new(content, with_teams(content.calls_of(0), 0, marks), &|_| {});
            let steps: Vec<(bool, i64)> = steps
                .filter(|step| step.at_ns > 0 && step.at_ns < 70 * MS)
                .map(|step| (matches!(step.kind, Kind::Team(_)), step.at_ns / MS))
                .collect();
            assert_eq!(steps, [(true, 10), (false, 15), (false, 20), (true, 30)]);
        });
    }
}
